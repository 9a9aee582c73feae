"""``tools.bug_report``: each bug whose cause is known becomes a whole report, or the report says what is missing and why."""

from pathlib import Path

import pytest

from conformance.core.versions import SparkVersion
from reports.exports.programs import suite_name
from reports.results.known_bug import ListedBug, listed_bugs
from reports.results.published import patch_results, published_results
from reports.results.reading import Results
from tests.support.whole_suite import whole_suite
from tools.bug_report.__main__ import bug_report_files, main
from tools.bug_report.report import BugReport

CASES = {case.id: case for case in whole_suite().cases}
FINDINGS = Path(__file__).parents[3] / "docs" / "findings.md"
BUGS = [bug for bug in listed_bugs().values() if bug.cause is not None]


@pytest.fixture(scope="module")
def results() -> tuple[Results, ...]:
    return published_results(), *patch_results()


@pytest.mark.parametrize("bug", BUGS, ids=[str(bug.title) for bug in BUGS])
def test_a_report_is_whole_or_says_what_is_missing(bug: ListedBug, results: tuple[Results, ...]) -> None:
    case = CASES[str(bug.case)]
    files = bug_report_files(case, results)
    text = files["JIRA.md"]
    assert text.startswith(f"# {bug.title}\n")
    if "reproduce.py" in files:
        compile(files["reproduce.py"], case.id, "exec")
    else:
        assert f"{case.id} is not a plain program: " in text
    suite = f"{suite_name(case)}.scala"
    if suite in files:
        assert f"class {suite_name(case)} extends StreamTest" in files[suite]
    else:
        assert f"{case.id} cannot be a StreamTest" in text
    report = BugReport.of(case, results)
    assert report is not None
    assert report.affected
    assert report.found is None or report.found[1], "the answer of an affected release is as it should be"
    assert (report.found is not None) == (report.entry is not None)
    assert bug.cause is not None
    assert all(place.method in text for place in bug.cause.places)
    assert [f"| {version} |" in files["versions.md"] for version in report.affected].count(False) == 0


def test_a_fix_in_the_newest_line_leaves_lines_to_mend(results: tuple[Results, ...]) -> None:
    report = BugReport.of(CASES["join-delays/equal-intervals-on-both-sides-of-a-range.subtracted-twice"], results)
    assert report is not None
    assert report.fixed_in == (SparkVersion.parse("4.2.1"),)
    assert [str(version) for version in report.unfixed[-3:]] == ["3.5.9", "4.0.5", "4.1.4"]
    assert not {SparkVersion.parse("4.2.1"), SparkVersion.parse("4.3.0")} & {*report.affected}


def test_the_page_of_bugs_has_each() -> None:
    """Its case is named there, whose report has the cause."""
    page = FINDINGS.read_text(encoding="utf-8")
    assert [bug.title for bug in BUGS if str(bug.case).partition(".")[0] not in page] == []


def test_the_command_writes_a_folder(tmp_path: Path) -> None:
    case = "deduplication/late-rows-escape-when-the-time-is-not-selected"
    main(case, str(tmp_path / "late"))
    assert {path.name for path in (tmp_path / "late").iterdir()} == {
        "JIRA.md",
        "LateRowsEscapeWhenTheTimeIsNotSelectedSuite.scala",
        "reproduce.py",
        "versions.md",
    }


def test_a_case_without_a_report_says_which_have_one(tmp_path: Path) -> None:
    with pytest.raises(
        SystemExit, match="no bug is reported with late-drops/window-still-open; these cases are reports:"
    ):
        main("late-drops/window-still-open", str(tmp_path / "x"))
