"""``conformance maintain combine``: the results of several runs as one matrix."""

from pathlib import Path

import typer

from conformance.cli import options
from conformance.cli.console import print_answer, width
from conformance.cli.options import argument, output_option
from reports.analysis.matrix import Matrix
from reports.results.reading import Results
from reports.terminal.matrix import lines


def combine(
    results: list[Path] = argument(..., "Results files.", "FILE"),
    verbose: options.Verbose = False,
    output: Path | None = output_option(None, "Write one results file."),
) -> None:
    """Merge the results of several runs of one suite.

    The runs may cover different versions or different cases. An error names files of different suites, duplicate cells
    and missing cells. Exit codes are those of `conformance run`.
    """
    combined = Results.read_all(results)
    # First, as the file that is written may be one of those that are read.
    print_answer(lines(combined, width(), verbose=verbose), verbose=verbose)
    if output is not None:
        combined.write(output)
    raise typer.Exit(Matrix.of(combined).exit_code)
