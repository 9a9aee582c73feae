"""``conformance``: the commands, one file each, and what their errors mean to the caller.

Exit codes: 0 conforms · 1 does not · 2 wrong usage or an invalid case · 3 the harness or its surroundings failed. An
error that a command does not handle itself carries its ``exit_code``; one that carries none is a defect, and counts as 3.
"""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.commands import Commands, list_all

FAILED = 3
"""The harness or its surroundings failed."""

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
list_all(app)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(_version())
        raise typer.Exit


@app.callback()
def conformance(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Conformance of Spark versions to the watermark semantics of Structured Streaming."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; never returns.

    Args:
        arguments: those of the process where none are given.

    Raises:
        SystemExit: always, with one of the exit codes.
    """
    # A run makes many small values that live to its end, and hardly a cycle: to look for garbage among them all again and again
    # is a tenth of what a run without an engine takes.
    gc.set_threshold(100_000, 20, 20)
    try:
        app(arguments, prog_name="conformance")
    except Exception as error:
        sys.exit(_progress_callback(error))


def _progress_callback(error: Exception) -> int:
    """Print what went wrong, and give the exit code it means."""
    # Only what has raised it has needed it, and not every command reads cases.
    from conformance.language import InvalidCase

    code = getattr(error, "exit_code", None)
    if isinstance(error, InvalidCase):
        for problem in error.problems:
            print(problem.render(relative_to=Path.cwd()), file=sys.stderr)
    elif code is None:
        traceback.print_exception(error)
    else:
        print(f"conformance: {error}", file=sys.stderr)
    return FAILED if code is None else int(code)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("watermark-conformance")
    except PackageNotFoundError:
        return "unknown (not installed)"


if __name__ == "__main__":
    main()
