"""A matrix of 2,000 cells answers a filter before anybody notices that it worked."""

from __future__ import annotations

import pytest

from benchmarks.report_size import FILTER, FILTERED_WITHIN_MS, SIZES, known, results
from reports.analysis.report import Report
from reports.html.writer import write
from reports.results.reading import Results

CELLS = SIZES[0]


@pytest.fixture(scope="module")
def matrix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    assert results(folder / "results.jsonl", CELLS) >= CELLS
    read = Results.read(folder / "results.jsonl")
    write(Report.of(read, known(folder, read)), folder / "site")
    return folder / "site" / "matrix.html"


def test_a_filter_is_answered_at_once(chromium, matrix):
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    page.goto(matrix.as_uri())
    rows = page.locator("[data-row]").count()
    assert rows * page.locator("thead [data-version]").count() >= CELLS
    # The middle one of nine, by the browser's own clock, from the key to the table as it is then.
    assert page.evaluate(FILTER) < FILTERED_WITHIN_MS
    page.close()
