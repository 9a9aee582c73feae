"""A bug of Spark as a report for its tracker: what happens, on which releases, why, and how to see it; in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conformance.core.wording import ticket
from reports.analysis.bug_report import BugReport
from reports.results.known_bug import Cause
from reports.results.status import MARKS

_SOURCE = "https://github.com/apache/spark/blob"
_SUITES = "sql/core/src/test/scala/org/apache/spark/sql/streaming/"


def jira(report: BugReport, script: str | None, suite: str | None, missing: Iterable[str]) -> str:
    """Returns the report.

    Args:
        script: the name of the file with the program that shows the bug, if there is one.
        suite: the name of the file with the test, if there is one.
        missing: why there is no program or no test.
    """
    return "\n".join(_lines(report, script, suite, missing)) + "\n"


def _lines(report: BugReport, script: str | None, suite: str | None, missing: Iterable[str]) -> Iterator[str]:
    case, listed, entry = report.case, report.listed, report.entry
    yield from (f"# {listed.title}", "")
    yield f"- Issue type: {'Bug' if entry is not None else 'Improvement'}"
    yield "- Component: Structured Streaming"
    yield f"- Affects versions: {_named(report.affected)}"
    if report.fixed_in:
        yield f"- Fixed in: {_named(report.fixed_in)}; not in {_named(report.unfixed)}"
    if listed.ticket or listed.introduced_by:
        yield f"- Ticket: {ticket(listed.ticket, listed.introduced_by, bug=True).strip(' ()')}"
    yield from ("", "## What happens", "")
    if entry is not None and entry.because:
        yield from (f"{entry.because[0].upper()}{entry.because[1:]}.", "")
    if report.found is not None:
        version, findings = report.found
        yield from (f"On Spark {version}, compared with what should happen:", "", "```text", findings, "```", "")
    yield from ("## What should happen" if entry is not None else "## Why", "", f"{' '.join(case.title.split())}.", "")
    yield from (case.why.rstrip() if case.why else "", "", "## How to reproduce", "")
    if script is not None:
        newest = "".join(f": `pip install pyspark=={version}`" for version in report.affected[-1:])
        yield from (f"`{script}` needs PySpark alone{newest}.", "")
    if suite is not None:
        fails = "It fails on the affected versions." if entry is not None else "It passes: it states what happens."
        yield from (f"`{suite}` is a test for `{_SUITES}`. {fails}", "")
    yield from (f"{each}.\n" for each in missing)
    if listed.cause is not None:
        yield from ("## Cause", "", *_cause(listed.cause))
    if listed.workaround is not None:
        yield from ("", "## Workaround", "", str(listed.workaround))


def _cause(cause: Cause) -> Iterator[str]:
    yield from (cause.text, "", f"In the source of {cause.release}:", "")
    for place in cause.places:
        lines = f", lines {place.lines.replace('-', '–')}" if place.lines else ""
        yield f"- [`{place.method}`]({_SOURCE}/v{cause.release}/{place.file}{place.anchor}){lines}"


def versions(report: BugReport) -> str:
    """Returns a table of what each release answered, by the published results."""
    rows = (
        f"| {version} | {MARKS[cell.status].word} | {(cell.differs.because or cell.differs.unsupported) if cell.differs else ''} |"
        for version, cell in report.answers
    )
    head = ("| Spark | its answer | why |", "|---|---|---|")
    return "\n".join((f"# Answers to {report.case.id}", "", *head, *rows)) + "\n"


def _named(releases: Iterable[object]) -> str:
    return ", ".join(map(str, releases))
