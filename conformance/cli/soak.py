"""``conformance soak``: millions of rows through one query, engines killed on the way, and laws that need no expected rows."""

from __future__ import annotations

import secrets
import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from conformance.cli import options, running
from conformance.runner import soak as soaking
from harness.runtimes.storage import StorageUrl
from harness.soak.engine import SoakEngine, SoakOptions
from reports.results.soak import InvariantRecord, SoakRecord, show

EXAMPLES = """
Examples:

  conformance soak                                       ten million rows on the newest Spark this machine can run

  conformance soak --spark 3.5 --kills 3                 the engine is killed three times on the way

  conformance soak --spark 4.0 --rows 50000 --kills 1    a minute's worth

  conformance soak --seed 7 --kills 3                    the same rows and the same moments as whoever wrote down this seed

  conformance soak --master spark://host:7077 --storage /shared --rows 1000000000 --partitions 64     on a cluster

  conformance soak --conf spark.sql.adaptive.enabled=true      with a setting of one's own
"""

_SAY_EVERY_S = 5.0


def soak(
    spark: Annotated[
        str, typer.Option(help="One version: 3.5.9, a line (3.5), newest, or installed.", metavar="VERSION")
    ] = "newest",
    rows: Annotated[int, typer.Option(min=1000, help="Rows of the stream.")] = 10_000_000,
    kills: Annotated[int, typer.Option(min=0, help="Engines to kill on the way, by SIGKILL, at random moments.")] = 0,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="What rows and moments follow from; a new one by default.", show_default=False),
    ] = None,
    partitions: Annotated[
        int, typer.Option(min=1, help="Tasks that read a micro-batch, and partitions of its state.")
    ] = 4,
    master: options.Master = None,
    conf: options.Conf = None,
    storage: options.Storage = None,
    results: Annotated[Path, typer.Option(help="Where the verdicts are kept.")] = Path("soak.json"),
    patience: Annotated[
        float, typer.Option(min=1, help="Seconds without a word after which an engine counts as lost.")
    ] = 600.0,
    work: Annotated[
        Path | None,
        typer.Option(
            help="Folder for input, checkpoint and output, kept; a temporary one by default. It must be empty."
        ),
    ] = None,
) -> None:
    """Run a generated stream with late rows through a query, kill engines on the way, and check laws of watermarks.

    No expected rows are needed: the laws are queries over what went in and what came out, and hold where they find nothing.
    """
    wished = running.wishes("local", master=master, conf=conf or (), storage=storage)
    if isinstance(wished.storage, StorageUrl):
        raise typer.BadParameter("a soak looks into its files itself: name a folder", param_hint="--storage")
    errors = running.errors_console()
    targets = running.chosen([spark], errors)
    if len(targets) != 1:
        raise typer.BadParameter(f"{spark} is {len(targets)} versions: a soak has one", param_hint="--spark")
    if work is not None and work.is_dir() and any(work.iterdir()):
        raise typer.BadParameter(f"{work} is not empty", param_hint="--work")
    stream = soaking.stream(rows, secrets.randbelow(1 << 31) if seed is None else seed, partitions)
    errors.print(
        f"{rows:,} rows, seed {stream.seed}, {kills} kill{'s' * (kills != 1)}, on {targets[0].name}"
        f"{f', {wished.cluster}' if wished.cluster else ''}; into {results}",
        markup=False,
        highlight=False,
    )
    started = datetime.now(UTC)
    with ExitStack() as stack:
        stack.enter_context(running.stopped(lambda: f"{results} is not written", errors))
        root = stack.enter_context(running.working_folder(work, wished.storage))
        watching: _Bar | _Lines = _Bar(rows, errors) if errors.is_terminal else _Lines()
        stack.enter_context(watching)
        settings = soaking.settings(stream, wished.conf)
        around = SoakOptions(targets[0], root, wished.cluster, settings, patience)
        engines: list[SoakEngine] = []

        def start() -> SoakEngine:
            engines.append(SoakEngine.start(around, watching))
            return engines[-1]

        found = soaking.run_soak(
            start, str(root), stream, kills, soaking.late_by(targets[0].version, wished.conf), watching
        )
    identity = engines[0].identity
    record = SoakRecord(
        command=running.command_line(),
        started=started,
        target=targets[0].name,
        spark=identity.spark,
        java=identity.java,
        master=wished.cluster.master if wished.cluster else None,
        rows=rows,
        seed=stream.seed,
        kills_wanted=kills,
        kills=found.run.kills,
        seconds=found.run.seconds,
        arrived=found.totals.arrived,
        counted=found.totals.counted,
        late=found.totals.late,
        in_state=found.totals.in_state,
        laws=tuple(map(InvariantRecord.of, found.invariants)),
    )
    record.write(results)
    show(record, Console())
    if record.kills < record.kills_wanted:
        errors.print(
            f"only {record.kills} of {kills} kills hit the running query: it was over before. Take more rows.",
            style="yellow",
            markup=False,
        )
    raise typer.Exit(record.exit_code)


class _Lines:
    """A line every few seconds, for logs."""

    def __init__(self) -> None:
        self._said = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, line: str, /) -> None:
        print(line, file=sys.stderr, flush=True)

    def progressed(self, rows: int, a_second: float, watermark: int | None, kills: int) -> None:
        if time.monotonic() - self._said > _SAY_EVERY_S:
            self._said = time.monotonic()
            self(f"{rows:,} rows, {_doing(a_second, watermark, kills)}")


class _Bar:
    """A bar over all rows, gone when it is over."""

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
    return f"{a_second:,.0f} a second, watermark {at}, {kills} kill{'s' * (kills != 1)}"
