"""``conformance diff A B``: whether two runs saw the same, cell by cell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from reports.analysis.difference import Difference, DifferentCell, compare
from reports.results.reading import Results
from reports.results.records import Target
from reports.results.status import MARKS

EXAMPLES = """
Examples:

  conformance diff local.jsonl container.jsonl       does the suite see the same in both?

  conformance diff apache.jsonl ours.jsonl --json    for a program
"""


def diff(
    a: Annotated[Path, typer.Argument(help="Results of one run.", show_default=False)],
    b: Annotated[Path, typer.Argument(help="Results of another.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Compare what two runs observed. Targets are paired by name, else by Spark version.

    Exits with 0 where every cell that both have was answered alike, with 1 where one was not.
    """
    found = compare(Results.read(a), Results.read(b))
    if as_json:
        typer.echo(json.dumps(_record(found), indent=1, ensure_ascii=False))
    else:
        _show(found, a, b)
    raise typer.Exit(found.exit_code)


def _show(found: Difference, a: Path, b: Path) -> None:
    out = Console(soft_wrap=True, highlight=False)
    for pair in found.pairs:
        out.print(Text(f"{_where(pair.a)}  |  {_where(pair.b)}", style="dim"))
    for cell in found.different:
        out.print(_line(cell))
        out.print(Text(f"    {cell.divergence}"))
    if found.changed:
        out.print(Text(f"not compared, for the case itself differs: {', '.join(found.changed)}", style="yellow"))
    for path, count in ((a, found.only_a), (b, found.only_b)):
        if count:
            out.print(Text(f"{count} cell{'s' * (count != 1)} only in {path}", style="yellow"))
    if found.silent:
        out.print(Text(f"{found.silent} of them answered in neither", style="yellow"))
    same = found.compared - len(found.different)
    out.print(
        Text(
            f"{found.compared} cell{'s' * (found.compared != 1)} compared: {same} the same, {len(found.different)} different",
            style="bold red" if found.different else "bold green",
        )
    )


def _line(cell: DifferentCell) -> Text:
    marks = [MARKS[one.status] for one in (cell.a, cell.b)]
    return Text.assemble(
        ("≠ ", "bold red"),
        (f"{cell.case} on {cell.a.target}: ", "bold"),
        (f"{marks[0].glyph} {cell.a.status}", marks[0].style),
        " | ",
        (f"{marks[1].glyph} {cell.b.status}", marks[1].style),
    )


def _where(target: Target) -> str:
    image = f" {target.image}" if target.image else ""
    return f"{target.name}: {target.runtime}{image}, Java {target.java}, Python {target.python}, {target.os}"


def _record(found: Difference) -> dict[str, Any]:
    return {
        "compared": found.compared,
        "different": [
            {
                "case": cell.case,
                "target": cell.a.target,
                "statuses": [cell.a.status, cell.b.status],
                "step": cell.divergence.step,
                "batch": cell.divergence.batch,
                "what": cell.divergence.what,
                "values": list(cell.divergence.values),
            }
            for cell in found.different
        ],
        "answered_in_neither": found.silent,
        "changed_cases": list(found.changed),
        "only_in_first": found.only_a,
        "only_in_second": found.only_b,
    }
