"""The site of the documentation: built without a warning, linked, searched, and read in a real Chromium."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from reports.analysis.report import Report
from tests.browser.layout import cut_or_overlapping
from tests.browser.test_everyone import violations
from tests.support.effort import FULL, sample
from tools import site_report
from tools.check_site import problems

ROOT = Path(__file__).parents[2]
BASE = "/watermark-conformance/"
PAGES = sample(
    [
        "index.html",
        "questions.html",
        "your-own-job.html",
        "case-language.html",
        "case-language/queries.html",
        "commands.html",
        "design/engines.html",
        "python-api.html",
        "specification/03-late-filtering.html",
        "specification/index.html",
    ],
    5,
)
SEARCHED = {
    "SPARK-50046": "report/bugs.html#SPARK-50046",
    "Update mode rejects session windows": "report/cases/unsupported/session-window-in-update-mode.html",
    "Exception: [STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] Provided": "report/cases/join-delays/join-value-",
}
"""What is written into the search of the site → the page of the report that is among the first three results."""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, published_report: Report, published_folder: Path) -> Path:
    """The site with the published report in it, as the workflow makes it; the results are those that this process has read."""
    folder = tmp_path_factory.mktemp("documentation") / "site"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        patch.setattr(site_report, "report", lambda: published_report)
        config = load_config(str(ROOT / "tools" / "mkdocs.yml"), site_dir=str(folder), strict=True)
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
        config.plugins.on_shutdown()
    shutil.copytree(published_folder, folder / "report")
    # What `python -m tools.playground.build` adds, without what it gets from elsewhere.
    shutil.copy(ROOT / "tools/playground/page.html", folder / "report/playground.html")
    (folder / "report/playground").mkdir()
    shutil.copy(ROOT / "tools/playground/playground.js", folder / "report/playground/playground.js")
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def test_every_link_leads_to_a_page_and_a_place_and_nothing_is_fetched_from_elsewhere(site):
    assert list(problems(site, BASE)) == []


def test_programs_find_their_page(site):
    text = (site / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# Event-time semantics of Spark Structured Streaming\n\n> ")
    assert "specification/03-late-filtering.html#3.1" in text


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1280), ("dark", 375), *([("light", 375), ("dark", 1280)] if FULL else [])]
)
def test_axe_finds_nothing(chromium, address, page, scheme, width):
    with chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": 800}) as context:
        shown = context.new_page()
        shown.goto(address + page)
        assert violations(shown) == []


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_is_cut_or_lies_over_something_else_and_nobody_else_is_asked(chromium, address, site, width):
    pages = sorted({page.relative_to(site).as_posix() for page in site.rglob("*.html")} - {"404.html"})
    with chromium.new_context(viewport={"width": width, "height": 700}) as context:
        shown, asked, found = context.new_page(), [], {}
        shown.on("request", lambda request: asked.append(request.url))
        for page in sample([page for page in pages if not page.startswith("report/")], 8):
            shown.goto(address + page)
            shown.wait_for_load_state("networkidle")
            if wrong := cut_or_overlapping(shown):
                found[page] = wrong[:3]
    assert found == {}
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []


def test_the_search_finds_a_statement(chromium, address):
    with chromium.new_context(viewport={"width": 1280, "height": 800}) as context:
        shown = context.new_page()
        shown.goto(f"{address}index.html")
        shown.get_by_role("textbox", name="Search").fill("late-wm-previous")
        statement = shown.locator(".md-search-result__link[href*='specification/03-late-filtering.html']").first
        statement.wait_for()
        assert statement.is_visible()


@pytest.mark.parametrize("opened_as", ["a page of a server", "a file"])
def test_the_search_finds_what_is_in_the_report(chromium, address, site, opened_as):
    from playwright.sync_api import TimeoutError as NotInTime

    with chromium.new_context(viewport={"width": 1280, "height": 800}) as context:
        shown = context.new_page()
        shown.goto((site / "index.html").as_uri() if opened_as == "a file" else f"{address}index.html")
        field = shown.get_by_role("textbox", name="Search")
        field.click()
        first = "[...document.querySelectorAll('.md-search-result__link')].slice(0, 3).map(link => link.href.replace(/[?]h=[^#]*/, ''))"
        for text, found in SEARCHED.items():
            field.fill("")
            # One search: of those that typed keys start, the page has lost the last once.
            shown.keyboard.insert_text(text)
            shown.keyboard.press("End")
            with suppress(NotInTime):
                shown.wait_for_function(f"found => {first}.some(link => link.includes(found))", arg=found)
            links = shown.evaluate(first)
            assert any(found in link for link in links), (text, links)


def test_the_link_beside_a_statement_is_the_address_to_cite(chromium, address):
    with chromium.new_context() as context:
        shown = context.new_page()
        shown.goto(f"{address}specification/03-late-filtering.html#3.3")
        head = shown.locator("h2[id='3.3']")
        assert "3.3 late-wm-previous" in head.inner_text()
        assert head.locator("a.headerlink").get_attribute("href") == "#3.3"


def test_a_case_of_a_statement_leads_to_its_page_of_the_report(chromium, address):
    with chromium.new_context() as context:
        shown = context.new_page()
        shown.goto(f"{address}questions.html")
        shown.get_by_role("link", name="A row behind the watermark still counts while its window is open").first.click()
        shown.wait_for_url("**/report/cases/late-drops/window-still-open.html")
        assert "still counts" in shown.locator("h1").inner_text()
