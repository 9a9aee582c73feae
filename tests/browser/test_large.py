"""A matrix of 2,000 cells answers its filters; ``benchmarks/report_size.py`` measures how fast."""

import pytest

from benchmarks.report_size import FILTER, SIZES, known, results
from reports.analysis.report import Report
from reports.html.writer import write
from reports.results.reading import Results
from tests.browser.conftest import patient

CELLS = SIZES[0]


@pytest.fixture(scope="module")
def matrix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    assert results(folder / "results.jsonl", CELLS) >= CELLS
    read = Results.read(folder / "results.jsonl")
    write(Report.of(read, known(read)), folder / "site")
    return folder / "site" / "matrix.html"


def test_every_filter_is_answered(chromium, matrix):
    page = patient(chromium.new_page(viewport={"width": 1280, "height": 800}))
    page.goto(matrix.as_uri())
    rows = page.locator("[data-row]").count()
    assert rows * page.locator("thead [data-version]").count() >= CELLS
    # Nine filters one after the other; each waits for the number of cases shown to change.
    assert page.evaluate(FILTER) > 0
    page.locator("[data-filters] [name=text]").fill("no such case")
    page.locator("[data-row]:visible").first.wait_for(state="hidden")
    assert page.locator("[data-row]:visible").count() == 0
    page.close()
