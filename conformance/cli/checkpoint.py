"""``conformance checkpoint``: what a checkpoint says, and what awaits it on another version, without Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from conformance.checkpoints import checkpoint_record, checkpoint_text
from conformance.checkpoints.awaiting import awaiting
from conformance.checkpoints.checkpoint import read
from conformance.checkpoints.files import open_files
from conformance.cli import options
from conformance.cli.commands import Command, CommandGroup
from conformance.cli.console import print_answer
from conformance.cli.options import option
from harness.targets.catalogue import Targets

REFUSED = 1
"""Exit code: the version refuses the checkpoint, or may."""

EXAMPLES = """
Examples:

  # where a query stands, what it reads and what it keeps
  conformance checkpoint inspect /data/checkpoints/orders

  # will Spark 4.1 resume it?
  conformance checkpoint inspect /data/checkpoints/orders --to 4.1

  # in an object store
  conformance checkpoint inspect s3://bucket/orders --to 4.1
"""

app = typer.Typer(add_completion=False, cls=CommandGroup, epilog=EXAMPLES, no_args_is_help=True)


@app.callback()
def checkpoint() -> None:
    """Inspect the checkpoint of a streaming query, without Spark.

    Only reads: nothing in the checkpoint is ever written.
    """


@app.command(cls=Command, epilog=EXAMPLES)
def inspect(
    where: Annotated[
        str,
        typer.Argument(
            metavar="DIR",
            help="The query's checkpointLocation: a folder, or a URL that fsspec reads.",
            show_default=False,
        ),
    ],
    to: Annotated[str | None, option("Say what awaits it on this version or line.", "VERSION", None)] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show where a query stands, what it reads and keeps, and what awaits it on another version.

    With --to, exits with 1 if that version refuses the checkpoint or may refuse it.
    """
    target = Targets.load().choose([to]).targets[-1] if to is not None else None
    found = read(open_files(where))
    changes = awaiting(found, target.version) if target is not None else ()
    lines = [*checkpoint_text.lines(found, datetime.now(UTC))]
    if target is not None:
        lines += checkpoint_text.awaiting_lines(changes, str(target.version))
    record = checkpoint_record.record(found, changes, str(target.version) if target is not None else None)
    print_answer(lines, record, as_json=as_json)
    if any(change.effect != "changes" for change in changes):
        raise typer.Exit(REFUSED)
