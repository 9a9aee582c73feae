"""The page of one upgrade, on a phone and on paper."""

import re

import pytest

from reports.html.writer import write_upgrade_page


@pytest.fixture(scope="module")
def written(published_report, tmp_path_factory):
    out = tmp_path_factory.mktemp("upgrade")
    list(write_upgrade_page(published_report, "3.5.9", "4.1.4", out))
    return out / "upgrade-3.5.9-4.1.4.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_on_a_phone(chromium, written, scheme):
    page = chromium.new_context(viewport={"width": 320, "height": 640}, color_scheme=scheme).new_page()
    page.goto(written.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert page.get_by_role("heading", name="Route").is_visible()
    page.context.close()


def test_it_prints_on_a4(chromium, written):
    page = chromium.new_context().new_page()
    page.goto(written.as_uri())
    paper = page.pdf(prefer_css_page_size=True)
    page.context.close()
    width, height = map(float, re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", paper).groups())
    assert (round(width / 72 * 25.4), round(height / 72 * 25.4)) == (210, 297)
