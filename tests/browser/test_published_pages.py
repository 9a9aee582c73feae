"""The published results as people read them: which door, which two versions, which step, and back."""

import pytest

from conformance.core.data import read_data
from tests.support.effort import full_run_only


@pytest.fixture(params=[pytest.param(False, id="folder"), pytest.param(True, id="one file", marks=full_run_only)])
def opened(request, published_reader, published_file_reader):
    """Opens a page of the report: ``opened("index")``. On each change, other tests open the one file with the sample report."""
    single = request.param
    reader = (published_file_reader if single else published_reader)()

    def page(key: str, fragment: str = ""):
        if single:
            return reader.open(
                key + (f"{'' if fragment.startswith('?') else ':'}{fragment}" if fragment else ""), single
            )
        return reader.open(f"{key.replace('case/', 'cases/')}.html{'#' if fragment else ''}{fragment}")

    return page


class TestDoors:
    def test_the_front_page_says_what_it_is_about(self, opened):
        page = opened("index")
        assert page.locator("h1:visible").inner_text() == "How Spark Structured Streaming treats late rows, 3.0 – 4.3"
        assert "Results of 20" in page.locator("[data-page]:visible").inner_text()

    def test_the_front_page_has_six_screens(self, published_reader):
        size = {"width": 1280, "height": 900}
        page = published_reader(viewport=size).open("index.html")
        assert page.evaluate("document.documentElement.scrollHeight") <= 6 * size["height"]

    def test_what_no_row_meets_is_folded_until_it_is_asked_for(self, opened):
        page = opened("index")
        changes = page.locator("[data-group=accepted]:visible [data-item]")
        assert not changes.first.is_visible()
        page.locator("[data-tile=accepted]:visible a").click()
        changes.first.wait_for()

    def test_one_door_leads_to_the_changes(self, opened):
        page = opened("index")
        page.get_by_role("link", name="I plan an upgrade").click()
        assert page.locator("select[name=from]:visible").count() == 1
        assert page.locator("h2:visible", has_text="I plan an upgrade").bounding_box()["y"] < 400

    def test_one_door_explains_lost_rows(self, opened):
        page = opened("index")
        page.locator(".doors:visible").get_by_role("link", name="A row vanished").click()
        page.get_by_role("heading", name="Why did a row vanish?").wait_for()
        assert page.locator(".causes:visible > li").count() == 10
        page.get_by_role("link", name="Without a window, a row equal to the watermark is late").click()
        page.locator("h1:visible", has_text="a row equal to the watermark").wait_for()

    def test_one_door_shows_the_modes_side_by_side_and_ten_pictures(self, opened, published_report):
        page = opened("index")
        page.get_by_role("link", name="I want to know the rules").click()
        page.get_by_role("heading", name="How watermarks work").wait_for()
        modes = page.locator(".modes:visible > div")
        assert modes.locator("h3").all_inner_texts() == ["Append mode", "Update mode", "Complete mode"]
        assert [mode.locator(".scroll svg .f-late").count() for mode in modes.all()] == [1, 1, 0]
        # A case that has changed since the results were published has no picture until they are made again.
        pictures = read_data("reports.html", "guides.yaml")["pictures"]
        drawn = [one["case"] for one in pictures if one["case"] in published_report.cases]
        assert len(drawn) >= 8
        assert page.locator(".pictured:visible figure .scroll svg").count() == len(drawn)

    def test_a_picture_is_a_file_that_needs_no_stylesheet(self, opened):
        page = opened("understand")
        with page.expect_download() as download:
            page.get_by_role("button", name="Save picture: Append mode", exact=True).click()
        assert download.value.suggested_filename == "append-mode.svg"
        text = download.value.path().read_text(encoding="utf-8")
        assert text.startswith("<svg")
        assert 'stroke="rgb(' in text
        assert "class=" not in text


class TestPicker:
    def test_after_back_it_shows_the_versions_of_the_page(self, opened):
        page = opened("compare/3.5.9..4.3.0")
        page.locator("select[name=from]:visible").select_option("3.4.4")
        page.get_by_role("heading", name="From 3.4.4 to 4.3.0").wait_for()
        page.go_back()
        page.get_by_role("heading", name="From 3.5.9 to 4.3.0").wait_for()
        assert page.locator("select[name=from]:visible").input_value() == "3.5.9"

    def test_an_older_version_leads_to_the_page_that_says_which_checkpoints_go_back(self, opened):
        page = opened("compare/3.5.9..4.3.0")
        page.locator("select[name=to]:visible").select_option("3.4.4")
        said = page.locator("[data-said]:visible")
        assert said.inner_text().startswith("3.4.4 is older than 3.5.9.")
        assert page.locator("h1:visible").inner_text() == "From 3.5.9 to 4.3.0"
        said.get_by_role("link", name="What changes from 3.4.4 to 3.5.9").click()
        page.get_by_role("heading", name="From 3.4.4 to 3.5.9").wait_for()
        back = page.locator("section", has=page.get_by_role("heading", name="Can I go back?"))
        assert "Checkpoints of 3.5.9 on 3.4.4:" in back.inner_text()

    def test_equal_versions_are_named(self, opened):
        page = opened("compare/3.5.9..4.3.0")
        page.locator("select[name=to]:visible").select_option("3.5.9")
        assert page.locator("[data-said]:visible").inner_text() == "Both are 3.5.9. Choose two versions."

    def test_ticks_survive_a_change_of_version(self, opened):
        page = opened("compare/3.5.9..4.3.0")
        page.locator("form[data-features]:visible").get_by_label("update mode").check()
        page.locator("select[name=from]:visible").select_option("3.4.4")
        page.get_by_role("heading", name="From 3.4.4 to 4.3.0").wait_for()
        assert page.locator("form[data-features]:visible").get_by_label("update mode").is_checked()


class TestPlaces:
    CASE = "case/output-modes/append-emits-each-window-once"

    def test_a_link_to_a_step_opens_it(self, opened):
        page = opened(self.CASE, "A-step-3")
        assert page.locator("details[id$=A-step-3]").get_attribute("open") is not None

    def test_it_says_how_long_the_case_took_on_each_version(self, opened, published_report):
        page = opened(self.CASE)
        took = page.locator("[data-took]:visible").first.inner_text()
        assert took.startswith("The case took ")
        shown = published_report.sections(self.CASE.removeprefix("case/"))[0]
        assert all(f" s on {target.removeprefix('spark-')}" in took for target in shown.targets)

    def test_a_step_says_its_link(self, opened):
        page = opened(self.CASE)
        page.get_by_role("link", name="Link to this step: 2 on").first.click()
        assert page.url.endswith("A-step-2")

    def test_back_returns_to_where_one_was_in_the_matrix(self, opened):
        page = opened("matrix")
        region = page.get_by_role("region", name="Matrix of cases and versions")
        row = page.locator("[data-row]:visible").nth(200)
        row.scroll_into_view_if_needed()
        before = region.evaluate("element => element.scrollTop")
        assert before > 1000
        row.locator("th a").click()
        page.locator("section.behaviour:visible").first.wait_for()
        page.go_back()
        page.locator("[data-matrix]:visible").wait_for()
        page.wait_for_function("top => document.querySelector('.tall').scrollTop > top - 400", arg=before)
        assert abs(region.evaluate("element => element.scrollTop") - before) < 400
