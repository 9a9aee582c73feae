"""``conformance case export FORMAT``: results for CI systems and other programs; a case as a program of its own."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import typer

from conformance.cli.console import print_commands
from conformance.cli.options import argument, option, output_option
from conformance.core.case import Case
from conformance.core.errors import WrongUsage
from conformance.core.output_file import FileKind, write_file
from conformance.suite import discovery
from reports.analysis.change import changes
from reports.analysis.matrix import Matrix
from reports.analysis.report import Report
from reports.exports.ci_reports import badge, junit, step_summary, workflow_commands
from reports.exports.everything import everything
from reports.exports.programs import NoLiteral, pyspark_script, streamtest_suite
from reports.results.published import find_both, published_results
from reports.results.reading import Results

Format: TypeAlias = Literal["junit", "summary", "annotations", "badge", "json", "script", "streamtest"]

FORMATS = get_args(Format)


def export(
    format: Format = argument(..., f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}.", "FORMAT"),
    results: list[Path] = argument(..., "Results files of one suite; script, streamtest: a case.", "FILE"),
    spark: str | None = option(None, "badge: only this version.", "VERSION"),
    from_: str | None = option(None, "summary: the older of two versions to compare.", "VERSION", None, "--from"),
    to: str | None = option(None, "summary: the newer of two versions to compare.", "VERSION", None, "--to"),
    cases: list[Path] | None = option(
        None,
        "annotations: folder of the cases in the repository; json: the cases that ran, if not the suite's.",
        "PATH",
    ),
    output: Path | None = output_option(None, "Write this file instead of standard output."),
) -> None:
    """Write results for other programs, or a case as one.

    What the results say does not change the exit code. A script needs nothing but PySpark, a suite Spark's StreamTest.
    """
    if (from_ is None) != (to is None):
        raise typer.BadParameter("pass both, or neither", param_hint="--from and --to")
    if cases and len(cases) > 1 and format == "annotations":
        raise typer.BadParameter("annotations takes one folder", param_hint="--cases")
    if format in ("script", "streamtest"):
        if len(results) != 1:
            raise typer.BadParameter(f"{format} takes one case", param_hint="FILE")
        case = one_case(str(results[0]))
        _write(script(case) if format == "script" else streamtest(case, published_results()), format, output)
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
        "json": lambda: everything(Report.of(read, discovery.valid(cases))),
    }
    _write(writers[format](), format, output)


def one_case(path: str) -> Case:
    """Return the case for Spark at this path or with this id; raise WrongUsage for a case on a watermark policy."""
    case = discovery.find(path)
    if not isinstance(case, Case):
        raise WrongUsage(f"{case.id} is a case on a watermark policy, which no Spark runs")
    return case


def streamtest(case: Case, published: Results) -> str:
    """Return the suite of a case, by the published answers; raise WrongUsage with the reason if it has none."""
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


def script(case: Case) -> str:
    """Return the program of a case; raise WrongUsage with the reason if it has none."""
    if (program := pyspark_script(case)) is None:
        raise WrongUsage(
            f"{case.id} is not a plain program: it kills its engine, damages its checkpoint, changes its trigger, runs in real time, reads "
            "topics or tables, chooses among files, or calls code that is not in it"
        )
    return f"{program}\n"


def _write(text: str, format: Format, output: Path | None) -> None:
    if output is not None:
        kind = FileKind(f"an export of the format {format}", lambda start: start.startswith(_BEGIN[format]))
        write_file(output, text, kind)
    elif format == "annotations":
        print_commands(text)
    else:
        typer.echo(text, nl=False)


_BEGIN: Mapping[Format, bytes] = {
    "junit": b'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="watermark-conformance"',
    "summary": b"## Watermark conformance\n",
    "annotations": b"::",
    "badge": b'{"schemaVersion": 1, "label": "watermark conformance',
    "json": b'{\n "format": 1,',
    "script": b"# ",
    "streamtest": b"package org.apache.spark.sql.streaming\n",
}
"""Each format begins so: an export replaces only an earlier one."""
