"""``conformance report``: results as pages for people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.suite import discovery
from reports.analysis.gate import published
from reports.analysis.model_agreement import reference_model
from reports.analysis.report import Report
from reports.html.writer import write, write_one_file
from reports.results.reading import Results

EXAMPLES = """
Examples:

  conformance report                                       of the published results: no Spark needed

  conformance report results.jsonl                         a folder of pages; open site/index.html

  conformance report spark-*.jsonl --out site              of several runs of one suite, put together

  conformance report results.jsonl --out . --single-file   everything in one file, to send

  conformance report mine.jsonl --cases my/cases           of one's own cases
"""


def report(
    results: Annotated[
        list[Path] | None,
        typer.Argument(help="Results of runs of one suite; those published with it by default.", show_default=False),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("site"),
    single_file: Annotated[
        bool, typer.Option("--single-file", help="Write one file, report.html, that holds every page.")
    ] = False,
    cases: Annotated[
        list[Path] | None,
        typer.Option(help="Where the cases are that ran; the suite's own by default. Repeatable.", show_default=False),
    ] = None,
) -> None:
    """Write a report that opens without a server or a network: what changes, the matrix, each case, behaviours, the run.

    The same results give the same bytes. What the results say of the engines does not change the exit code.
    """
    made = Report.of(Results.read_all(results or list(published())), discovery.load(cases), reference_model)
    typer.echo(str((write_one_file if single_file else write)(made, out)))
