"""``conformance``: the command line, one module per command.

Exit codes: 0 conforms · 1 does not conform · 2 wrong usage or an invalid case · 3 the harness or the machine failed ·
130 interrupted. An error that a command does not handle carries its ``exit_code``; an error without one exits with 3: the
machine failed, or we did. Every error takes one or two lines; ``--debug`` adds the traceback.
"""

import gc
import logging
from collections.abc import Sequence
from typing import Annotated

import typer

from conformance.cli.commands import Commands, list_all

EXAMPLES = """
Examples:

  # what your own job does on both, and whether its checkpoint resumes
  conformance check jobs/orders.py --from 3.5 --to 4.3 --sample orders=o.csv

  # what changes between two versions, from published results
  conformance gate --from 3.5.9 --to 4.3.0

  # a few cases of each family on the newest Spark this machine can run
  conformance run

  # why a query has no output, by its symptoms
  conformance explain --symptom no-output

Options shared by commands:

  --spark VERSION       a version; repeat it for more
  --from, --to VERSION  the older and the newer of two versions
  --cases PATH          your own cases, if not the suite's
  -o, --output PATH     the file or folder to write
  --json                output for programs
"""

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXAMPLES,
)
list_all(app)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(version("watermark-conformance"))
        except PackageNotFoundError:
            typer.echo("unknown (not installed)")
        raise typer.Exit


def _show_tracebacks(context: typer.Context, asked: bool) -> None:
    if asked and isinstance(context.command, Commands):
        context.command.debug = True
        logging.basicConfig(format="%(message)s")
        logging.getLogger("harness").setLevel(logging.DEBUG)


@app.callback()
def conformance(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", callback=_show_tracebacks, is_eager=True, help="Show where an error was raised.")
    ] = False,
) -> None:
    """Test Spark versions against the watermark semantics of Structured Streaming."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, by default the process's own, and exit with its code."""
    # A run creates many small long-lived values and few cycles: frequent collections would take a tenth of the time of
    # a run without an engine.
    gc.set_threshold(100_000, 20, 20)
    app(arguments, prog_name="conformance")


if __name__ == "__main__":
    main()
