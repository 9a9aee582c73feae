"""The specification as pages: complete, linked, and the same for every reader of Markdown."""

import re
from functools import cache
from html.parser import HTMLParser

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.model.rules import features
from reports.html.specification_pages import APPENDIX, LIST, ONE_PAGE, SpecificationPages, pages_of_report, render
from reports.html.texts import code, link, text
from tests.support.published import published_report, published_specification


@cache
def specification_pages():
    return SpecificationPages(published_report(), published_specification(), pages_of_report("../report"))


@cache
def markdown():
    return specification_pages().markdown()


@cache
def one_page():
    return render(specification_pages().one_page())


class Links(HTMLParser):
    """What a page links to, and the places that can be linked."""

    def __init__(self, page):
        super().__init__()
        self.targets, self.places, self.repeated, self.heads = [], set(), [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.targets += [given[name] for name in ("href", "src") if name in given]
        if "id" in given:
            self.repeated += [given["id"]] if given["id"] in self.places else []
            self.places.add(given["id"])
        if re.fullmatch("h[1-6]", tag):
            self.heads.append(int(tag[1]))


@cache
def links_of(name):
    """What a page of the specification links to; a page is rendered once for all tests."""
    return Links(render(markdown()[name]))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder that the command has written, with links to a report."""
    folder = tmp_path_factory.mktemp("specification")
    done = CliRunner().invoke(app, ["maintain", "specification", "-o", str(folder), "--report", "../report"])
    assert (done.exit_code, done.stdout) == (0, f"{folder / ONE_PAGE}\n")
    return folder


def test_every_statement_has_its_anchor_on_the_page_of_its_chapter():
    for chapter in published_specification().chapters:
        found = links_of(f"{chapter.name}.md")
        assert {one.number for one in chapter.statements} <= found.places
        assert found.repeated == []


def test_the_appendix_has_every_feature_and_all_that_the_model_does_not_predict():
    page = markdown()[APPENDIX]
    assert [name for name in features() if f"\n| {text(name)} | " not in page] == []
    unpredicted = published_specification().unpredicted
    assert [name for name in unpredicted if f"\n- {text(name)}: " not in page] == []
    assert {case for ids in unpredicted.values() for case in ids} <= set(
        re.findall(r"\[([^\]]+)\]\(\.\./report/", page)
    )
    assert "deduplication/real-time-duplicates" in unpredicted["a query in real-time mode"]
    assert {"appendix", "features", "not-predicted"} <= Links(one_page()).places


def test_links_between_the_pages_lead_to_a_place():
    pages = {name: links_of(name) for name in markdown()}
    checked = 0
    for name, page in pages.items():
        for target in page.targets:
            if not target.startswith(("https://", "../report/")):
                file, _, place = target.partition("#")
                assert place in pages[file or name].places or (file in pages and not place), (name, target)
                checked += 1
    assert checked > 150


def test_every_case_is_linked_to_its_page_of_the_report():
    found = links_of("03-late-filtering.md")
    assert "../report/cases/late-drops/window-still-open.html" in found.targets


def test_without_a_report_nothing_leads_there():
    pages = SpecificationPages(published_report(), published_specification(), pages_of_report(None)).markdown()
    assert not [target for page in pages.values() for target in Links(render(page)).targets if "cases/" in target]


def test_a_clause_is_shown_with_the_step_that_would_fail():
    shown = "- “counts both sides together”: `dropped` of step 2 of [A join drops rows of either side at or before the watermark"
    assert shown in markdown()["03-late-filtering.md"]


def test_a_clause_says_where_it_holds_if_that_is_not_where_its_statement_does():
    page = markdown()["03-late-filtering.md"]
    (joined,) = [line for line in page.splitlines() if line.startswith("- “counts both sides together”")]
    assert joined.endswith("(○ not tried: 3.0; ● holds: 3.1 – 4.3)"), "3.0 has no metric of late rows"
    (sides,) = [line for line in page.splitlines() if line.startswith("- “filters late rows one by one on each side”")]
    assert sides.endswith(")")
    assert "not tried" not in sides


def test_a_case_shows_its_known_bugs_though_they_are_none_of_its_statements():
    """6.1 holds by its own steps, and one of its cases shows the bug that 6.8 is about."""
    page = markdown()["06-multiple-inputs.md"]
    assert "`several-watermarks/silent-streams-do-not-lend-their-watermark` ▲ known bug: 3.2 – 3.5" in page


def test_the_page_to_print_is_whole_and_needs_nothing_else(written):
    page = (written / ONE_PAGE).read_text(encoding="utf-8")
    assert one_page() in page
    found = Links(page)
    assert {one.number for one in published_specification().statements} <= found.places
    assert found.repeated == []
    assert found.heads[0] == 1
    assert found.heads.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(found.heads, found.heads[1:], strict=False))
    assert "<details" not in page
    assert {target for target in found.targets if not target.startswith(("https://", "#", "../report/"))} == {"data:,"}
    assert {target[1:] for target in found.targets if target.startswith("#")} <= found.places


def test_the_list_to_print_has_each_sentence_and_leads_to_its_place_on_the_whole_page(written):
    found = Links((written / LIST).read_text(encoding="utf-8"))
    numbers = [target.removeprefix(f"{ONE_PAGE}#") for target in found.targets if target.startswith(f"{ONE_PAGE}#")]
    assert {one.number for one in published_specification().statements} <= {*numbers}
    assert {*numbers} <= Links((written / ONE_PAGE).read_text(encoding="utf-8")).places


def test_the_command_writes_the_pages_and_the_same_results_give_the_same_bytes(written):
    pages = {path.name: path.read_text(encoding="utf-8") for path in written.iterdir()}
    assert pages.pop(ONE_PAGE)
    assert pages.pop(LIST)
    assert pages == markdown()


def test_a_rule_is_shown_with_its_versions_and_the_functions_that_read_it():
    page = markdown()["03-late-filtering.md"]
    assert "rules.late_watermark = 'own batch'" in page
    assert "Spark `<3.4`: Lateness is decided by the watermark of the same micro-batch." in page
    assert "Read by `conformance.model.query.Query._execute`." in page
    assert "Read by `conformance.model.lateness.is_late`:\n\n```python\ndef is_late(" in page
    assert "def _at_or_before(time_us: int, watermark_ms: int) -> bool:" in page


@pytest.mark.parametrize(
    "words", ["a <=> b & c", "TIMESTAMP_NTZ *all*", "[x](y) #1 a|b ~c~", "`a_b <c>` d_e", "<script>"]
)
def test_words_of_a_case_stay_words(words):
    shown = re.sub("<[^>]+>", "", render(text(words))).strip()
    assert shown == words.replace("`", "").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def test_code_and_links_of_odd_words():
    assert "<code>a`b</code>" in render(code("a`b"))
    assert Links(render(link("a]b", "x y)z"))).targets == ["x%20y%29z"]


def test_the_date_is_that_of_the_report():
    finished = published_report().results.footer.finished
    assert f"Results of {finished:%Y-%m-%d}" in markdown()["index.md"]
