"""The playground in a real Chromium, from a server of this test: Pyodide comes from npm, so npm must be reachable."""

import shutil
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from reports.html.writer import write
from tests.browser.conftest import patient, sample_report
from tools.playground.build import PYODIDE, build

READY = "body[data-ready], #problem:not([hidden])"
LATE = "#picture .scroll svg .f-late, #picture .scroll svg .f-model-late"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def _npm_is_reachable() -> bool:
    asked = ["npm", "view", f"pyodide@{PYODIDE}", "version"]
    return shutil.which("npm") is not None and subprocess.run(asked, capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if not _npm_is_reachable():
        pytest.skip(f"npm cannot be reached, from which pyodide {PYODIDE} comes")
    folder = write(sample_report(), tmp_path_factory.mktemp("site")).parent
    build(folder)
    return folder


@pytest.fixture(scope="module")
def server(site):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()


@pytest.fixture
def opened(chromium, server):
    """Opens a page of the site: ``opened("playground.html")``."""
    contexts, asked, failures = [], [], []

    def page(path: str, **properties: object):
        contexts.append(patient(chromium.new_context(**properties)))
        made = contexts[-1].new_page()
        made.on("request", lambda request: asked.append(request.url))
        made.on("pageerror", lambda error: failures.append(str(error)))
        made.goto(path if path.startswith(("http", "file")) else f"{server}/{path}")
        return made

    yield page
    for context in contexts:
        context.close()
    assert failures == []
    assert [url for url in asked if not url.startswith((server, "data:", "blob:", "file:"))] == []


def test_rows_delay_mode_and_version_change_the_picture_and_its_address(opened):
    page = opened("understand.html")
    page.get_by_role("link", name="Playground").click()
    page.wait_for_selector(READY)
    assert page.locator(LATE).count() == 1
    assert "late: window 12:00–12:10: 12:10 ≤ watermark 12:15" in page.locator("#told").inner_text()

    page.get_by_label("Delay").fill("30 minutes")
    assert page.locator(LATE).count() == 0
    page.get_by_label("Output mode").select_option("update")
    page.get_by_label("Version").select_option("3.5.9")
    page.get_by_label("Rows").fill("12:05\n12:55\n12:07 7")
    assert page.locator("#picture .timeline").get_attribute("data-name") == "Update mode on Spark 3.5.9"
    assert page.locator(LATE).count() == 1

    other = opened(page.url)
    other.wait_for_selector(READY)
    assert other.get_by_label("Rows").input_value() == "12:05\n12:55\n12:07 7"
    assert other.get_by_label("Version").input_value() == "3.5.9"
    assert other.locator("#told").inner_text() == page.locator("#told").inner_text()

    page.get_by_label("Rows").fill("12:0x")
    assert "is not an instant" in page.get_by_role("alert").inner_text()


@pytest.mark.parametrize(
    "address",
    [
        'rows=<img src=x onerror="window.ran=1"><script>window.ran=1</script>',
        "delay=<svg onload=window.ran=1>&window=%3Cscript%3Ewindow.ran=1%3C/script%3E",
        "mode=<script>window.ran=1</script>&version=javascript:window.ran=1",
        "length=1&item=2&namedItem=3&0=4&__proto__=5&constructor=6&innerHTML=<img src=x onerror=window.ran=1>",
        "rows=" + "12:05%0A" * 20_000,
        "rows=" + "x" * 1_000_000,
        "rows=12:05 " + "9" * 5_000,
        "rows=12:05 --5",
        "delay=" + "1 minute " * 20_000,
        "%E0%A4%A&%00=%00&rows=%00%ED%A0%80",
    ],
    ids=range(10),
)
def test_a_hostile_address_runs_nothing_and_the_page_goes_on(opened, address):
    page = opened(f"playground.html#{address}")
    page.wait_for_selector("body[data-ready]")
    page.get_by_label("Rows").fill("12:05\n12:25\n12:06\n12:31")
    page.get_by_label("Delay").fill("10 minutes")
    page.get_by_role("textbox", name="Window").fill("10 minutes")
    page.wait_for_selector("#picture .timeline")
    assert page.locator("#problem").is_hidden()
    assert page.evaluate(
        "[window.ran, document.querySelectorAll('#picture script, #picture img, #told *').length]"
    ) == [
        None,
        0,
    ]


def test_it_fits_on_a_phone(opened):
    page = opened("playground.html", viewport={"width": 320, "height": 640})
    page.wait_for_selector(READY)
    assert page.locator("#problem").is_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_a_page_that_was_opened_as_a_file_says_what_to_do(site):
    # Chromium loads no module from a file, so the page itself must say it.
    text = (site / "playground.html").read_text(encoding="utf-8")
    assert "python -m http.server" in text
