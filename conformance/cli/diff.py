"""``conformance maintain diff A B``: whether two runs of the same versions saw the same, cell by cell."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from conformance.cli import options
from conformance.cli.console import print_answer
from conformance.cli.options import argument
from conformance.core.wording import counted
from reports.analysis.equivalence import Difference, DifferentCell, compare
from reports.results.reading import Results
from reports.results.records import TargetRecord
from reports.results.status import MARKS, final_style


def diff(
    a: Path = argument(..., "Results of one run.", "FILE"),
    b: Path = argument(..., "Results of the other run.", "FILE"),
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Compare two runs of the same Spark versions.

    Columns are paired by name, else by Spark version. To compare different versions use `conformance gate`.

    Exits with 0 if every cell that both runs have is the same, 1 if one is not, and 3 if none is compared, or fewer than both have.
    """
    difference = compare(Results.read(a), Results.read(b))
    print_answer(_lines(difference, a, b), _record(difference), as_json=as_json, verbose=verbose)
    raise typer.Exit(difference.exit_code)


def _lines(difference: Difference, a: Path, b: Path) -> Iterator[Text]:
    same = difference.compared - len(difference.different)
    counts = f"{counted(difference.compared, 'cell')} compared: {same} the same, {len(difference.different)} different"
    nothing = "nothing compared: no cell of the same case has an answer"
    yield Text(counts if difference.compared else nothing, style=final_style(difference.exit_code))
    for target, other in difference.pairs:
        yield Text(f"{_where(target)}  |  {_where(other)}", style="dim")
    for cell in difference.different:
        yield _line(cell)
        yield Text(f"    {cell.divergence}")
    if difference.changed:
        yield Text(f"not compared, because the case changed: {', '.join(difference.changed)}", style="yellow")
    for path, count in ((a, difference.only_a), (b, difference.only_b)):
        if count:
            yield Text(f"{counted(count, 'cell')} only in {path}", style="yellow")
    if difference.silent:
        yield Text(f"{counted(difference.silent, 'cell')} without an answer in either file", style="yellow")
    if difference.checkpoints:
        yield Text(f"{counted(difference.checkpoints, 'checkpoint')} not compared", style="yellow")


def _line(cell: DifferentCell) -> Text:
    marks = [MARKS[side.status] for side in (cell.a, cell.b)]
    return Text.assemble(
        ("≠ ", "bold red"),
        (f"{cell.case} on {cell.a.target}: ", "bold"),
        (f"{marks[0].glyph} {cell.a.status}", marks[0].style),
        " | ",
        (f"{marks[1].glyph} {cell.b.status}", marks[1].style),
    )


def _where(target: TargetRecord) -> str:
    image = f" {target.image}" if target.image else ""
    return f"{target.name}: {target.runtime}{image}, Java {target.java}, Python {target.python}, {target.os}"


def _record(difference: Difference) -> dict[str, Any]:
    return {
        "compared": difference.compared,
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
            for cell in difference.different
        ],
        "answered_in_neither": difference.silent,
        "checkpoints_not_compared": difference.checkpoints,
        "changed_cases": list(difference.changed),
        "only_in_first": difference.only_a,
        "only_in_second": difference.only_b,
    }
