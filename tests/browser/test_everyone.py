"""The report for everyone: by keyboard, without JavaScript, in the dark, on a phone, on paper, and to axe."""

import io
import re

import pytest

from conformance.suite.discovery import Suite
from reports.analysis.report import Report
from reports.html.writer import write, write_one_file
from reports.results.reading import Results
from tests.support import cells as answers
from tests.support.effort import FULL, sample

PAGES = {
    "front": "index.html",
    "pair": "compare/3.3.4..4.3.0.html",
    "matrix": "matrix.html",
    "case": "cases/late-drops/late-by-the-watermark-of-the-batch-before.html",
    "violation": "cases/late-drops/window-still-open.html",
    "refused": "cases/chained-aggregations/window-over-a-window-column.html",
    "silent": "cases/late-drops/downtime-makes-no-row-late.html",
    "vanished": "vanished.html",
    "understand": "understand.html",
    "questions": "questions.html",
    "search": "search.html",
    "bugs": "bugs.html",
    "releases": "releases.html",
    "behaviours": "behaviours.html",
    "about": "about.html",
}
ONE_FILE = [
    "index",
    "vanished",
    "understand",
    "matrix",
    "case/late-drops/window-still-open",
    "search",
    "releases",
    "behaviours",
    "about",
]


def violations(page):
    from axe_playwright_python.sync_playwright import Axe

    # Without preloading, which asks for the stylesheet once more: a report lets nothing be fetched.
    # The text that a control shows is part of its name: who speaks to the browser says what is there to read.
    options = {"preload": False, "rules": {"label-content-name-mismatch": {"enabled": True}}}
    found = Axe().run(page, options=options).response["violations"]
    return [(one["id"], [node["html"][:160] for node in one["nodes"][:3]]) for one in found]


SMALL = """() => [...document.querySelectorAll("a[href], button, input, select, summary")].flatMap(one => {
  const target = one.matches("input[type=checkbox]") && one.closest("label") || one, box = target.getBoundingClientRect();
  const sentence = one.matches("a") && getComputedStyle(one).display === "inline"
    && [...one.parentElement.childNodes].some(other => other !== one && other.textContent.trim());
  const small = box.width > 0 && box.left >= 0 && (box.height < 24 || box.width < 24);
  return small && !sentence ? [`${one.tagName} ${one.textContent.trim()}: ${box.width} × ${box.height}`] : [];
})"""


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1280), ("dark", 375), *([("light", 375), ("dark", 1280)] if FULL else [])]
)
def test_axe_finds_nothing_and_what_is_tapped_on_a_phone_is_24_pixels_high_and_wide(reader, scheme, width):
    """Links in sentences are as high as their lines."""
    someone = reader(color_scheme=scheme, viewport={"width": width, "height": 800})
    wrong = {}
    for key in PAGES.values():
        page = someone.open(key)
        assert page.locator("a[href]:visible").count() > 5
        wrong[key] = [*(page.evaluate(SMALL) if width == 375 else []), *violations(page)]
    assert {key: found for key, found in wrong.items() if found} == {}


def test_axe_finds_nothing_in_one_file(reader):
    someone = reader()
    wrong = {key: violations(someone.open(key, single=True)) for key in sample(ONE_FILE, 4)}
    assert {key: found for key, found in wrong.items() if found} == {}


def test_on_a_phone_the_matrix_shows_names_and_at_least_two_versions(reader):
    page = reader(viewport={"width": 375, "height": 800}).open("matrix.html")
    for at in (0, 1, 2):
        box = page.locator("thead tr").first.locator("th").nth(at).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 375


@pytest.mark.parametrize("page_of", ["index.html", "matrix.html"])
def test_dark_is_dark(reader, page_of):
    def background(scheme):
        page = reader(color_scheme=scheme).open(page_of)
        return sum(
            map(
                int, re.findall(r"\d+", page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))[:3]
            )
        )

    assert background("dark") < 120
    assert background("light") > 700


class TestWithoutJavaScript:
    def test_what_changes(self, reader):
        page = reader(java_script_enabled=False).open("index.html")
        assert page.locator("[data-item]").count() == 3
        assert not page.locator("select[name=from]").is_visible()
        page.locator("table.grid a").first.click()
        page.locator("h1", has_text="From 3.3.4").wait_for()
        assert page.locator("h1").inner_text() == "From 3.3.4 to 3.5.9"

    def test_the_matrix_and_a_case(self, reader):
        page = reader(java_script_enabled=False).open("matrix.html")
        assert page.locator("[data-row]:visible").count() == 11
        assert page.locator("form:visible").count() == 0
        page.get_by_role("link", name="A replayed micro-batch").first.click()
        page.locator("h1", has_text="A replayed").wait_for()
        assert page.locator("figure svg").first.is_visible()
        assert page.locator("table.sides").first.is_visible()

    def test_one_file_turns_pages_by_its_address(self, reader):
        page = reader(java_script_enabled=False).open("", single=True)
        assert "From 3.5.9 to 4.3.0, " in page.locator(".headline:visible").inner_text()
        page.get_by_role("link", name="Matrix", exact=True).click()
        page.locator("h1:visible", has_text="Where behaviour").wait_for()
        assert page.locator("h1:visible").all_inner_texts() == ["Where behaviour changes"]
        page.get_by_role("link", name="A replayed micro-batch").first.click()
        page.locator("h1:visible", has_text="A replayed").wait_for()
        assert page.locator("h1:visible").count() == 1
        assert page.locator("figure svg").locator("visible=true").count() > 0
        page.locator(".jump a:visible").nth(1).click()
        assert page.locator("h1:visible").count() == 1
        assert "A replayed" in page.locator("h1:visible").inner_text()


class TestByKeyboard:
    def test_skip_to_the_content(self, reader):
        page = reader().open("matrix.html")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to content"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"

    def test_filter_then_open_a_case(self, reader):
        page = reader().open("matrix.html")
        for _ in range(20):
            page.keyboard.press("Tab")
            if page.evaluate("!!document.activeElement.closest('form[data-filters]')"):
                break
        page.keyboard.type("replayed")
        for _ in range(30):
            page.keyboard.press("Tab")
            if page.evaluate("!!document.activeElement.closest('[data-row]')"):
                break
        page.keyboard.press("Enter")
        page.wait_for_url("**/recovery/**")
        assert "A replayed micro-batch" in page.locator("h1").inner_text()

    def test_arrows_go_from_cell_to_cell(self, reader):
        page = reader().open("matrix.html")
        page.locator("[data-row] th a").first.focus()
        place = "[...document.activeElement.closest('tr').children].indexOf(document.activeElement.closest('th,td'))"
        for key, expected in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowDown", 2), ("ArrowLeft", 1)):
            page.keyboard.press(key)
            assert page.evaluate(place) == expected
        assert page.evaluate("document.activeElement.closest('tr').previousElementSibling.matches('[data-row]')")

    def test_where_one_is_can_be_seen(self, reader):
        page = reader().open("index.html")
        for _ in range(12):
            page.keyboard.press("Tab")
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", page.evaluate("document.activeElement.outerHTML")

    def test_every_region_that_scrolls_can_be_scrolled_by_keys(self, reader):
        page = reader(viewport={"width": 375, "height": 800}).open(PAGES["case"])
        lost = page.evaluate(
            "[...document.querySelectorAll('*')].filter(e => e.scrollWidth > e.clientWidth + 1 && "
            "['auto', 'scroll'].includes(getComputedStyle(e).overflowX) && e.tabIndex < 0).map(e => e.className)"
        )
        assert lost == []


class TestOnPaper:
    def test_folds_are_open_and_controls_gone(self, reader):
        page = reader().open(PAGES["violation"])
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("details:not([open])").count() == 0
        assert page.locator("button:visible, form:visible").count() == 0
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("details:not([open])").count() > 0

    def test_it_prints(self, reader):
        someone = reader()
        for key in sample([*PAGES.values()], 5):
            assert someone.open(key).pdf(format="A4", landscape=True).startswith(b"%PDF")

    def test_nothing_of_the_matrix_is_cut_off(self, reader):
        page = reader(viewport={"width": 1040, "height": 700}).open("matrix.html")
        page.emulate_media(media="print")
        region = page.locator(".tall")
        assert region.evaluate(
            "e => e.scrollHeight <= e.clientHeight + 1 || getComputedStyle(e).overflowY === 'visible'"
        )


def test_screenshots_differ_by_scheme_only_in_colour(reader):
    sizes = set()
    for scheme in ("light", "dark"):
        page = reader(color_scheme=scheme).open("matrix.html")
        picture = io.BytesIO(page.screenshot())
        assert picture.getbuffer().nbytes > 10_000
        sizes.add(page.evaluate("document.documentElement.scrollHeight"))
    assert len(sizes) == 1


@pytest.mark.parametrize("writer", [write, write_one_file])
def test_hostile_text_is_shown_and_does_nothing(reader, tmp_path, writer):
    name = "</script><img src=x onerror='window.hacked = 1'><script>window.hacked = 2</script>"
    text = f"{name}\u202etxet"
    found = answers.results(tmp_path / "r", {f"f/{name}": {"3.5.9": answers.LOST, "4.3.0": answers.CALM}})
    cells = tuple(cell.model_copy(update={"notes": (text,)}) for cell in found.cells)
    front = writer(Report.of(Results(found.header, cells, found.footer), Suite(())), tmp_path / "site")
    page = reader().page
    page.goto(front.as_uri())
    page.locator("[data-item] a.title").first.click()
    page.locator("h1:visible", has_text="window.hacked = 2").wait_for()
    assert "window.hacked = 2</script>⟨right-to-left override⟩txet" in page.locator("[data-page]:visible").inner_text()
    assert page.evaluate("window.hacked") is None
