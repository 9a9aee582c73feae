"""``conformance fuzz``: cases nobody thought of, and what the Sparks and the reference model say of them."""

from __future__ import annotations

import random
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Console

from conformance.cli import options, running
from conformance.cli.duration import seconds
from conformance.cli.progress import introduced, said
from conformance.core.observation import Identity
from conformance.core.state_stores import StateStore
from conformance.core.versions import SparkVersion, releases
from conformance.fuzzing.campaign import Campaign, CampaignListener, Tally
from conformance.fuzzing.case_files import written_into
from conformance.fuzzing.comparison import ByTheModel
from conformance.fuzzing.engine_oracle import EngineOracle
from conformance.fuzzing.generation import Drawing
from conformance.fuzzing.model_oracle import FAILS, ModelOracle
from conformance.fuzzing.oracle import Oracle
from conformance.model.catalogue import catalogue
from conformance.strategies.families import FAMILIES
from harness.engine.engine import EngineLocation
from harness.errors import HarnessError
from harness.targets.target import Target

EXAMPLES = """
Examples:

  conformance fuzz --spark 3.5 --model --time 10m         what does Spark do that the reference model does not expect?

  conformance fuzz --spark 3.5.8 --spark 3.5.9            is there a difference between two versions that nobody knows of?

  conformance fuzz --spark 4.0 --rocksdb --family joins   does the state store change an answer?

  conformance fuzz --model --time 30s                     no Spark: which differences between versions do cases reach?

  conformance fuzz --spark 3.5 --model --seed 7           the same cases again
"""

REPORT_EVERY_S = 10.0
"""Seconds between two lines of progress where nobody watches."""
_BIGGEST_SEED = 100_000


class NothingAnswered(HarnessError):
    """No engine has answered any case."""

    def __init__(self, why: str) -> None:
        super().__init__(f"no engine answered any case: {why}")


def fuzz(
    spark: Annotated[
        list[str] | None,
        typer.Option(help="A version (3.5.9), a line (3.5), a range, newest, lines, installed. Repeatable."),
    ] = None,
    model: Annotated[
        bool,
        typer.Option(
            "--model",
            help="An answer that is not what the reference model says is a find by itself. Without any --spark the model "
            "alone is asked, for the newest release of every line.",
        ),
    ] = False,
    rocksdb: Annotated[
        bool, typer.Option("--rocksdb", help="Each Spark that has it a second time, with its state in RocksDB.")
    ] = False,
    family: Annotated[
        list[str] | None, typer.Option(help=f"What cases are about: {', '.join(FAMILIES)}. Repeatable.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=_BIGGEST_SEED, help="The same seed, the same cases.", show_default="random")
    ] = None,
    for_: Annotated[str, typer.Option("--time", metavar="TIME", help="How long: 90, 30s, 10m, 1h30m.")] = "10m",
    most: Annotated[int | None, typer.Option("--cases", min=1, help="At most so many cases.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for what is found; made with the first find.")] = Path("found"),
    jobs: options.Jobs = None,
    side_by_side: options.SideBySide = None,
    step_timeout: options.StepTimeout = options.STEP_TIMEOUT_S,
    runtime: options.RuntimeName = "local",
    image: options.Images = None,
    memory: options.Memory = None,
    cpus: options.Cpus = None,
    plain: options.Plain = False,
    work: options.Work = None,
) -> None:
    """Draw cases nobody thought of, run them on several Sparks, and make small what they answer differently.

    Every find is a case, written to a folder, with what each said and how to see it again. Differences that the reference
    model knows by a rule are counted, not found. Exits with 1 where there is a find.
    """
    wished = running.wishes(runtime, images=image or (), memory=memory, cpus=cpus, plain=plain)
    errors = running.errors_console()
    limit = seconds(for_)
    number = seed if seed is not None else random.randrange(_BIGGEST_SEED)
    drawing = Drawing(family or (), number)
    if not spark and not model:
        raise typer.BadParameter("nobody to ask: --spark, --model or both", param_hint="--spark")
    if rocksdb and not spark:
        raise typer.BadParameter("the reference model keeps no state in RocksDB: --spark", param_hint="--rocksdb")
    targets = running.chosen(spark, errors) if spark else ()
    again = _command(spark or (), model, rocksdb, family or (), number, out)
    display = _Display(errors)
    with ExitStack() as stack:
        oracles: Sequence[Oracle]
        if targets:
            engines = stack.enter_context(running.engines(wished, work))
            stores = [None, StateStore.named("rocksdb")] if rocksdb else [None]
            slots = [
                (target, store) for target in targets for store in stores if store is None or store.on(target.version)
            ]
            oracles = [
                EngineOracle(
                    engines,
                    target,
                    running.limits(
                        len(slots), jobs=jobs, side_by_side=side_by_side, step_timeout=step_timeout, store=store
                    ),
                    display,
                    settings=store.name if store else "",
                )
                for target, store in slots
            ]
        else:
            oracles = [ModelOracle(version) for version in _newest_of_lines()]
        for oracle in oracles:
            stack.callback(oracle.close)
        alone = model or len(oracles) == 1
        errors.print(
            f"seed {number}; {' and '.join(oracle.name for oracle in oracles)}{' by the model' if alone else ''}"
        )
        stopped = stack.enter_context(_stopped_by_signals())
        campaign = Campaign(oracles, ByTheModel(alone=alone), drawing, display, jobs=jobs, stopped=stopped)
        began = time.monotonic()

        def over() -> bool:
            return time.monotonic() - began >= limit or (most is not None and campaign.tally.cases >= most)

        interrupted = False
        kept = 0
        try:
            for find in campaign.run(over):
                kept += 1
                errors.print(f"found: {written_into(out, find, again)}", markup=False, style="bold red")
        except KeyboardInterrupt:
            interrupted = True
            for find in campaign.tally.finds[kept:]:
                errors.print(f"found: {written_into(out, find, again)}", markup=False, style="bold red")
        finally:
            display.over()
    _tell(campaign.tally, time.monotonic() - began, number)
    if interrupted:
        errors.print(f"interrupted; the same seed goes the same way: {again}", markup=False)
        raise typer.Exit(running.INTERRUPTED)
    if campaign.tally.cases and sum(campaign.tally.unanswered.values()) >= campaign.tally.cases * len(oracles):
        raise NothingAnswered(campaign.tally.last_unanswered)
    raise typer.Exit(1 if campaign.tally.finds else 0)


def _newest_of_lines() -> list[SparkVersion]:
    return [*{version.line: version for version in releases()}.values()]


def _command(spark: Sequence[str], model: bool, rocksdb: bool, families: Sequence[str], seed: int, out: Path) -> str:
    words = ["conformance", "fuzz", *(word for one in spark for word in ("--spark", one))]
    words += ["--model"] * model + ["--rocksdb"] * rocksdb
    words += [word for one in families for word in ("--family", one)]
    return shlex.join([*words, "--seed", str(seed), *(["--out", str(out)] if str(out) != "found" else [])])


@contextmanager
def _stopped_by_signals() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C or SIGTERM has come.

    Nothing is raised where the program happens to be: hypothesis swallows what is raised in its callbacks, and a find
    that is being written would be lost.
    """
    came = False

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        nonlocal came
        came = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Display(CampaignListener):
    """Progress on standard error: one line that changes on a terminal, a line now and then elsewhere."""

    def __init__(self, errors: Console) -> None:
        self._errors = errors
        self._status = errors.status("drawing the first cases") if errors.is_terminal else None
        if self._status is not None:
            self._status.start()
        self._began = self._last = time.monotonic()

    def went_on(self, tally: Tally) -> None:
        self._progress_callback(self._line(tally))

    def shrinking(self, written: Mapping[str, Any], tally: Tally) -> None:
        self._progress_callback(f"{self._line(tally)}; a find of {len(written['steps'])} steps becomes smaller")

    def engine_says(self, target: Target, line: str) -> None:
        self._progress_callback(said(target, line), always=True)

    def engine_ready(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        self._progress_callback(said(target, introduced(identity, place)), always=True)

    def over(self) -> None:
        """Leave the terminal as it was."""
        if self._status is not None:
            self._status.stop()

    def _line(self, tally: Tally) -> str:
        minutes = max(time.monotonic() - self._began, 1e-9) / 60
        finds = f"{len(tally.finds)} find{'s' * (len(tally.finds) != 1)}"
        return f"{tally.cases} cases, {tally.cases / minutes:.0f} a minute; {len(tally.rules)} of {len(catalogue())} rules reached; {finds}"

    def _progress_callback(self, line: str, *, always: bool = False) -> None:
        now = time.monotonic()
        if self._status is not None:
            self._status.update(line)
        elif always or now - self._last >= REPORT_EVERY_S:
            self._last = now
            print(line, file=sys.stderr, flush=True)


def _tell(tally: Tally, took: float, seed: int) -> None:
    """What the hunt came to, on standard output."""
    finds = len(tally.finds)
    print(f"{tally.cases} cases in {took:.0f} s, {tally.cases / max(took, 1e-9) * 60:.0f} a minute, seed {seed}")
    print(f"{finds} find{'s' * (finds != 1)}" + (f", and {tally.again} more like them" if tally.again else ""))
    for find in tally.finds:
        rules = ", ".join(name for name, _ in find.difference.rules) or "no rule of the model"
        print(f"  {find.name}: {find.difference.what}, {find.steps} steps, {find.rows} rows; {rules}")
    if tally.known:
        print(f"known differences: {sum(tally.known.values())}")
        for rules_, times in tally.known.most_common():
            names = ", ".join(f"{name} ({source})" for name, source in rules_) or "several rules together"
            print(f"  {times:5}  {names}")
    for title, counted in (
        ("cases the model does not predict", tally.not_predicted),
        ("cases without an answer", tally.unanswered),
    ):
        if counted:
            print(f"{title}: {sum(counted.values())}")
            for what, times in counted.most_common():
                print(f"  {times:5}  {what}" + ("  ← a defect of the model" if what.startswith(FAILS) else ""))
    if tally.unsteady:
        print(f"differences that did not come again: {tally.unsteady}")
    every = set(catalogue())
    print(
        f"rules reached: {len(tally.rules & every)} of {len(every)}; not: {', '.join(sorted(every - tally.rules)) or 'none'}"
    )
