"""Two versions held against each other: the first thing one sees."""

import re

import pytest

from conformance.suite.features import relevance

BOTH = pytest.mark.parametrize("single", [False, True], ids=["folder", "one file"])
NEEDS = "found => found.map(one => (one.querySelector('.uses span') || {textContent: ''}).textContent)"


@BOTH
def test_the_front_page_answers_in_a_sentence(reader, single):
    page = reader().open("index" if single else "index.html", single)
    assert (
        page.locator(".headline:visible")
        .inner_text()
        .startswith(
            "From 3.5.9 to 4.3.0, 1 case can change your rows or fail: 1 with default settings; 2 cannot: "
            "they change only what Spark accepts"
        )
    )
    groups = page.locator("[data-group]:visible h2").all_inner_texts()
    assert [text.split("\n")[0] for text in groups] == [
        "✗ Rows lost, added or with different values 1",
        "+ Newly accepted 1",
        "∘ Only a metric or an error 1",
    ]
    lost = page.locator("[data-group]:visible").first
    assert "SPARK-50046" in lost.inner_text()
    assert "since 4.0 (seen on 4.3.0)" in lost.inner_text()


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
def test_features_of_ones_own_query_rank_the_changes_and_are_a_link(reader, single):
    page = reader().open("index" if single else "index.html", single)
    form = page.locator("form[data-features]:visible")
    form.get_by_label("semi join").check()
    # A join has several watermarks, which the other two changes need as well.
    told = "1 change with only what you ticked, 2 with some of it, 0 with none; "
    assert page.locator("[role=status]:visible").inner_text().startswith(told)
    assert page.locator("[data-item]:visible").count() == 3
    other = reader().page
    other.goto(page.url)
    assert other.locator("[role=status]:visible").inner_text().startswith(told)
    # A case that has the operator in another output mode still concerns the query.
    other.locator("form[data-features]:visible").get_by_label("update mode").check()
    assert other.locator("[data-item]:visible", has_text="semi join").count() == 1


@BOTH
def test_the_tiles_follow_what_is_ticked_and_the_others_can_be_shown(reader, single):
    page = reader().open("index" if single else "index.html", single)

    def tiles():
        return [int(text) for text in page.locator("[data-tile-count]:visible").all_inner_texts()]

    before = tiles()
    form = page.locator("form[data-features]:visible")
    form.get_by_label("window aggregation").check()
    assert (sum(before), sum(tiles())) == (3, 1)
    assert page.locator("[data-item]:visible").count() == 1
    form.get_by_label("show the others").check()
    assert page.locator("[data-item]:visible").count() == 3
    assert sum(tiles()) == 1
    form.get_by_label("window aggregation").uncheck()
    assert tiles() == before


class TestPublished:
    """On all published results, as a user meets them."""

    TICKS = ("outer join", "deduplication", "window aggregation", "append mode")

    def test_no_false_all_clear_from_3_5_to_4_1(self, reader, published_folder):
        page = reader().page
        page.goto((published_folder / "compare" / "3.5.9..4.1.4.html").as_uri())
        for feature in self.TICKS:
            page.locator("form[data-features]").get_by_label(feature, exact=True).check()
        assert page.locator("[data-nothing]").is_hidden()
        # SPARK-50046 concerns every query with two watermarks, so every join.
        assert "SPARK-50046" in page.locator("[data-group=rows] [data-entry]:visible").first.inner_text()
        told = r"(\d+) changes? with only what you ticked, (\d+) with some of it, (\d+) with none;"
        only, some, none = map(int, re.search(told, page.locator("[role=status][data-shown]").inner_text()).groups())
        assert only > 0
        assert sum(int(text) for text in page.locator("[data-tile-count]").all_inner_texts()) == only + some
        assert page.locator("[data-item]:visible").count() == only + some
        assert none == page.locator("[data-item]").count() - only - some

    def test_what_concerns_no_change_is_told_with_what_was_compared(self, reader, published_folder):
        page = reader().page
        page.goto((published_folder / "compare" / "4.2.1..4.3.0.html").as_uri())
        needs = [needs.split(" · ") for needs in page.locator("[data-item]").evaluate_all(NEEDS)]
        known = page.locator("[name=uses]").evaluate_all("boxes => boxes.map(one => one.value)")
        calm = [one for one in known if all(relevance(each, frozenset([one])) == "none" for each in needs)]
        assert calm
        page.locator("form[data-features]").get_by_label(calm[0], exact=True).check()
        said = page.locator("[data-nothing]").inner_text()
        assert re.fullmatch(
            r"No change in what you ticked: [1-9]\d* of \d+ compared cases use some of it, and each behaves the same on both "
            r"versions, with the known bugs that both have\.",
            said,
        ), said
        assert page.locator("[data-item]:visible").count() == 0

    def test_the_page_ranks_as_the_gate_does(self, reader, published_folder):
        page = reader().page
        page.goto((published_folder / "compare" / "3.5.9..4.1.4.html").as_uri())
        items = [needs.split(" · ") for needs in page.locator("[data-item]").evaluate_all(NEEDS)]
        for chosen in (self.TICKS, ("inner join",), ("update mode",), ("session windows", "restart"), ("union", "SQL")):
            page.locator("form[data-features]").evaluate(
                "form => { for (const one of form.elements) one.checked = false }"
            )
            for feature in chosen:
                page.locator("form[data-features]").get_by_label(feature, exact=True).check()
            expected = sum(relevance(needs, frozenset(chosen)) != "none" for needs in items)
            assert page.locator("[data-item]:visible").count() == expected, chosen


@BOTH
def test_the_first_difference_is_told_side_by_side(reader, single):
    page = reader().open("index" if single else "index.html", single)
    page.locator("[data-item]:visible summary").first.click()
    values = page.locator("[data-item]:visible dl.pair").first.inner_text()
    assert "12:21" in values


class TestKnownBugs:
    def test_the_headline_counts_every_release_that_has_one_and_leads_to_them(
        self, reader, published_folder, published_report
    ):
        page = reader().page
        page.goto((published_folder / "index.html").as_uri())
        having = {cell.target for cell in published_report.matrix.cells.values() if cell.status == "bug"}
        told = (
            f"All {len(having)} releases have known bugs"
            if len(having) == len(published_report.versions)
            else f"{len(having)} of {len(published_report.versions)} releases have known bugs"
        )
        page.locator(".headline").get_by_role("link", name=told).click()
        page.locator("h1", has_text="Known bugs of each release").wait_for()
        counts = page.locator("thead tr").nth(1).locator("td.n").all_inner_texts()
        assert [text != "–" for text in counts] == [True, *(one.name in having for one in published_report.versions)]

    def test_those_of_both_versions_are_listed_as_by_the_gate(self, reader, published_folder, published_report):
        pair = next(
            one for one in published_report.pairs if (one.before.title[:3], one.after.title[:3]) == ("3.5", "4.3")
        )
        page = reader().page
        page.goto((published_folder / "compare" / f"{pair.before.title}..{pair.after.title}.html").as_uri())
        listed = page.locator("section", has=page.get_by_role("heading", name="Known bugs both have")).locator("li")
        assert listed.count() == len(published_report.matrix.bugs_of_both(pair.before, pair.after)) > 0

    def test_totals_set_known_bugs_apart(self, reader, published_folder, published_report):
        page = reader().page
        page.goto((published_folder / "matrix.html").as_uri())
        texts = page.locator("tr.totals td").all_inner_texts()
        for target, text in zip(published_report.targets, texts, strict=False):
            counts = published_report.matrix.count(published_report.matrix.cases, [target.name])
            assert ("▲" in text) == (counts["bug"] > 0)
            if counts["bug"]:
                assert text.split()[-1] == str(counts["bug"])


class TestCheckpoints:
    """SPARK-57003: from 4.0 on the key of a join is nullable in the schema of the state."""

    WAY = "spark.sql.streaming.stateStore.stateSchemaCheck=false"

    def test_the_page_of_a_case(self, reader, published_folder):
        page = reader().page
        page.goto(
            (published_folder / "cases" / "chained-aggregations" / "equality-join-then-aggregation.html").as_uri()
        )
        line = page.locator("[data-checkpoint]", has_text="4.3.0").first.inner_text()
        assert "refused" in line
        assert self.WAY in line
