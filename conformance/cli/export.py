"""``conformance export FORMAT``: results for CI systems and other programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from conformance.suite import discovery
from reports.analysis.change import changes
from reports.analysis.gate import find
from reports.analysis.matrix import Matrix
from reports.analysis.report import Report
from reports.exports.badge import badge
from reports.exports.ctrf import ctrf
from reports.exports.everything import everything
from reports.exports.junit import junit
from reports.exports.step_summary import step_summary
from reports.exports.workflow_commands import workflow_commands
from reports.results.reading import Results

Format: TypeAlias = Literal["junit", "summary", "annotations", "badge", "ctrf", "json"]

EXAMPLES = """
Examples:

  conformance export junit results.jsonl --out junit.xml              for Jenkins and GitLab

  conformance export summary results.jsonl >> $GITHUB_STEP_SUMMARY    differences first

  conformance export summary results.jsonl --from 3.5 --to 4.0        with what changes between two versions

  conformance export annotations results.jsonl --folder my/cases      at the lines of the cases

  conformance export badge results.jsonl --spark 4.3.0                for shields.io

  conformance export json results.jsonl | jq .summary                 everything the report says
"""


def export(
    format: Annotated[
        Format, typer.Argument(help="junit, summary, annotations, badge, ctrf, or json.", show_default=False)
    ],
    results: Annotated[list[Path], typer.Argument(help="Results of runs of one discovery.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="The file to write; the output by default.", show_default=False)
    ] = None,
    folder: Annotated[
        str, typer.Option(help="Where the cases lie in the repository: of annotations and ctrf.")
    ] = "cases",
    spark: Annotated[str | None, typer.Option(help="One version: of the badge.", show_default=False)] = None,
    from_: Annotated[
        str | None, typer.Option("--from", help="The older version: of the summary.", show_default=False)
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", help="The newer version: of the summary.", show_default=False)
    ] = None,
    cases: Annotated[
        list[Path] | None, typer.Option(help="Where the cases are that ran: of json.", show_default=False)
    ] = None,
) -> None:
    """Write results in a format that other programs read. What they say of the engines does not change the exit code."""
    if (from_ is None) != (to is None):
        raise typer.BadParameter("give both, or neither", param_hint="--from and --to")
    read = Results.read_all(results)

    def summarized() -> str:
        pairs = (changes(Matrix.of(read), find(read, from_), find(read, to)),) if from_ and to else ()
        return step_summary(read, pairs)

    writers: Mapping[Format, Callable[[], str]] = {
        "junit": lambda: junit(read),
        "summary": summarized,
        "annotations": lambda: workflow_commands(read, folder),
        "badge": lambda: badge(read, spark),
        "ctrf": lambda: ctrf(read, folder),
        "json": lambda: everything(Report.of(read, discovery.load(cases))),
    }
    text = writers[format]()
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8", newline="\n")
