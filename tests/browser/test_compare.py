"""Two versions held against each other: the first thing one sees."""

from __future__ import annotations

import pytest

BOTH = pytest.mark.parametrize("single", [False, True], ids=["folder", "one file"])


@BOTH
def test_the_front_page_answers_in_a_sentence(reader, single):
    page = reader().open("index" if single else "index.html", single)
    assert (
        page.locator(".headline:visible")
        .inner_text()
        .startswith("3 Spark versions, 11 cases: 3 results change between 3.5.9 and 4.3.0")
    )
    groups = page.locator("[data-group]:visible h2").all_inner_texts()
    assert [text.split("\n")[0] for text in groups] == [
        "✗ Rows lost, added or with different values 1",
        "+ Newly accepted 1",
        "∘ Only a metric or an error 1",
    ]
    lost = page.locator("[data-group]:visible").first
    assert "SPARK-50046" in lost.inner_text()
    assert "since 4.3.0" in lost.inner_text()


@BOTH
def test_the_pickers_lead_to_a_pair(reader, single):
    page = reader().open("index" if single else "index.html", single)
    page.locator("select[name=from]:visible").select_option("3.3.4")
    page.get_by_role("heading", name="From 3.3.4 to 4.3.0").wait_for()
    assert page.locator("h2:visible", has_text="Refused, or fails").count() == 0
    page.locator("select[name=to]:visible").select_option("3.5.9")
    page.get_by_role("heading", name="From 3.3.4 to 3.5.9").wait_for()


def test_a_cell_without_an_answer_is_told_before_the_changes(reader):
    page = reader().open("index.html")
    assert "1 cell has no result" in page.locator(".warn").inner_text()


@BOTH
def test_features_of_ones_own_query_narrow_the_list_and_are_a_link(reader, single):
    page = reader().open("index" if single else "index.html", single)
    page.locator("form[data-features]:visible").get_by_label("semi join").check()
    assert page.locator("[data-item]:visible").count() == 1
    assert page.locator("[role=status]:visible").inner_text() == "1 of 3 changes"
    other = reader().page
    other.goto(page.url)
    assert other.locator("[data-item]:visible").count() == 1
    other.locator("form[data-features]:visible").get_by_label("update mode").check()
    assert other.locator("[data-nothing]:visible").inner_text().startswith("No change affects")


@BOTH
def test_the_first_difference_is_told_side_by_side(reader, single):
    page = reader().open("index" if single else "index.html", single)
    page.locator("[data-item]:visible summary").first.click()
    values = page.locator("[data-item]:visible dl.pair").first.inner_text()
    assert "12:21" in values


def test_any_two_versions_are_one_click_away(reader):
    page = reader().open("index.html")
    page.locator("table.grid a").first.click()
    page.locator("h1", has_text="From 3.3.4").wait_for()
    assert page.locator("h1").inner_text() == "From 3.3.4 to 3.5.9"
