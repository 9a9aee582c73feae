"""A campaign from what the user asked for to finds in a folder: choose oracles, engines among them, search, write each find."""

from __future__ import annotations

import random
import shlex
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import FrameType

from conformance.core.case import Case
from conformance.core.versions import SparkVersion, StateStore, StoreName, releases
from conformance.fuzzing.campaign import Campaign, CampaignListener, Tally
from conformance.fuzzing.case_files import written_into
from conformance.fuzzing.comparison import ByTheModel, Discrepancy
from conformance.fuzzing.generation import Drawing
from conformance.fuzzing.oracle import ModelOracle, Oracle, OracleAnswer
from conformance.runner.resources import Concurrency, OptionsClash, choose_targets, open_runtime
from harness.engine.engine import Runtime
from harness.errors import HarnessError
from harness.runtimes.options import RuntimeOptions
from harness.scheduling.cell_run import Limits, run_cell
from harness.scheduling.engine_slot import EngineListener, EngineSlot
from harness.targets.target import Target

OUTPUT = Path("found")
BIGGEST_SEED = 100_000


class NothingAnswered(HarnessError):
    """No engine answered any case."""

    def __init__(self, why: str) -> None:
        super().__init__(f"no engine answered any case: {why}")


@dataclass(frozen=True)
class FuzzOptions:
    """What the user asks of a campaign."""

    seconds: float
    """How long it searches."""
    spark: Sequence[str] = ()
    model: bool = False
    """Whether a difference from the reference model is a find by itself."""
    state_stores: Sequence[StoreName] = ()
    """Each Spark that has them answers once with each; with the case's own if empty."""
    families: Sequence[str] = ()
    seed: int | None = None
    most_cases: int | None = None
    output: Path = OUTPUT
    runtime: RuntimeOptions = field(default_factory=RuntimeOptions)
    work: Path | None = None
    concurrency: Concurrency = field(default_factory=Concurrency)


@dataclass(frozen=True)
class FuzzPlan:
    """Which oracles a campaign will ask."""

    options: FuzzOptions
    seed: int
    targets: tuple[Target, ...]
    """Empty if only the model answers."""
    notes: tuple[str, ...]
    """What the user should know about the choice of versions."""

    @property
    def command(self) -> str:
        """The command line that generates the same cases."""
        options = self.options
        words = ["conformance", "fuzz", *(word for one in options.spark for word in ("--spark", one))]
        words += ["--model"] * options.model
        words += [word for one in options.state_stores for word in ("--state-store", one)]
        words += [word for one in options.families for word in ("--family", one)]
        words += ["--seed", str(self.seed)]
        return shlex.join(words + (["--output", str(options.output)] if options.output != OUTPUT else []))


class FuzzDisplay(CampaignListener, EngineListener):
    """What the user sees of a campaign."""

    def started(self, seed: int, oracles: Sequence[str], by_the_model: bool) -> None:
        """The oracles are about to get the first cases."""

    def written(self, file: Path) -> None:
        """A find is in this file."""


@dataclass(frozen=True)
class FuzzOutcome:
    """A campaign that is over."""

    tally: Tally
    seconds: float
    interrupted: bool


def plan_fuzzing(options: FuzzOptions) -> FuzzPlan:
    """Choose versions and the seed.

    Raises:
        OptionsClash: there is nothing to test.
        UnknownTarget, NothingRuns, NoPyspark, UnusablePyspark: see `Targets.choose`.
    """
    if not options.spark and not options.model:
        raise OptionsClash("nothing to test: pass --spark, --model, or both")
    if options.state_stores and not options.spark:
        raise OptionsClash("the reference model has no state store: pass --spark, or omit --state-store")
    choice = choose_targets(options.spark) if options.spark else None
    seed = options.seed if options.seed is not None else random.randrange(BIGGEST_SEED)
    return FuzzPlan(options, seed, choice.targets if choice else (), choice.notes if choice else ())


def run_fuzzing(plan: FuzzPlan, display: FuzzDisplay) -> FuzzOutcome:
    """Search until the time is over, and write each find when it is small.

    Raises:
        NoSuchFamily: there is no such family of cases.
        NothingAnswered: no engine answered any case.
    """
    options = plan.options
    drawing = Drawing(options.families, plan.seed)
    with ExitStack() as stack:
        oracles = _oracles(plan, display, stack)
        for oracle in oracles:
            stack.callback(oracle.close)
        by_the_model = options.model or len(oracles) == 1
        display.started(plan.seed, [oracle.name for oracle in oracles], by_the_model)
        stopped = stack.enter_context(_stopped_by_signals())
        judge = ByTheModel(alone=by_the_model)
        campaign = Campaign(oracles, judge, drawing, display, jobs=options.concurrency.jobs, stopped=stopped)
        tally, began = campaign.tally, time.monotonic()

        def over() -> bool:
            enough = options.most_cases is not None and tally.cases >= options.most_cases
            return enough or time.monotonic() - began >= options.seconds

        def write(find: Discrepancy) -> None:
            display.written(written_into(options.output, find, plan.command))

        interrupted, written = False, 0
        try:
            for find in campaign.run(over):
                written += 1
                write(find)
        except KeyboardInterrupt:
            interrupted = True
            for find in tally.finds[written:]:
                write(find)
        seconds = time.monotonic() - began
    if not interrupted and tally.cases and sum(tally.unanswered.values()) >= tally.cases * len(oracles):
        raise NothingAnswered(tally.last_unanswered)
    return FuzzOutcome(tally, seconds, interrupted)


def _oracles(plan: FuzzPlan, display: FuzzDisplay, stack: ExitStack) -> Sequence[Oracle]:
    if not plan.targets:
        return [ModelOracle(version) for version in _newest_of_lines()]
    options = plan.options
    runtime = stack.enter_context(open_runtime(options.runtime, options.work))
    stores: list[StateStore | None] = [StateStore.named(name) for name in dict.fromkeys(options.state_stores)] or [None]
    pairs = [
        (target, store) for target in plan.targets for store in stores if store is None or store.on(target.version)
    ]
    return [
        EngineOracle(
            runtime,
            target,
            options.concurrency.limits(len(pairs), store=store),
            display,
            settings=store.name if store else "",
        )
        for target, store in pairs
    ]


def _newest_of_lines() -> list[SparkVersion]:
    return [*{version.line: version for version in releases()}.values()]


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


class EngineOracle:
    """Answers with the observation of a Spark.

    Args:
        runtime: starts the engine.
        target: which Spark.
        limits: cases at a time, step timeout, and Spark settings for all cases.
        listener: is notified of engine events.
        settings: a name for the settings, appended to the name of the target; empty for the defaults.
    """

    def __init__(
        self, runtime: Runtime, target: Target, limits: Limits, listener: EngineListener, *, settings: str = ""
    ) -> None:
        self._target = target
        self._limits = limits
        self._settings = settings
        self._slot = EngineSlot(runtime, target, listener, width=limits.side_by_side, memory_limit=limits.engine_memory)
        self._pool = ThreadPoolExecutor(limits.side_by_side, thread_name_prefix=target.name)
        self._numbers = count(1)

    @property
    def name(self) -> str:
        return f"{self._target.name} with {self._settings}" if self._settings else self._target.name

    @property
    def version(self) -> SparkVersion:
        return self._target.version

    @property
    def conf(self) -> Mapping[str, str]:
        return self._limits.conf

    @property
    def at_once(self) -> int:
        return self._limits.side_by_side

    def answers(self, cases: Sequence[Case]) -> Sequence[OracleAnswer]:
        return list(self._pool.map(self._answer, cases))

    def _answer(self, case: Case) -> OracleAnswer:
        # An engine identifies a case by its id, and a case being shrunk runs in several variants at once.
        alone = case.model_copy(update={"id": f"{case.id}-{next(self._numbers)}"})
        run = run_cell(alone, self._slot, self._limits, allow_code=False)
        if run.failure is not None:
            return OracleAnswer(None, run.failure)
        return OracleAnswer(run.observations[0])

    def close(self) -> None:
        self._slot.close()
        self._pool.shutdown(wait=False, cancel_futures=True)
