"""Write a bug of Spark for its tracker: a report, what each release answered, a program and a test.

    python -m tools.bug_report CASE FOLDER

The folder has the program and the test where the case can be both, and the report says why one is missing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from conformance.cli.export import one_case, script, streamtest
from conformance.core.case import Case
from conformance.core.errors import WrongUsage
from reports.exports.programs import suite_name
from reports.results.known_bug import listed_bugs
from reports.results.published import patch_results, published_results
from reports.results.reading import Results
from reports.results.status import MARKS
from tools.bug_report.report import BugReport, written_by_hand

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def main(case: str, folder: str) -> None:
    try:
        files = bug_report_files(one_case(case), (published_results(), *patch_results()))
    except WrongUsage as error:
        sys.exit(str(error))
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (Path(folder) / name).write_text(text, encoding="utf-8")
    print(f"{folder}: {', '.join(sorted(files))}")


def bug_report_files(case: Case, results: Sequence[Results]) -> dict[str, str]:
    """Return each file of a bug report by its name; the report says why a program or a test is missing.

    ``results``: the published ones, of the newest releases first. Raises ``WrongUsage`` if nothing is known of the cause of a bug.
    """
    report = BugReport.of(case, results)
    if report is None:
        known = "\n  ".join(str(bug.case) for bug in listed_bugs().values() if bug.cause)
        raise WrongUsage(f"no bug is reported with {case.id}; these cases are reports:\n  {known}")
    files = written_by_hand(case)
    missing: list[str] = []
    makers: Mapping[str, Callable[[], str]] = {
        "reproduce.py": lambda: script(case),
        f"{suite_name(case)}.scala": lambda: streamtest(case, results[0]),
    }
    for name, make in makers.items():
        try:
            files[name] = files.get(name) or make()
        except WrongUsage as reason:
            missing.append(str(reason))
    program, suite = (name if name in files else None for name in makers)
    text = _TEMPLATES.get_template("report.md").render(
        report=report, found=report.found, script=program, suite=suite, missing=missing
    )
    answers = _TEMPLATES.get_template("versions.md").render(report=report, marks=MARKS)
    return {**files, "JIRA.md": text, "versions.md": answers}


if __name__ == "__main__":
    main(*sys.argv[1:])
