"""The sentences of the specification, on paper."""

import re

from reports.html.specification_pages import LIST, write_specification


def test_the_list_prints_on_two_pages(chromium, published_report, tmp_path):
    write_specification(published_report, tmp_path)
    page = chromium.new_context().new_page()
    page.goto((tmp_path / LIST).as_uri())
    paper = page.pdf(prefer_css_page_size=True)
    page.context.close()
    assert len(re.findall(rb"/Type /Page\b", paper)) == 2
