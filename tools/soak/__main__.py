"""``python -m tools.soak``: millions of rows through one query, its engine killed, and invariants that need no expected rows."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn

from conformance.cli import engine_options
from conformance.cli.commands import ProgramCommand
from conformance.cli.console import SafeConsole, command_line, errors_console
from conformance.cli.options import ENGINES, SELECT_VERSIONS, SPEED, grouped, option, output_option
from conformance.cli.progress import ProgressBar
from conformance.core.wording import counted
from harness.runtimes.cluster import StorageUrl
from tools.soak.run import SoakRequest, plan_soak, run_plan
from tools.soak.terminal import show

_SECONDS_BETWEEN_LINES = 5.0
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def _show_tracebacks(context: typer.Context, asked: bool) -> None:
    if asked and isinstance(context.command, ProgramCommand):
        context.command.debug = True


@app.command("soak", cls=ProgramCommand)
@grouped
def soak(
    *,
    spark: str = option(
        "newest", "A version (3.5.9), line (3.5), newest or installed; only one.", "VERSION", SELECT_VERSIONS
    ),
    rows: int = option(10_000_000, "Rows of the stream.", "N", min=1000),
    kills: int = option(0, "Kill the engine N times by SIGKILL, at random moments.", "N", min=0),
    seed: int | None = option(None, "Determines the rows and the moments of the kills; random by default.", "N", min=0),
    partitions: int = option(4, "Tasks that read a micro-batch, and partitions of its state.", "N", min=1),
    cluster: engine_options.ClusterOptions,
    env: engine_options.Env = None,
    work: Path | None = option(
        None,
        "Keep input, checkpoint and output in this empty folder; by default they are temporary.",
        "FOLDER",
        ENGINES,
    ),
    stall_timeout: float = option(
        600.0, "An engine without progress for this long counts as lost.", "SECONDS", SPEED, min=1
    ),
    output: Path = output_option(Path("soak.json"), "File of the verdicts."),
    _debug: Annotated[
        bool, typer.Option("--debug", callback=_show_tracebacks, is_eager=True, help="Show where an error was raised.")
    ] = False,
) -> None:
    """Run one long query, kill its engine, and check invariants.

    The stream is generated and has late rows. No expected rows are needed: the invariants are SQL queries over input and
    output that must find nothing.

    Exits with 0 if every invariant holds, 1 if one is broken, 3 if fewer kills hit the query than asked for.
    """
    where = engine_options.runtime_options(engine_options.EngineOptions(env=env), cluster)
    if isinstance(where.storage, StorageUrl):
        raise typer.BadParameter("a soak reads its files itself: pass a folder, not a URL", param_hint="--storage")
    plan = plan_soak(
        SoakRequest(
            output=output,
            command=command_line("python -m tools.soak"),
            spark=spark,
            rows=rows,
            kills=kills,
            seed=seed,
            partitions=partitions,
            stall_timeout=stall_timeout,
            runtime=where,
            work=work,
        )
    )
    errors = errors_console(plan.notes, plan)
    with _Rows(rows, errors) as watcher:
        record = run_plan(plan, watcher)
    show(record, SafeConsole())
    if record.kills < record.kills_wanted:
        errors.print(
            f"only {record.kills} of {counted(kills, 'kill')} hit the query before it ended; add rows",
            style="yellow",
            markup=False,
        )
    raise typer.Exit(record.exit_code)


class _Rows(ProgressBar):
    """A bar over all rows; else a line every few seconds."""

    def __init__(self, rows: int, errors: Console) -> None:
        columns = TextColumn("{task.completed:,.0f} of {task.total:,.0f} rows"), BarColumn(24)
        super().__init__("rows", rows, errors, *columns)
        self._printed = 0.0

    def __call__(self, line: str, /) -> None:
        self.says(line)

    def progressed(self, rows: int, a_second: float, watermark: int | None, kills: int) -> None:
        at = datetime.fromtimestamp((watermark or 0) / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
        doing = f"{a_second:,.0f} per second, watermark {at}, {counted(kills, 'kill')}"
        self.progress.update(self.all, completed=rows, doing=doing)
        if not self.on_terminal and time.monotonic() - self._printed > _SECONDS_BETWEEN_LINES:
            self._printed = time.monotonic()
            self.says(f"{rows:,} rows, {doing}")


if __name__ == "__main__":
    app(prog_name="python -m tools.soak")
