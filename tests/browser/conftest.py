"""A real Chromium, and the sample report in both its forms. Without a Chromium these tests are skipped, and say so."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conformance.suite import discovery
from reports.analysis.report import Report
from reports.html.writer import write, write_one_file
from reports.results.published import patch_results, published_results
from reports.results.reading import Results
from tests.support.once import made_once
from tests.support.whole_suite import whole_suite

SAMPLE = Path(__file__).parent / "sample"
"""Eleven cases on three versions, from a real run; one cell was made to violate and one to be broken."""

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 300_000
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def _missing(reason: str) -> None:
    if os.environ.get("CONFORMANCE_REQUIRE_BROWSER") == "1":
        pytest.fail(f"CONFORMANCE_REQUIRE_BROWSER is 1 and {reason}", pytrace=False)
    pytest.skip(f"{reason}: install chromium, or name one in CONFORMANCE_CHROMIUM")


@pytest.fixture(scope="session")
def chromium():
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        _missing("playwright is not installed")
    named = os.environ.get("CONFORMANCE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if named is None or not Path(named).is_file():
        _missing("there is no Chromium on this machine")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=named, args=QUIET, timeout=PATIENCE_MS)
        except Error as problem:
            _missing(f"{named} does not start ({str(problem).splitlines()[0]})")
        yield browser
        browser.close()


def sample_report() -> Report:
    return Report.of(Results.read(SAMPLE / "results.jsonl"), discovery.load([SAMPLE / "cases"])).with_model()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(sample_report(), tmp_path_factory.mktemp("site")).parent


@pytest.fixture(scope="session")
def one_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_one_file(sample_report(), tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="session")
def published_report() -> Report:
    return Report.of(published_results(), whole_suite(), patches=patch_results()).with_model()


@pytest.fixture(scope="session")
def published_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Written by the first process that needs it, for all."""
    return made_once(
        tmp_path_factory, "published", lambda place: write(request.getfixturevalue("published_report"), place)
    )


@pytest.fixture(scope="session")
def published_file(published_report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_one_file(published_report, tmp_path_factory.mktemp("published-one"))


def patient(context):
    """A busy machine may take longer than the 30 s that Playwright waits for a page."""
    context.set_default_timeout(PATIENCE_MS)
    return context


class Reader:
    """Someone with a browser and the report, who notices when a page fails or asks for anything from elsewhere."""

    def __init__(self, context, folder: Path, one_file: Path) -> None:
        self.page = context.new_page()
        self._folder, self._one_file = folder, one_file
        self.failures: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.failures.append(str(error)))
        self.page.on("console", lambda said: said.type in ("error", "warning") and self.failures.append(said.text))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def address(self, key: str, single: bool = False) -> str:
        if single:
            return f"{self._one_file.as_uri()}#{key}"
        page, _, rest = key.partition("#")
        return (self._folder / page).as_uri() + (f"#{rest}" if rest else "")

    def open(self, key: str, single: bool = False):
        # From nothing, as by a link someone sent: within one page a browser would only follow the fragment.
        self.page.goto("about:blank")
        self.page.goto(self.address(key, single))
        return self.page


def _readers(chromium, folder: Path, one_file: Path) -> Iterator[Callable[..., Reader]]:
    contexts, readers = [], []

    def meet(**properties: object) -> Reader:
        context = patient(chromium.new_context(**{"viewport": {"width": 1280, "height": 800}, **properties}))
        contexts.append(context)
        readers.append(Reader(context, folder, one_file))
        return readers[-1]

    yield meet
    for context in contexts:
        context.close()
    for one in readers:
        assert one.failures == []
        assert [url for url in one.requests if not url.startswith(("file:", "about:", "data:"))] == []


@pytest.fixture
def reader(chromium, folder: Path, one_file: Path) -> Iterator[Callable[..., Reader]]:
    """Someone who reads with these properties of a browser: ``reader(color_scheme="dark")``."""
    yield from _readers(chromium, folder, one_file)


@pytest.fixture
def published_reader(chromium, published_folder: Path) -> Iterator[Callable[..., Reader]]:
    """The same with the published results of Apache Spark, in a folder."""
    yield from _readers(chromium, published_folder, published_folder)


@pytest.fixture
def published_file_reader(chromium, published_file: Path) -> Iterator[Callable[..., Reader]]:
    """The same with the published results in one file."""
    yield from _readers(chromium, published_file.parent, published_file)
