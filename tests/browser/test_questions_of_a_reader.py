"""The questions that people bring, each answered on the published results in at most three clicks from the first page."""

import re
from fnmatch import fnmatchcase as fnmatch
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from conformance.core.versions import releases
from conformance.suite.features import relevance
from reports.html.search import DOCUMENTATION
from reports.results.published import published_patches

MOST_CLICKS = 3


class Visitor:
    """Someone who starts on the first page, and whose clicks are counted."""

    def __init__(self, reader) -> None:
        self.page = reader.open("index.html")
        self.clicks = 0

    def _counted(self) -> None:
        self.page.wait_for_load_state()
        self.clicks += 1
        assert self.clicks <= MOST_CLICKS

    def follow(self, name: str | re.Pattern[str], within: str = "body") -> None:
        self._counted()
        self.page.locator(within).get_by_role("link", name=name).first.click()
        self.page.wait_for_load_state()

    def choose(self, picker: str, version: str) -> None:
        self._counted()
        self.page.locator(f"select[name={picker}]").select_option(version)

    def tick(self, feature: str) -> None:
        self._counted()
        self.page.locator("form[data-features]").get_by_label(feature, exact=True).check()

    def search(self, text: str) -> list[str]:
        """Searches the matrix and returns the names of the cases that are left."""
        self.follow("Matrix", ".top")
        self.page.get_by_label("Text").fill(text)
        links = self.page.locator("[data-row]:visible th a").evaluate_all(
            "all => all.map(one => one.getAttribute('href'))"
        )
        return [link.removeprefix("cases/").removesuffix(".html") for link in links]

    def versions(self) -> dict[str, str]:
        """What the first row that is left says of each version: its sign."""
        heads = self.page.locator("thead th[data-version]").all_inner_texts()
        return dict(
            zip(heads, self.page.locator("[data-row]:visible").first.locator("td").all_inner_texts(), strict=False)
        )


@pytest.fixture
def visitor(published_reader) -> Visitor:
    return Visitor(published_reader())


def test_what_changes_for_my_joins_and_deduplications_and_will_my_checkpoints_resume(visitor):
    visitor.choose("to", "4.1.4")
    visitor.page.get_by_role("heading", name="From 3.5.9 to 4.1.4").wait_for()
    visitor.tick("outer join")
    visitor.tick("deduplication")
    told = visitor.page.locator("[data-shown]").inner_text()
    assert re.search(r"\d+ changes? with only what you ticked, \d+ with some of it", told)
    assert re.search(r"\d+ of \d+ compared cases use some of it", told)
    section = visitor.page.locator(
        "section", has=visitor.page.get_by_role("heading", name="Will my checkpoints resume?")
    )
    assert re.search(r"of \d+ tried checkpoints, \d+ are refused", section.inner_text())
    assert "Workaround: spark.sql.streaming.stateStore.stateSchemaCheck=false" in section.inner_text()


def test_which_releases_to_avoid(visitor, published_report):
    visitor.follow("Patch releases", ".top")
    page = visitor.page
    shown = {row.get_attribute("data-release"): row.inner_text() for row in page.locator("[data-release]").all()}
    lines = {version.line for version in (*published_patches(), *(one.version for one in published_report.versions))}
    assert list(shown) == [str(version) for version in sorted(releases(), reverse=True) if version.line in lines]
    assert "2023-09-26" in shown["3.5.0"]
    for version in published_patches():
        assert "▲" in shown[str(version)]
    assert all("▲" in text or "none" in text or "conformance run --all --spark" in text for text in shown.values())
    assert 0 < page.get_by_text("fewest in ").count() <= len({version.line for version in published_patches()})


def test_one_picture_for_a_slide(visitor):
    visitor.choose("to", "4.1.4")
    visitor.page.get_by_role("heading", name="From 3.5.9 to 4.1.4").wait_for()
    visitor.follow("its picture")
    assert visitor.page.url.endswith("upgrades/upgrade-3.5.9-4.1.4.svg")
    assert visitor.page.locator("svg text").first.text_content() == "Upgrade from Spark 3.5.9 to 4.1.4"


def test_a_comparison_leads_to_its_page_to_print(visitor, published_folder):
    visitor.choose("to", "4.1.4")
    visitor.page.get_by_role("heading", name="From 3.5.9 to 4.1.4").wait_for()
    released = visitor.page.locator("[data-days]").inner_text()
    assert released.startswith("Released: 3.5.9 on 2026-07-16, maintained until 2027-11; 4.1.4 on 2026-")
    visitor.follow("this upgrade as one page")
    visitor.page.get_by_role("heading", name="Upgrade from Spark 3.5.9 to 4.1.4").wait_for()
    assert visitor.page.locator("tbody tr", has_text="4.0.5").count() == 1
    pages = list((published_folder / "compare").glob("*..*.html"))
    assert len(list((published_folder / "upgrades").glob("*.svg"))) == len(pages) > 40
    for picture in (published_folder / "upgrades").glob("*.svg"):
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")


def test_what_changes_for_my_outer_join_with_an_aggregation_and_does_its_checkpoint_resume(visitor, published_report):
    visitor.tick("outer join")
    visitor.tick("window aggregation")
    visitor.follow("Will my checkpoints resume?")
    # The link keeps what is ticked.
    form = visitor.page.locator("form[data-features]")
    assert form.get_by_label("outer join", exact=True).is_checked()
    uses = frozenset({"outer join", "window aggregation"})
    tried = [
        cell
        for cell in published_report.results.upgrades
        if cell.pair == ("spark-3.5.9", "spark-4.3.0")
        and cell.status not in ("not-run", "not-applicable")
        and relevance(published_report.features.get(cell.case, ()), uses) != "none"
    ]
    refused = sum(cell.outcome == "refused" and cell.status in ("differs", "bug", "unsupported") for cell in tried)
    told = visitor.page.locator("[data-ticked]").first.inner_text()
    assert told.startswith(f"With some of what you ticked: {len(tried)} tried checkpoints; refused: {refused}, ")
    assert 0 < refused < len(tried)


def test_3_5_3_or_3_5_9(visitor, published_report):
    visitor.follow("Patch releases", ".top")
    counts = {}
    for version in ("3.5.3", "3.5.9"):
        row = visitor.page.locator(f'[data-release="{version}"]')
        counts[version] = int(row.locator(f'[data-fact="bugs {version}"]').inner_text())
        target = next(one for one in published_report.every_release.targets if one.title == version)
        assert counts[version] == len(published_report.every_release.known_bugs([target]))
    assert counts["3.5.9"] < counts["3.5.3"]


def test_why_was_my_late_row_not_dropped(visitor):
    visitor.follow(re.compile("I want to know the rules"))
    picture = visitor.page.locator("figure.timeline", has_text="watermark that drops late rows").first
    picture.scroll_into_view_if_needed()
    assert picture.locator("path.t-late").count() == 2  # in the picture and in its key


def test_who_has_a_bug_and_which_release_fixed_it(visitor):
    visitor.follow("Known bugs", ".top")
    row = visitor.page.locator("[data-bug]#SPARK-50046")
    heads = visitor.page.locator("thead tr").first.locator("th.n").all_inner_texts()
    signs = row.locator("td.n").all_inner_texts()
    having = [head for head, sign in zip(heads, signs, strict=True) if "▲" in sign]
    assert [head[:3] for head in having] == ["3.5", "3.4", "3.3", "3.2"]
    assert "4.0.0" in row.inner_text()
    other = visitor.page.locator("[data-bug]#SPARK-49829")
    assert "3.4.4, 3.5.4" in other.inner_text()


def test_since_when_is_there_a_deduplication_within_the_watermark_and_exactly_what(visitor):
    found = visitor.search("within-watermark-forgets-after-the-delay")
    assert found == ["deduplication/within-watermark-forgets-after-the-delay"]
    signs = visitor.versions()
    assert {version[:3] for version, sign in signs.items() if "absent" in sign} == {"3.0", "3.1", "3.2", "3.3", "3.4"}
    visitor.follow(re.compile("forgets|remembers|delay"), "[data-row]:visible")
    assert visitor.page.locator("figure.timeline").first.is_visible()


def test_may_i_chain_aggregations(visitor):
    visitor.follow("Behaviours", ".top")
    visitor.page.get_by_role("searchbox", name="Search", exact=True).fill("chain-3")
    shown = visitor.page.locator("article.known:visible")
    assert shown.count() >= 3
    assert any("Spark >=3.5" in text for text in shown.all_inner_texts())


def test_a_session_window_in_update_mode(visitor):
    found = visitor.search("session update")
    assert any("session-window-in-update-mode" in case or "update-mode" in case for case in found)


def test_the_way_back_from_4_3_to_4_0(visitor, published_report):
    visitor.choose("from", "4.0.5")
    visitor.page.get_by_role("heading", name="From 4.0.5 to 4.3.0").wait_for()
    section = visitor.page.locator("section", has=visitor.page.get_by_role("heading", name="Can I go back?"))
    tried = [
        cell
        for cell in published_report.results.upgrades
        if cell.pair == ("spark-4.3.0", "spark-4.0.5") and cell.status not in ("not-run", "not-applicable")
    ]
    assert f"Checkpoints of 4.3.0 on 4.0.5: of {len(tried)} tried checkpoints, " in section.inner_text()


def test_what_is_tested_and_how_sure_is_it(visitor, published_report):
    visitor.follow("About this run", ".top")
    model = published_report.model
    text = visitor.page.locator("main").inner_text()
    assert f"{model.agreed:,} of {len(model.answers):,} results: case, engine and model agree" in " ".join(text.split())
    assert f"{len(model.answers) - len(model.predicted)} results have no prediction, only two sources" in text


@pytest.mark.parametrize(
    ("error", "family"),
    [
        (
            "pyspark.errors.exceptions.captured.AnalysisException: Detected pattern of possible 'correctness' issue due to global "
            "watermark. The query contains stateful operation which can emit rows older than the current watermark plus allowed",
            "chained-aggregations",
        ),
        (
            "org.apache.spark.SparkUnsupportedOperationException: [STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] Provided value schema does "
            "not match existing state value schema.",
            "join-delays",
        ),
    ],
)
def test_an_error_message_that_somebody_pastes(visitor, error, family):
    found = visitor.search(error)
    assert any(case.startswith(family) for case in found)
    assert len(found) < 150


SEARCHED = yaml.safe_load((Path(__file__).parent / "searched.yaml").read_text(encoding="utf-8"))
MAY_MISS = 1
"""Of all phrases; the measurement is to find each."""


def test_what_people_write_finds_its_page_among_the_first_three(published_reader):
    reader = published_reader()
    page = reader.open("search.html")
    assert not [url for url in reader.requests if url.endswith("search-index.js")]
    root = page.url.removesuffix("search.html")
    field, links = page.get_by_role("searchbox"), page.locator("main [data-found] a")
    missed = []
    for phrase in (*SEARCHED["posted"], *SEARCHED["own"]):
        field.fill("")
        page.locator("main [data-found]").wait_for(state="hidden")
        field.fill(phrase["write"])
        links.first.wait_for()
        first = links.evaluate_all("all => all.slice(0, 3).map(one => decodeURI(one.href))")
        wanted = [re.sub("^docs:(.*)", rf"{DOCUMENTATION}\1.html", one) for one in phrase["find"]]
        if not any(fnmatch(link.removeprefix(root), one) for link in first for one in wanted):
            missed.append((phrase["write"], first))
    assert len(missed) <= MAY_MISS, missed
    assert len([url for url in reader.requests if url.endswith("search-index.js")]) == 1


def test_the_search_is_at_hand_on_every_page(visitor):
    """By the key, from a page in a folder; the answers lead to the pages, and all of them have an address."""
    page = visitor.page
    page.goto(page.url.replace("index.html", "cases/late-drops/window-still-open.html"))
    page.keyboard.press("/")
    page.keyboard.type("why was my late data not droped")
    answers = page.locator("header [data-found]")
    answers.get_by_role("link", name="Why was my late row not dropped?").wait_for()
    page.keyboard.press("Escape")
    assert answers.is_hidden()
    # Chromium empties the field too.
    page.get_by_role("searchbox", name="Search the whole report").fill("why was my late data not droped")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/search\.html#\?text=why\+was\+my\+late\+data\+not\+droped$"))
    page.locator("main [data-found] a", has_text="Why was my late row not dropped?").click()
    page.wait_for_url("**/questions.html#late-row-not-dropped")


def test_the_search_works_in_one_file(reader):
    page = reader().open("search?text=late+data", single=True)
    found = page.locator("main [data-found] a").first
    found.wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("searchbox", name="Search the whole report").fill("no such word as xqzv")
    page.get_by_text("found, the best first").wait_for()
    page.get_by_role("searchbox", name="Search the whole report").fill("xqzvkj")
    page.get_by_text("Nothing is found").wait_for()
    assert found.is_hidden()


def test_all_bugs_are_read_without_scrolling_sideways(published_reader):
    page = published_reader().open("bugs.html")
    assert page.locator(".scroll").evaluate("region => region.scrollWidth <= region.clientWidth")
    assert page.get_by_text("Workaround:").count() > 20
