"""A bug of Spark as Markdown: a report for its tracker, and what each release answered."""

from __future__ import annotations

from collections.abc import Iterable

from reports.analysis.bug_report import BugReport
from reports.html.texts import PLAIN
from reports.results.status import MARKS


def jira(report: BugReport, script: str | None, suite: str | None, missing: Iterable[str]) -> str:
    """Returns the report.

    Args:
        script: the name of the file with the program that shows the bug, if there is one.
        suite: the name of the file with the test, if there is one.
        missing: the reasons why the program or the test is missing.
    """
    template = PLAIN.get_template("bug_report.md")
    return template.render(report=report, found=report.found, script=script, suite=suite, missing=missing)


def versions(report: BugReport) -> str:
    """Returns a table of what each release answered, by the published results."""
    return PLAIN.get_template("bug_versions.md").render(report=report, marks=MARKS)
