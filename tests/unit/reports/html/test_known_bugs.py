"""What one can do about a known bug stands wherever a reader meets the bug."""

from pathlib import Path

import pytest

from conformance.cli.main import main
from conformance.suite.discovery import Suite
from reports.analysis.report import Report
from reports.html.writer import write
from reports.results.known_bug import explained, listed_bugs
from reports.results.records import DocumentedDifference
from tests.support import cells as a

SETTING = "spark.sql.streaming.stateStore.stateSchemaCheck=false"


def site(folder: Path, link: str, spark: str = ">=3") -> Path:
    versions = {"3.5.9": a.LOST, "4.3.0": a.LOST if spark == ">=3" else a.CALM}
    found = a.results(folder / "r.jsonl", {"f/a": versions}, {"f/a": (a.bug(spark, link=link),)})
    write(Report.of(found, Suite(())), folder / "site")
    return folder / "site"


@pytest.mark.parametrize(("link", "told"), [("SPARK-39650", f"<code>{SETTING}</code>"), ("SPARK-1", "none known")])
def test_a_bug_of_both_versions(tmp_path: Path, link: str, told: str) -> None:
    pages = site(tmp_path, link)
    for page in ("bugs.html", "index.html", "compare/3.5.9..4.3.0.html", "cases/f/a.html"):
        assert told in (pages / page).read_text(), page


def test_its_source_is_a_link_to_a_ticket_or_to_a_case_with_a_page(tmp_path: Path) -> None:
    assert "jira/browse/SPARK-52195" in (site(tmp_path, "SPARK-52195") / "bugs.html").read_text()
    text = (site(tmp_path, "SPARK-57003") / "bugs.html").read_text()
    assert "<code>join-delays/inner-match-comes-with-the-later-row</code>" in text
    assert "cases/join-delays" not in text


def test_the_page_of_a_case_has_the_cause_with_its_lines(tmp_path: Path) -> None:
    bug = listed_bugs()["SPARK-58904", None, None]
    assert bug.cause is not None
    page = (site(tmp_path, "SPARK-58904") / "cases/f/a.html").read_text()
    assert "Cause in Spark&#39;s source" in page or "Cause in Spark's source" in page
    assert [place.method for place in bug.cause.places if bug.cause.address(place) not in page] == []


def test_a_page_without_a_known_cause_has_none(tmp_path: Path) -> None:
    assert "source</h2>" not in (site(tmp_path, "SPARK-1") / "cases/f/a.html").read_text()


def test_a_bug_without_tickets_is_explained_on_the_pages_of_its_file_alone() -> None:
    entry = DocumentedDifference.of(a.bug(">=3", link=None))
    told = explained("join-delays/equal-intervals-on-both-sides-of-a-range.moved-across", [entry])
    assert [bug.case for bug in told] == ["join-delays/equal-intervals-on-both-sides-of-a-range.subtracted-twice"]
    assert explained("join-delays/another", [entry]) == ()
    reported = "late-drops/limit-hides-the-rows-it-does-not-read-from-the-watermark"
    assert [bug.case for bug in explained(reported, [])] == [reported]


def test_a_bug_that_only_one_version_has(tmp_path: Path) -> None:
    assert SETTING in (site(tmp_path, "SPARK-39650", "<4") / "compare" / "3.5.9..4.3.0.html").read_text()


@pytest.mark.parametrize("spark", [">=3", "<4"])
def test_the_gate_tells_it(tmp_path: Path, spark: str, capsys: pytest.CaptureFixture[str]) -> None:
    site(tmp_path, "SPARK-39650", spark)
    with pytest.raises(SystemExit):
        main(["gate", str(tmp_path / "r.jsonl"), "--from", "3.5.9", "--to", "4.3.0"])
    told = capsys.readouterr().out
    assert "workaround: If only columns that are no keys were added or dropped, restart with the check" in told
    assert SETTING in told
    with pytest.raises(SystemExit):
        main(["gate", str(tmp_path / "r.jsonl"), "--from", "3.5.9", "--to", "4.3.0", "--json"])
    assert SETTING in capsys.readouterr().out
