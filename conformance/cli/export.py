"""``conformance export FORMAT``: results for CI systems and other programs; a case as a program of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import typer

from conformance.cli.console import print_commands
from conformance.cli.options import argument, option, output_option
from conformance.core.case import Case
from conformance.core.errors import WrongUsage
from conformance.core.output_file import FileKind, write_file
from conformance.suite import discovery
from reports.analysis.bug_report import BugReport, written_by_hand
from reports.analysis.change import changes
from reports.analysis.matrix import Matrix
from reports.analysis.report import Report
from reports.exports.ci_reports import badge, ctrf, junit, step_summary, workflow_commands
from reports.exports.everything import everything
from reports.html.bug_report import jira, versions
from reports.html.pyspark_script import pyspark_script
from reports.html.streamtest_suite import NoLiteral, streamtest_suite, suite_name
from reports.results.known_bug import listed_bugs
from reports.results.lookup import find_both
from reports.results.published import patch_results, published_results
from reports.results.reading import Results

Format: TypeAlias = Literal[
    "junit", "summary", "annotations", "badge", "ctrf", "json", "script", "streamtest", "bug-report"
]

FORMATS = get_args(Format)


def export(
    format: Format = argument(..., f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}.", "FORMAT"),
    results: list[Path] = argument(..., "Results files of one suite; script, streamtest, bug-report: a case.", "FILE"),
    spark: str | None = option(None, "badge: only this version.", "VERSION"),
    from_: str | None = option(None, "summary: the older of two versions to compare.", "VERSION", None, "--from"),
    to: str | None = option(None, "summary: the newer of two versions to compare.", "VERSION", None, "--to"),
    cases: list[Path] | None = option(
        None,
        "annotations, ctrf: folder of the cases in the repository; json: the cases that ran, if not the suite's.",
        "PATH",
    ),
    output: Path | None = output_option(None, "Write this file instead of standard output; bug-report: the folder."),
) -> None:
    """Write results for other programs, or a case as one.

    What the results say does not change the exit code. A script needs nothing but PySpark, a suite Spark's StreamTest. The folder
    of a bug report has both, where the case can be both.
    """
    if (from_ is None) != (to is None):
        raise typer.BadParameter("pass both, or neither", param_hint="--from and --to")
    if cases and len(cases) > 1 and format in ("annotations", "ctrf"):
        raise typer.BadParameter(f"{format} takes one folder", param_hint="--cases")
    if format in ("script", "streamtest", "bug-report"):
        case = _one_case(results, format)
        if format == "bug-report":
            _write_bug_report(case, output)
        else:
            _write(_script(case) if format == "script" else streamtest(case, published_results()), format, output)
        return
    read = Results.read_all(results)
    folder = cases[0].as_posix() if cases else "cases"

    def summarized() -> str:
        pairs = (changes(Matrix.of(read), *find_both(read, from_, to)),) if from_ and to else ()
        return step_summary(read, pairs)

    writers: Mapping[Format, Callable[[], str]] = {
        "junit": lambda: junit(read),
        "summary": summarized,
        "annotations": lambda: workflow_commands(read, folder),
        "badge": lambda: badge(read, spark),
        "ctrf": lambda: ctrf(read, folder),
        "json": lambda: everything(Report.of(read, discovery.load(cases))),
    }
    _write(writers[format](), format, output)


def _one_case(cases: Sequence[Path], format: Format) -> Case:
    if len(cases) != 1:
        raise typer.BadParameter(f"{format} takes one case", param_hint="FILE")
    case = discovery.find(str(cases[0]))
    if not isinstance(case, Case):
        raise WrongUsage(f"{case.id} is a case on a watermark policy, which no Spark runs")
    return case


def _write_bug_report(case: Case, folder: Path | None) -> None:
    if folder is None:
        raise typer.BadParameter("bug-report writes a folder; name it", param_hint="--output")
    begins = _BEGIN["script"], _BEGIN["streamtest"]
    for name, text in bug_report_files(case, (published_results(), *patch_results())).items():
        write_file(folder / name, text, FileKind("a file of a bug report", lambda start: start.startswith(begins)))
    typer.echo(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")


def bug_report_files(case: Case, results: Sequence[Results]) -> dict[str, str]:
    """Returns each file of a bug report by its name; the report says why a program or a test is missing.

    ``results``: the published results, those of the newest releases first.

    Raises WrongUsage: nothing is known of the cause of a bug of the case.
    """
    report = BugReport.of(case, results)
    if report is None:
        known = "\n  ".join(str(bug.case) for bug in listed_bugs().values() if bug.cause)
        raise WrongUsage(f"no bug is reported with {case.id}; these cases are reports:\n  {known}")
    files = written_by_hand(case)
    missing: list[str] = []
    makers: Mapping[str, Callable[[], str]] = {
        "reproduce.py": lambda: _script(case),
        f"{suite_name(case)}.scala": lambda: streamtest(case, results[0]),
    }
    for name, make in makers.items():
        try:
            files[name] = files.get(name) or make()
        except WrongUsage as reason:
            missing.append(str(reason))
    script, suite = (name if name in files else None for name in makers)
    return {**files, "JIRA.md": jira(report, script, suite, missing), "versions.md": versions(report)}


def streamtest(case: Case, published: Results) -> str:
    """Returns the suite, by the published answers; raises WrongUsage with the reason if the case has none."""
    answered = [cell for cell in published.cells if cell.case == case.id and cell.case_digest == case.digest]
    columns = next((cell.observation.columns for cell in reversed(answered) if cell.observation), ())
    if not columns:
        raise WrongUsage(f"{case.id} has no published answer, which says the types of the rows that it expects")
    try:
        suite = streamtest_suite(case, columns)
    except NoLiteral as error:
        raise WrongUsage(f"{case.id} has values of the type {error}, which the suite cannot write in Scala") from None
    if suite is None:
        raise WrongUsage(
            f"{case.id} cannot be a StreamTest of rows in memory: it changes or kills the query at a restart, or has a backlog, a "
            "trigger, a source or a sink of its own, an expected error or Python code"
        )
    return suite


def _script(case: Case) -> str:
    script = pyspark_script(case)
    if script is None:
        raise WrongUsage(
            f"{case.id} is no plain program: it kills its engine, damages its checkpoint, changes its trigger, runs in real time, reads "
            "topics or tables, or calls code that is not in it"
        )
    return f"{script}\n"


def _write(text: str, format: Format, output: Path | None) -> None:
    if output is not None:
        write_file(
            output, text, FileKind(f"an export of the format {format}", lambda start: start.startswith(_BEGIN[format]))
        )
    elif format == "annotations":
        print_commands(text)
    else:
        typer.echo(text, nl=False)


_BEGIN: Mapping[Format, bytes] = {
    "junit": b'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="watermark-conformance"',
    "summary": b"## Watermark conformance\n",
    "annotations": b"::",
    "badge": b'{"schemaVersion": 1, "label": "watermark conformance',
    "ctrf": b'{\n "reportFormat": "CTRF"',
    "json": b'{\n "format": 1,',
    "script": b"# ",
    "streamtest": b"package org.apache.spark.sql.streaming\n",
}
"""Each format begins so: an export replaces only an earlier one."""
