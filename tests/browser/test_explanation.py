"""The page of ``explain --output``: nothing cut, axe without findings, what its controls do, and what is printed."""

import json

import pytest

from reports.html.standalone import explanation_page
from tests.browser.conftest import patient
from tests.browser.layout import cut_or_overlapping
from tests.browser.test_everyone import SMALL, violations
from tests.support.commands import answer_of
from tests.unit.conformance.own_job.test_delays import _of_a_file, table
from tests.unit.conformance.query_progress.lines import progress


@pytest.fixture
def pages(tmp_path, monkeypatch, capsys):
    """Pages of a job with its delays, by the progress of a long query that was restarted, and of two queries."""
    made = table("short-delay", monkeypatch, _of_a_file)
    (tmp_path / "job.html").write_text(explanation_page([made.page]))
    (tmp_path / "queries.html").write_text(explanation_page([made.page, made.page]))
    with (tmp_path / "progress.jsonl").open("w") as log:
        for batch in range(3_000):
            times = {"high": batch, "low": batch - 8 - (batch % 700 == 5) * 30, "mark": batch - 20}
            more = {
                "dropped": (batch % 700 == 5) * 3,
                "state": {"stateStoreSave": batch % 40},
                "sources": [3, batch % 9],
            }
            log.write(json.dumps(progress(batch, **times, **more, runId=("b" if batch < 2_000 else "c") * 8)) + "\n")
    answer_of(capsys, "explain", "--progress", str(tmp_path / "progress.jsonl"), "-o", str(tmp_path))
    return tmp_path / "job.html", tmp_path / "explanation.html", tmp_path / "queries.html"


def test_it_fits_draws_answers_and_prints(chromium, pages):
    """One test: making the pages and starting Chromium takes longer than to look."""
    failures, wrong = [], {}

    def opened(page_file, **properties):
        page = patient(chromium.new_context(**properties)).new_page()
        page.on("pageerror", lambda error: failures.append(str(error)))
        page.on("console", lambda said: said.type in ("error", "warning") and failures.append(said.text))
        page.on("request", lambda request: request.url.startswith(("file:", "data:")) or failures.append(request.url))
        page.goto(page_file.as_uri())
        page.locator("canvas").first.wait_for()
        return page

    for page_file in pages:
        for width, scheme in ((390, "dark"), (1280, "light")):
            page = opened(page_file, viewport={"width": width, "height": 800}, color_scheme=scheme)
            small = page.evaluate(SMALL) if width == 390 else []
            wrong[page_file.name, width] = [*cut_or_overlapping(page), *violations(page), *small]
            page.context.close()
    assert {where: what for where, what in wrong.items() if what} == {}

    job, by_progress, _ = pages
    page = opened(job, viewport={"width": 1280, "height": 800}, color_scheme="dark")
    assert page.locator("canvas").count() == 5
    kept = page.get_by_role("img").first.get_attribute("aria-label")
    assert kept == "Rows kept: 99.5% with the delay now, all with 59 min, results 49 min later"
    assert "watermark 2026-03-17T11:45 → 2026-03-17T13:25" in page.get_by_role("img").nth(1).get_attribute("aria-label")
    assert not page.get_by_label("Across").is_visible()
    page.get_by_label("What became of it").select_option("late")
    assert page.locator("tbody tr.late:visible").count() == page.locator(".treated tbody tr:visible").count() == 2
    page.get_by_label("Text").fill("no such row")
    assert page.get_by_role("status").inner_text() == "0 of 24 rows"
    page.emulate_media(media="print")
    page.wait_for_function("document.documentElement.classList.contains('paper')")
    assert page.locator("button:visible, select:visible, input:visible, summary:visible").count() == 0
    white = "[...document.querySelectorAll('canvas')].every(c => c.getBoundingClientRect().width <= 680)"
    assert page.evaluate(white)
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.context.close()

    page = opened(by_progress, viewport={"width": 1280, "height": 800})
    box = page.locator("[data-plot]").first.bounding_box()
    at = page.locator("[data-at]")

    def micro_batch(across):
        page.mouse.move(box["x"] + box["width"] * across, page.locator("[data-plot]").first.bounding_box()["y"] + 90)
        return int(at.inner_text().split(",2026")[0].replace(",", "").split()[1])

    middle = micro_batch(0.5)
    assert 1_300 < middle < 1_700
    page.get_by_role("button", name="Zoom in").click()
    page.get_by_role("button", name="Zoom in").click()
    assert middle - 300 < micro_batch(0.3) < middle < micro_batch(0.9) < middle + 500
    page.get_by_label("Across").select_option("clock")
    assert micro_batch(0.15) < 300
    assert ", 2026-03-0" in at.inner_text()
    page.get_by_text("The numbers").click()
    numbers = page.locator("table.numbers tr")
    assert numbers.first.inner_text().split("\t")[:3] == ["micro-batch", "clock time", "watermark"]
    assert 1_000 < numbers.count() <= 2_002
    page.context.close()
    assert failures == []
