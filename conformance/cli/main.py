"""``conformance``: the commands, one file each, and what their errors mean to the caller.

Exit codes: 0 conforms · 1 does not · 2 wrong usage or an invalid case · 3 the harness or its surroundings failed. An
error that a command does not handle itself carries its ``exit_code``; one that carries none is a defect, and counts as 3.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli import (
    combine,
    diff,
    explain,
    export,
    gate,
    new,
    policies,
    record,
    report,
    run,
    targets,
    upgrade,
    validate,
)
from conformance.language import InvalidCase

FAILED = 3
"""The harness or its surroundings failed."""

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("validate", epilog=validate.EXAMPLES)(validate.validate)
app.command("run", epilog=run.EXAMPLES)(run.run)
app.command("explain", epilog=explain.EXAMPLES)(explain.explain)
app.command("policies", epilog=policies.EXAMPLES)(policies.policies)
app.command("upgrade", epilog=upgrade.EXAMPLES)(upgrade.upgrade)
app.command("diff", epilog=diff.EXAMPLES)(diff.diff)
app.command("combine", epilog=combine.EXAMPLES)(combine.combine)
app.command("report", epilog=report.EXAMPLES)(report.report)
app.command("gate", epilog=gate.EXAMPLES)(gate.gate_)
app.command("export", epilog=export.EXAMPLES)(export.export)
app.command("new", epilog=new.EXAMPLES)(new.new)
app.command("record", epilog=record.EXAMPLES)(record.record)
app.add_typer(targets.app, name="targets")


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
    try:
        app(arguments, prog_name="conformance")
    except InvalidCase as invalid:
        for problem in invalid.problems:
            print(problem.render(relative_to=Path.cwd()), file=sys.stderr)
        sys.exit(invalid.exit_code)
    except Exception as error:
        code = getattr(error, "exit_code", None)
        if code is None:
            traceback.print_exc()
        else:
            print(f"conformance: {error}", file=sys.stderr)
        sys.exit(FAILED if code is None else code)


def _version() -> str:
    try:
        return version("watermark-conformance")
    except PackageNotFoundError:
        return "unknown (not installed)"


if __name__ == "__main__":
    main()
