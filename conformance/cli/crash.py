"""``conformance maintain crash``: a query restarted from checkpoints that a crash in a micro-batch may leave."""

from pathlib import Path

import typer
from rich.console import Console

from conformance.checkpoints.crash_images import FAULTS
from conformance.cli import engine_options, options
from conformance.cli.console import command_line, errors_console, print_error, print_tables
from conformance.cli.options import argument, grouped, one_of, option, output_option
from conformance.cli.progress import ProgressBar
from conformance.core.case import SourceOption
from conformance.core.wording import counted
from conformance.runner.crash import CrashPoint, CrashRequest, plan_crashes, run_crashes
from conformance.runner.resources import STEP_TIMEOUT_S, Concurrency
from harness.targets.targets import Target
from reports.results.checkpoint_status import OUTCOMES
from reports.results.crash import CrashRecord
from reports.terminal.checkpoint import tables

_IMAGES_PER_LINE = 25


@grouped
def crash(
    *,
    paths: list[Path] = argument(..., "Cases or folders of cases, each without a restart.", "PATH"),
    tag: options.Tag = None,
    source: SourceOption = option(
        "files",
        "Where rows come from: with kafka each case that can crashes while it reads a topic, as CASE@kafka.",
        "files|kafka",
        options.SELECT_CASES,
    ),
    step: int | None = option(
        None,
        "Crash in the micro-batches of this step; by default the last one with rows that other rows follow.",
        "N",
        options.SELECT_CASES,
        min=1,
    ),
    at_most: int | None = option(
        None,
        "Restart from at most N images of a micro-batch, evenly spread; by default from all.",
        "N",
        options.SPEED,
        min=1,
    ),
    fault: list[str] | None = option(
        None, f"Only images of this fault: {', '.join(FAULTS)}. Repeatable.", "NAME", options.SPEED
    ),
    spark: list[str] | None = option(
        None,
        "A version (3.5.9), line (3.5) or range (>=3.4); newest (default) or lines. Repeatable.",
        "VERSION",
        options.SELECT_VERSIONS,
    ),
    settings: engine_options.Settings,
    state_store: engine_options.StateStore = None,
    step_timeout: engine_options.StepTimeout = STEP_TIMEOUT_S,
    verbose: options.Verbose = False,
    output: Path = output_option(Path("crashes.jsonl"), "File of the records, a JSON line for each image."),
) -> None:
    """Restart a query from checkpoints that a crash may leave.

    Records the file operations of one micro-batch and builds images of a crash in it: each prefix of the operations, also with rows that
    arrive before the restart, with the last file torn or empty, with one file lost or cut off after the commit, with several files lost,
    empty, cut off or back by a power failure (a sample), or with a file of the state that was not created, or that comes back from the
    first attempt after the second.
    The query is restarted from each. It must continue with the same rows, or refuse with an error that says what is wrong.

    Needs Linux. Exits with 0 if it never emits other rows and loses none, 1 if it does, 3 without an answer. An error that does not say
    what is wrong is shown and does not count.
    """
    plan = plan_crashes(
        CrashRequest(
            output=output,
            command=command_line(),
            paths=paths,
            tags=tag or (),
            source=source,
            spark=spark or (),
            step=step,
            images=at_most,
            faults=[one_of(FAULTS, text, "--fault") for text in fault or ()],
            state_store=state_store,
            runtime=engine_options.runtime_options(engine_options.EngineOptions(), settings),
            concurrency=Concurrency(step_timeout=step_timeout),
        )
    )
    errors = errors_console(plan.notes, plan)
    with _Images(errors) as watcher:
        records = run_crashes(plan, watcher)
    print_tables(tables(records), verbose=verbose)
    raise typer.Exit(records.exit_code)


class _Images(ProgressBar):
    """A bar over all images that are known by now; else a line for each recording, each image that must not be, and every few images."""

    def __init__(self, errors: Console) -> None:
        super().__init__("images", 0, errors)
        self._images = self._done = 0

    def recorded(self, point: CrashPoint, target: Target, images: int) -> None:
        self._images += images
        self.progress.update(self.all, total=self._images)
        self.engine_says(target, f"{point.case.id}, step {point.step}: recorded, {counted(images, 'image')}")

    def judged(self, record: CrashRecord) -> None:
        self._done += 1
        self.progress.update(self.all, advance=1, doing=record.operation)
        loud = record.outcome in {"other rows", "no answer"}
        if self.on_terminal and loud:
            self.progress.console.print(str(record), style=OUTCOMES[record.outcome].style, markup=False)
        elif not self.on_terminal and (loud or self._done % _IMAGES_PER_LINE == 0):
            print_error(f"[{self._done}/{self._images}] {record}")
