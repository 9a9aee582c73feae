"""Many cases and many versions: what is loaded, found, and fits on a screen and on a phone."""

import pytest

from conformance.suite.discovery import Suite
from reports.analysis.report import Report
from reports.html.writer import write
from tests.browser.layout import cut_or_overlapping
from tests.support import cells as answers
from tests.support.effort import sample

SIXTEEN = [f"3.{line}.{patch}" for line in range(3, 6) for patch in range(4)] + ["4.0.0", "4.0.1", "4.1.0", "4.2.0"]
WIDE = ["cases/join-delays/progress-counts-partitions-and-state-stores.html"]
"""Names longer than a column of a phone."""


class TestOneFile:
    def test_a_page_is_loaded_when_it_is_shown(self, published_file_reader):
        page = published_file_reader().open("index", True)
        count = "document.getElementsByTagName('*').length"
        before = page.evaluate(count)
        assert before < 15_000
        page.get_by_role("link", name="About this run").click()
        page.get_by_role("heading", name="About this run").wait_for()
        assert page.evaluate(count) > before

    def test_without_a_script_every_page_is_there(self, published_file_reader, published_report):
        page = published_file_reader(java_script_enabled=False).open("about", True)
        assert page.locator("h1:visible").inner_text() == "About this run"
        assert page.locator(".page > noscript .behaviour").count() > len(published_report.cases)


class TestMatrix:
    def test_sixteen_versions_fit_on_a_screen(self, reader, tmp_path):
        found = answers.results(tmp_path / "r", {f"f/{at}": dict.fromkeys(SIXTEEN, answers.CALM) for at in range(3)})
        front = write(Report.of(found, Suite(())), tmp_path / "site")
        page = reader(viewport={"width": 1440, "height": 900}).page
        page.goto((front.parent / "matrix.html").as_uri())
        assert page.locator("thead th[data-version]").count() == 16
        region = page.get_by_role("region", name="Matrix of cases and versions")
        assert region.evaluate("element => element.scrollWidth <= element.clientWidth")

    def test_no_ticket_is_cut_off(self, published_reader):
        page = published_reader(viewport={"width": 1440, "height": 900}).open("matrix.html")
        cut = page.evaluate(
            """() => [...document.querySelectorAll("td.turns a")].filter(link => {
              const cell = link.closest("td").getBoundingClientRect(), own = link.getBoundingClientRect();
              return own.right > cell.right + 1 || own.left < cell.left;
            }).map(link => link.textContent)"""
        )
        assert page.locator("td.turns a").count() > 50
        assert cut == []


class TestBehaviours:
    def test_the_catalogue_is_searched(self, published_reader):
        page = published_reader().open("behaviours.html")
        page.get_by_role("searchbox", name="Search", exact=True).fill("SPARK-40925")
        page.wait_for_function("document.querySelector('[data-shown]').textContent.includes(' of ')")
        assert page.locator("article:visible").count() > 0
        assert all("SPARK-40925" in text for text in page.locator("article:visible").all_text_contents())
        page.get_by_role("searchbox", name="Search", exact=True).fill("no such behaviour")
        page.locator("[data-nothing]").wait_for()

    def test_it_is_small(self, published_folder):
        assert (published_folder / "behaviours.html").stat().st_size < 800_000


def test_what_is_cut_or_lies_over_something_else_is_noticed(reader):
    page = reader().page
    page.set_content(
        "<p style='overflow: hidden; width: 40px; white-space: nowrap'>cut at its end</p><p>below</p>"
        "<p style='margin-top: -2em'>above</p><pre style='width: 2000px'>wide</pre>"
    )
    found = cut_or_overlapping(page)
    assert [text.split(" ")[0] for text in found] == ["the", "cut:", "over"]
    page.set_content("<p>short</p><div style='overflow: auto'><pre style='width: 2000px'>wide</pre></div>")
    assert cut_or_overlapping(page) == []


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_is_cut_or_lies_over_something_else_on_a_page_of_each_kind(published_reader, published_folder, width):
    """Every week on all pages."""
    reader, found = published_reader(viewport={"width": width, "height": 800}), {}
    pages = [file.relative_to(published_folder).as_posix() for file in published_folder.rglob("*.html")]
    cases = sorted(page for page in pages if page.startswith("cases/"))
    pairs = sorted(page for page in pages if page.startswith(("compare/", "upgrades/")))
    for page in [*(page for page in pages if "/" not in page), *sample(pairs, 3), *WIDE, *sample(cases, 8)]:
        if wrong := cut_or_overlapping(reader.open(page)):
            found[page] = wrong[:3]
    assert found == {}


@pytest.mark.parametrize("width", [390, 1280])
def test_pictures_fit_on_the_page_that_explains_watermarks(published_reader, width):
    page = published_reader(viewport={"width": width, "height": 800}).open("understand.html")
    fits = page.locator("figure .scroll").evaluate_all("all => all.map(one => one.scrollWidth <= one.clientWidth)")
    assert fits == [True] * 13


class TestPhone:
    def test_filters_are_folded(self, published_reader):
        page = published_reader(viewport={"width": 390, "height": 800}).open("matrix.html")
        assert not page.get_by_label("Family").is_visible()
        page.locator("summary", has_text="Filters").click()
        assert page.get_by_label("Family").is_visible()

    def test_on_a_screen_they_are_not(self, published_reader):
        page = published_reader().open("matrix.html")
        assert page.get_by_label("Family").is_visible()
        assert not page.locator("summary", has_text="Filters").is_visible()

    @pytest.mark.parametrize("page", ["index", "compare/3.5.9..4.3.0"])
    def test_features_are_folded_on_a_phone_and_open_on_a_screen(self, published_reader, page):
        small = published_reader(viewport={"width": 320, "height": 640}).open(f"{page}.html")
        fold = small.locator("summary", has_text="My query uses")
        assert fold.is_visible()
        assert not small.get_by_label("outer join", exact=True).is_visible()
        fold.click()
        small.get_by_label("outer join", exact=True).check()
        assert "only what you ticked" in small.locator("[data-shown]").inner_text()
        assert small.evaluate("document.documentElement.scrollWidth") <= 320
        large = published_reader().open(f"{page}.html")
        assert large.get_by_label("outer join", exact=True).is_visible()
        assert not large.locator("summary", has_text="My query uses").is_visible()
