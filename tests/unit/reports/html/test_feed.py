"""The feed of known bugs: valid Atom, one entry for each bug, ids and addresses that stay."""

from pathlib import Path
from xml.etree import ElementTree

from conformance.suite.discovery import Suite
from reports.analysis.report import Report
from reports.html.overview_pages import feed
from reports.html.writer import write, write_one_file
from tests.support import cells as a

ATOM = {"a": "http://www.w3.org/2005/Atom"}


def report(folder: Path, *later: str) -> Report:
    entries = {
        "f/ticket": a.bug(">=3", because="it is <lost>\x1b", link="SPARK-58904"),
        "f/none": a.bug("<4", because="it is late", link=None),
        "f/since": a.bug(">=3", because="it fails", link=None, introduced_by="SPARK-34081"),
    }
    answers = {
        case: {"3.5.9": a.LOST, "4.3.0": a.CALM if case == "f/none" else a.LOST}
        for case in ("f/none", "f/ticket", *later)
    }
    found = a.results(folder / "r.jsonl", answers, {case: (entries[case],) for case in answers})
    return Report.of(found, Suite(()))


def entries(text: str) -> dict[str, ElementTree.Element]:
    root = ElementTree.fromstring(text)
    # RFC 4287, sections 4.1.1 and 4.1.2: what a feed and an entry must have.
    for element in (root, *root.findall("a:entry", ATOM)):
        assert all(element.find(f"a:{name}", ATOM) is not None for name in ("id", "title", "updated", "link"))
    assert root.find("a:author/a:name", ATOM) is not None
    return {str(one.findtext("a:id", "", ATOM)).rpartition("/")[2]: one for one in root.findall("a:entry", ATOM)}


def test_each_bug_is_an_entry_that_says_where_it_is_and_what_to_do(tmp_path: Path) -> None:
    found = entries(feed(report(tmp_path), "bugs.html"))
    assert len(found) == 2
    bug = found["SPARK-58904"]
    assert bug.findtext("a:title", "", ATOM) == "SPARK-58904: it is <lost>"
    said = bug.findtext("a:summary", "", ATOM)
    assert said.startswith(
        "Seen on 3.5.9, 4.3.0. No release has fixed it. Workaround: Define a watermark on both inputs."
    )
    assert next(iter(bug.iterfind("a:link", ATOM))).get("href") == "bugs.html#SPARK-58904"
    (other,) = (one for key, one in found.items() if key != "SPARK-58904")
    assert "Seen on 3.5.9. Fixed in 4.0.0. No workaround is known." in other.findtext("a:summary", "", ATOM)


def test_a_new_bug_adds_an_entry_and_changes_no_id(tmp_path: Path) -> None:
    before = set(entries(feed(report(tmp_path), "bugs.html")))
    (tmp_path / "r.jsonl").unlink()
    after = set(entries(feed(report(tmp_path, "f/since"), "bugs.html")))
    assert after - before == {"SPARK-34081"}
    assert before <= after


def test_it_is_written_beside_the_pages_and_its_links_lead_to_rows(tmp_path: Path) -> None:
    site = write(report(tmp_path, "f/since"), tmp_path / "site").parent
    page = (site / "bugs.html").read_text()
    assert 'href="bugs.atom"' in page
    for one in entries((site / "bugs.atom").read_text()).values():
        for link in one.iterfind("a:link", ATOM):
            file, _, place = str(link.get("href")).partition("#")
            assert f'id="{place}"' in (site / file).read_text()


def test_one_file_has_none(tmp_path: Path) -> None:
    assert 'href="bugs.atom"' not in write_one_file(report(tmp_path), tmp_path / "one").read_text()
