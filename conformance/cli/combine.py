"""``conformance combine``: the results of several runs as one matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from reports.results.reading import Results
from reports.terminal.matrix import exit_code, show

EXAMPLES = """
Examples:

  conformance combine results-*.jsonl                        one matrix out of a run per version

  conformance combine results-*.jsonl --into all.jsonl       and one file
"""


def combine(
    results: Annotated[list[Path], typer.Argument(help="Results of runs of one suite.", show_default=False)],
    into: Annotated[Path | None, typer.Option(help="A file to write them all to.")] = None,
) -> None:
    """Put results of several runs together: of other versions or of other cases, but of one suite.

    Files of different suites, a cell that is there twice and a cell that is missing are refused by name. Exits as a run does.
    """
    together = Results.read_all(results)
    if into is not None:
        together.write(into)
    show(together, Console())
    raise typer.Exit(exit_code(together))
