"""``conformance soak``: millions of rows through one query, its engine killed, and invariants that need no expected rows."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from conformance.cli import engine_options, options
from conformance.cli.console import command_line, errors_console
from conformance.core.wording import counted
from conformance.runner import soak_session
from conformance.runner.soak_session import SoakRequest, plan_soak
from harness.runtimes.storage import StorageUrl
from reports.results.soak import show

EXAMPLES = """
Examples:

  # ten million rows on the newest Spark this machine can run
  conformance soak

  # kill the engine three times
  conformance soak --spark 3.5 --kills 3

  # about a minute
  conformance soak --spark 4.0 --rows 50000 --kills 1

  # the same rows, and kills at the same moments, as with this seed
  conformance soak --seed 7 --kills 3

  # on a cluster
  conformance soak --master spark://host:7077 --storage /mnt/shared

  # with a Spark setting
  conformance soak --conf spark.sql.adaptive.enabled=true
"""

_SECONDS_BETWEEN_LINES = 5.0


@options.grouped
def soak(
    *,
    spark: Annotated[
        str,
        typer.Option(
            help="A version (3.5.9), line (3.5), newest or installed; only one.",
            metavar="VERSION",
            rich_help_panel=options.SELECT_VERSIONS,
        ),
    ] = "newest",
    rows: Annotated[int, typer.Option(min=1000, metavar="N", help="Rows of the stream.")] = 10_000_000,
    kills: Annotated[
        int, typer.Option(min=0, metavar="N", help="Kill the engine N times by SIGKILL, at random moments.")
    ] = 0,
    seed: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Determines the rows and the moments of the kills; random by default."),
    ] = None,
    partitions: Annotated[
        int, typer.Option(min=1, metavar="N", help="Tasks that read a micro-batch, and partitions of its state.")
    ] = 4,
    cluster: engine_options.Cluster,
    work: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep input, checkpoint and output in this empty folder; by default they are temporary.",
            rich_help_panel=options.ENGINES,
        ),
    ] = None,
    stall_timeout: Annotated[
        float,
        typer.Option(
            min=1,
            metavar="SECONDS",
            help="An engine without progress for this long counts as lost.",
            rich_help_panel=options.SPEED,
        ),
    ] = 600.0,
    output: Annotated[Path, options.output("File of the verdicts.")] = Path("soak.json"),
) -> None:
    """Run one long query, kill its engine, and check invariants.

    The stream is generated and has late rows. No expected rows are needed: the invariants are SQL queries over input and
    output that must find nothing.

    Exits with 0 if every invariant holds, 1 if one is broken, 3 if fewer kills hit the query than asked for.
    """
    where = engine_options.runtime_options(engine_options.Engines(), cluster)
    if isinstance(where.storage, StorageUrl):
        raise typer.BadParameter("a soak reads its files itself: pass a folder, not a URL", param_hint="--storage")
    plan = plan_soak(
        SoakRequest(
            output=output,
            command=command_line(),
            spark=spark,
            rows=rows,
            kills=kills,
            seed=seed,
            partitions=partitions,
            stall_timeout=stall_timeout,
            cluster=where.cluster,
            conf=where.conf,
            storage=where.storage,
            work=work,
        )
    )
    errors = errors_console(plan.notes)
    errors.print(str(plan), markup=False)
    with _Bar(rows, errors) if errors.is_terminal else _Lines() as watcher:
        record = soak_session.soak(plan, watcher)
    show(record, Console())
    if record.kills < record.kills_wanted:
        errors.print(
            f"only {record.kills} of {counted(kills, 'kill')} hit the query before it ended; add rows",
            style="yellow",
            markup=False,
        )
    raise typer.Exit(record.exit_code)


class _Lines:
    """A line every few seconds."""

    def __init__(self) -> None:
        self._printed = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, line: str, /) -> None:
        print(line, file=sys.stderr, flush=True)

    def progressed(self, rows: int, a_second: float, watermark: int | None, kills: int) -> None:
        if time.monotonic() - self._printed > _SECONDS_BETWEEN_LINES:
            self._printed = time.monotonic()
            self(f"{rows:,} rows, {_doing(a_second, watermark, kills)}")


class _Bar:
    """A bar over all rows; it disappears at the end."""

    def __init__(self, rows: int, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.completed:,.0f} of {task.total:,.0f} rows"),
            BarColumn(bar_width=24),
            TimeRemainingColumn(),
            TextColumn("{task.fields[doing]}", style="dim"),
            console=console,
            transient=True,
        )
        self._rows: TaskID = self._progress.add_task("rows", total=rows, doing="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, line: str, /) -> None:
        self._progress.update(self._rows, doing=line)

    def progressed(self, rows: int, a_second: float, watermark: int | None, kills: int) -> None:
        self._progress.update(self._rows, completed=rows, doing=_doing(a_second, watermark, kills))


def _doing(a_second: float, watermark: int | None, kills: int) -> str:
    at = datetime.fromtimestamp((watermark or 0) / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{a_second:,.0f} per second, watermark {at}, {counted(kills, 'kill')}"
