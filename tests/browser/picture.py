"""The picture of the report for a page: ``python -m tests.browser.picture docs/report.png``.

It is the first page of the report of the published results, as someone sees it who opens it.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from reports.analysis.report import Report
from reports.html.writer import write
from reports.results.published import patch_results, published_results
from tests.browser.conftest import NAMES, QUIET
from tests.support.whole_suite import whole_suite

SIZE = {"width": 1280, "height": 860}


def main(out: Path) -> None:
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, NAMES)), None)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        front = write(
            Report.of(published_results(), whole_suite(), patches=patch_results()).with_model(),
            Path(folder) / "site",
        )
        browser = playwright.chromium.launch(executable_path=chromium, args=QUIET)
        page = browser.new_page(viewport=SIZE)
        page.goto(front.as_uri())
        page.screenshot(path=out)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
