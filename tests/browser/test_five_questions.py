"""The five questions people bring, each answered on the published results in at most three clicks from the first page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from conformance.core.versions import releases
from reports.analysis.published import published_patches

MOST_CLICKS = 3


class Visitor:
    """Someone who starts on the first page, and whose clicks are counted."""

    def __init__(self, reader) -> None:
        self.page = reader.open("index.html")
        self.clicks = 0

    def _counted(self) -> None:
        self.page.wait_for_load_state()
        self.clicks += 1
        assert self.clicks <= MOST_CLICKS

    def follow(self, name: str | re.Pattern[str], within: str = "body") -> None:
        self._counted()
        self.page.locator(within).get_by_role("link", name=name).first.click()
        self.page.wait_for_load_state()

    def choose(self, picker: str, version: str) -> None:
        self._counted()
        self.page.locator(f"select[name={picker}]").select_option(version)

    def tick(self, feature: str) -> None:
        self._counted()
        self.page.locator("form[data-features]").get_by_label(feature, exact=True).check()


@pytest.fixture
def visitor(published_reader) -> Visitor:
    return Visitor(published_reader())


def test_what_changes_for_my_joins_and_deduplications_and_will_my_checkpoints_resume(visitor):
    visitor.choose("to", "4.1.4")
    visitor.page.get_by_role("heading", name="From 3.5.9 to 4.1.4").wait_for()
    visitor.tick("outer join")
    visitor.tick("deduplication")
    told = visitor.page.locator("[data-shown]").inner_text()
    assert re.search(r"\d+ changes? with only what you ticked, \d+ with some of it", told)
    assert re.search(r"\d+ of \d+ compared cases use some of it", told)
    section = visitor.page.locator(
        "section", has=visitor.page.get_by_role("heading", name="Will my checkpoints resume?")
    )
    assert re.search(r"of \d+ tried checkpoints, \d+ are refused", section.inner_text())
    assert "Workaround: spark.sql.streaming.stateStore.stateSchemaCheck=false" in section.inner_text()


def test_why_was_this_row_dropped(visitor):
    visitor.follow(re.compile("A row vanished"), ".doors")
    visitor.follow("Without a window, a row equal to the watermark is late")
    picture = visitor.page.locator("figure.timeline").first
    picture.wait_for()
    assert picture.locator(".scroll svg .f-late, .scroll svg .f-model-late").count() > 0
    assert "is late" in visitor.page.locator(".behaviour").first.inner_text()


def test_which_releases_to_avoid(visitor, published_report):
    visitor.follow("Patch releases", ".top")
    page = visitor.page
    shown = {row.get_attribute("data-release"): row.inner_text() for row in page.locator("[data-release]").all()}
    lines = {version.line for version in (*published_patches(), *(one.version for one in published_report.versions))}
    assert list(shown) == [str(version) for version in sorted(releases(), reverse=True) if version.line in lines]
    assert "2023-09-26" in shown["3.5.0"]
    for version in published_patches():
        assert "▲" in shown[str(version)]
    assert all("▲" in text or "none" in text or "conformance run --all --spark" in text for text in shown.values())
    assert 0 < page.get_by_text("fewest of the line").count() <= len({version.line for version in published_patches()})


def test_append_against_update(visitor):
    visitor.follow(re.compile("I want to understand"))
    visitor.page.get_by_role("heading", name="How watermarks work").wait_for()
    assert visitor.page.locator(".modes > div h3").all_inner_texts()[:2] == ["Append mode", "Update mode"]
    assert visitor.page.locator(".modes > div .scroll svg").count() == 3


def test_one_picture_for_a_slide(visitor):
    visitor.choose("to", "4.1.4")
    visitor.page.get_by_role("heading", name="From 3.5.9 to 4.1.4").wait_for()
    visitor.follow("its picture")
    assert visitor.page.url.endswith("upgrades/upgrade-3.5.9-4.1.4.svg")
    assert visitor.page.locator("svg text").first.text_content() == "Upgrade from Spark 3.5.9 to 4.1.4"


def test_a_comparison_leads_to_its_dossier(visitor, published_folder):
    visitor.choose("to", "4.1.4")
    visitor.page.get_by_role("heading", name="From 3.5.9 to 4.1.4").wait_for()
    assert visitor.page.locator("[data-days]").inner_text().startswith("Released: 3.5.9 on 2026-07-16, 4.1.4 on 2026-")
    visitor.follow("the dossier of this upgrade")
    visitor.page.get_by_role("heading", name="Upgrade from Spark 3.5.9 to 4.1.4").wait_for()
    assert visitor.page.locator("tbody tr", has_text="4.0.5").count() == 1
    pages = list((published_folder / "compare").iterdir())
    assert len(list((published_folder / "upgrades").glob("*.svg"))) == len(pages) > 40
    for picture in (published_folder / "upgrades").glob("*.svg"):
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")
