"""Executes plans: a plan says which cells run and where, engines run them, a judge gives verdicts, and a sink takes what comes out.

Run, upgrade, check, resume and record are plans of cells, which ``execute`` runs. Who asks for one case after another, or for an engine
itself (pytest, crash, a case that Python code runs), has ``Engines``.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, Self, TypeAlias, TypeVar

from conformance.core.case import Case
from conformance.core.errors import WrongUsage
from conformance.core.observation import Identity
from conformance.core.wording import counted
from conformance.runner.resources import SessionOptions, interruptible, open_runtime
from harness.engine.engine import EngineLocation, EngineNeeds, Runtime
from harness.environments.cache_directory import answers_file
from harness.runtimes.options import RuntimeOptions
from harness.scheduling.answer_cache import AnswerCache, CachedAnswer, answer_key, expects_progress, question_digest
from harness.scheduling.cell_run import CellRun, CellTask, EngineListener, EngineSlot, Limits, TaskKey, run_cell
from harness.scheduling.kept_engines import KeptEngines
from harness.scheduling.scheduler import LaterCells, Scheduler
from harness.targets.targets import Target
from reports.results.records import Cell, Header, TargetRecord
from reports.results.writing import ResultsWriter

V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)
V_contra = TypeVar("V_contra", contravariant=True)
Cached: TypeAlias = Literal["never", "reused", "renewed"]
"""What becomes of answers of earlier runs: neither read nor kept; used instead of an engine; or only replaced by new ones."""


class DuplicateCell(ValueError):
    """Two cells of a plan have one key, so one would take the place of the other."""

    def __init__(self, key: TaskKey) -> None:
        self.key = key
        super().__init__(f"{key[0]} on {' → '.join(key[1])} is planned twice")


def check_keys(cells: Iterable[CellTask]) -> None:
    """Raise DuplicateCell if two cells that are planned together have one key."""
    for key, count in Counter(task.key for task in cells).items():
        if count > 1:
            raise DuplicateCell(key)


@dataclass(frozen=True)
class CellPlan:
    cells: tuple[CellTask, ...]
    runtime: RuntimeOptions
    limits: Limits
    work: Path | None = None
    """Working files are kept in this folder; None for a temporary one."""
    allow_code: bool = False
    cached: Cached = "never"
    kept: KeptEngines | None = None
    """Engines of other runs of the same command, used instead of new ones; None to end engines with the run."""
    later: LaterCells | None = None
    """More cells, which depend on answers."""

    def __post_init__(self) -> None:
        check_keys(self.cells)

    @classmethod
    def of(cls, options: SessionOptions, cells: Iterable[CellTask], limits: Limits) -> CellPlan:
        # Repetitions are run to see whether answers change.
        cached: Cached = "never" if limits.repeat > 1 else "renewed" if options.fresh else "reused"
        return cls(tuple(cells), options.runtime, limits, options.work, options.runtime.own_code is not None, cached)


class Judge(Protocol[V_co]):
    """Gives each cell its verdict. Threads may share it."""

    def without_run(self, task: CellTask, lacking: str | None) -> V_co | None:
        """The verdict on a cell that does not need to run, else None; ``lacking`` says why the runtime cannot run it."""

    def verdict(self, run: CellRun) -> V_co: ...

    def again(self, run: CellRun) -> Mapping[str, str] | None:  # noqa: ARG002
        """The settings with which a case runs once more before its verdict, besides those it ran with; None if it does not."""
        return None


class Display(EngineListener, Protocol[V_contra]):
    """What a person sees while cells run. Calls never overlap."""

    def started(self, task: CellTask) -> None: ...

    def judged(self, task: CellTask, verdict: V_contra, seconds: float) -> None: ...


class Sink(Protocol[V_contra]):
    """Takes what comes out of a run; calls never overlap.

    It is entered once engines can be started, and opens its file only then: an error before leaves earlier results as they are.
    """

    def __enter__(self) -> object:
        return self

    def __exit__(self, *error: Any) -> None:
        return

    def introduce(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        """Record an engine, at least once per target that runs, when an engine has introduced itself."""

    def keep(self, task: CellTask, verdict: V_contra, run: CellRun | None) -> None:
        """Take a judged cell; ``run`` is None if it did not need to run."""

    def finish(self) -> None:
        """Complete the output, when all cells are kept."""
        return

    def left(self) -> str:
        """Say what an interruption leaves behind."""


@dataclass(frozen=True)
class Reuse:
    """What an executed plan had from the cache of answers."""

    cells: int
    """This many cells were answered from it."""
    problem: str | None
    """Says why answers were not kept for the next run; None if they were, or were not to be."""


def execute(plan: CellPlan, judge: Judge[V], sink: Sink[V], display: Display[V]) -> Reuse:
    """Run the cells of a plan, and pass each verdict to the sink as it comes.

    Raises Interrupted: every engine has ended; HarnessError: no engine can be started; CannotWriteFile, OtherContent, BeingWritten.
    """
    with ExitStack() as stack:
        kept = plan.kept
        runtime = kept.runtime if kept is not None else stack.enter_context(open_runtime(plan.runtime, plan.work))
        stack.enter_context(sink)
        stack.enter_context(interruptible(sink.left))
        cache = None
        if plan.cached != "never":
            cache = stack.enter_context(AnswerCache(answers_file(), fresh=plan.cached == "renewed"))
        reused = run_cells(plan, judge, runtime, sink, display, cache)
        sink.finish()
    return Reuse(reused, cache.problem if cache is not None else None)


def run_cells(
    plan: CellPlan,
    judge: Judge[V],
    runtime: Runtime,
    sink: Sink[V],
    display: Display[V],
    cache: AnswerCache | None = None,
) -> int:
    """Run the cells of a plan on an open runtime, and pass each verdict on; returns how many the cache answered.

    Raises KeyboardInterrupt: the user stopped the run; every engine has ended. While ``plan.later`` is asked, sink and display are not
    called.
    """
    cached = CachedAnswers(cache, runtime, plan.limits.conf) if cache is not None else None
    judging = _Judging(judge, runtime, display, sink, cached, plan.later)
    first = judging.to_run(plan.cells) or judging.ready()
    code = plan.allow_code
    scheduler = Scheduler(runtime, plan.limits, judging, allow_code=code, kept=plan.kept, again=judge.again)
    scheduler.run(first, judging if plan.later is not None else None)
    return judging.reused


@dataclass
class _Judging(Generic[V]):
    """The scheduler's listener, with its later cells: calls display, sink and what adds cells one at a time, whichever engine reports."""

    judge: Judge[V]
    runtime: Runtime
    display: Display[V]
    sink: Sink[V]
    cached: CachedAnswers | None
    later: LaterCells | None
    reused: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def to_run(self, cells: Iterable[CellTask]) -> tuple[CellTask, ...]:
        """The cells that need an engine; the others are judged. Raises DuplicateCell."""
        cells = tuple(cells)
        check_keys(cells)
        to_run: dict[TaskKey, CellTask] = {}
        for task in cells:
            lacking = next(filter(None, (self.runtime.unsupported(task.case, target) for target in task.targets)), None)
            if (verdict := self.judge.without_run(task, lacking)) is None:
                to_run[task.key] = task
            else:
                self.keep(task, verdict, None)
        for task, answer in self.cached.lookup(to_run.values()) if self.cached is not None else ():
            self.reuse(task, answer)
            del to_run[task.key]
            self.reused += 1
        return tuple(to_run.values())

    @property
    def cases(self) -> Iterable[Case]:
        return self.later.cases if self.later is not None else ()

    def ready(self) -> tuple[CellTask, ...]:
        with self.lock:
            while self.later is not None and (cells := tuple(self.later.ready())):
                if to_run := self.to_run(cells):
                    return to_run
            return ()

    def engine_says(self, target: Target, line: str) -> None:
        with self.lock:
            self.display.engine_says(target, line)

    def engine_ready(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        with self.lock:
            self.sink.introduce(target, identity, place)
            self.display.engine_ready(target, identity, place)
            if self.cached is not None:
                self.cached.engine_ready(target, identity, place)

    def step_done(self) -> None:
        with self.lock:
            self.display.step_done()

    def cell_started(self, task: CellTask) -> None:
        with self.lock:
            self.display.started(task)

    def cell_done(self, run: CellRun) -> None:
        if self.cached is not None:
            self.cached.store(run)
        verdict = self.judge.verdict(run)
        with self.lock:
            self.keep(run.task, verdict, run)

    def reuse(self, task: CellTask, answer: CachedAnswer) -> None:
        for target, (identity, place) in zip(task.targets, answer.engines, strict=True):
            self.sink.introduce(target, identity, place)
        run = CellRun(task, (answer.observation,), None, seconds=answer.seconds, reused=True)
        self.keep(task, self.judge.verdict(run), run)

    def keep(self, task: CellTask, verdict: V, run: CellRun | None) -> None:
        self.sink.keep(task, verdict, run)
        self.display.judged(task, verdict, run.seconds if run else 0.0)


@dataclass(frozen=True)
class CachedAnswers:
    """The cache as one run sees it; ``conf``: Spark settings for every case of the run."""

    cache: AnswerCache
    runtime: Runtime
    conf: Mapping[str, str]
    _questions: dict[tuple[str, int | None], str] = field(default_factory=dict)
    _fingerprints: dict[str, str | None] = field(default_factory=dict)
    _engines: dict[str, tuple[Identity, EngineLocation]] = field(default_factory=dict)

    def lookup(self, tasks: Iterable[CellTask]) -> Iterator[tuple[CellTask, CachedAnswer]]:
        by_key: dict[str, list[CellTask]] = {}
        for task in tasks:
            if (key := self._key(task)) is not None:
                by_key.setdefault(key, []).append(task)
        used = []
        for key, answer in self.cache.lookup(list(by_key)):
            used.append(key)
            for task in by_key[key]:
                yield task, answer.for_case(task.case.id)
        self.cache.touch(used)

    def engine_ready(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        # The engine's environment may have been installed just now.
        self._fingerprints.pop(target.name, None)
        self._engines[target.name] = identity, place

    def store(self, run: CellRun) -> None:
        task, key = run.task, self._key(run.task)
        engines = tuple(self._engines[target.name] for target in task.targets if target.name in self._engines)
        # Whether settings of an engine's own explain a violation is tried each time.
        plain = not any(identity.settings or identity.fixed for identity, _ in engines)
        if run.failure is None and key is not None and plain and len(engines) == len(task.targets):
            seen = run.observations[0]
            seen = seen if expects_progress(task.case) else seen.without_progress()
            self.cache.store(key, CachedAnswer(observation=seen, engines=engines, seconds=run.seconds))

    def _key(self, task: CellTask) -> str | None:
        """None if the answer must not be reused: own code, files or a broker may have changed unseen; a workaround is tried each time."""
        if task.case.needs_code or task.case.topics or task.case.table_formats or task.workaround:
            return None
        engines = []
        for target in task.targets:
            if target.name not in self._fingerprints:
                self._fingerprints[target.name] = self.runtime.fingerprint(target)
            if (fingerprint := self._fingerprints[target.name]) is None:
                return None
            engines.append(fingerprint)
        question = task.case.id, task.cut
        if question not in self._questions:
            self._questions[question] = question_digest(task.case, self.conf, cut=task.cut)
        return answer_key(self._questions[question], engines)


def unseen(target: Target, runtime: str) -> TargetRecord:
    """The record of a target whose engine has not introduced itself yet."""
    return TargetRecord(name=target.name, spark=str(target.version), runtime=runtime)


def target_record(target: Target, identity: Identity, place: EngineLocation) -> TargetRecord:
    """The record of a target whose engine has introduced itself."""
    return TargetRecord(name=target.name, **identity.model_dump(exclude={"protocol", "apis"}), **vars(place))


@dataclass
class ResultsSink(Generic[V]):
    """Writes a results file: cells as they come, and each engine the first time it introduces itself."""

    path: Path
    """An error or an interruption leaves the file without its footer."""
    header: Header
    record: Callable[[CellTask, V, CellRun | None], Cell]
    answered: Iterable[Cell] = ()
    """Cells that need no engine are written last."""
    _introduced: set[str] = field(default_factory=set)

    def __enter__(self) -> Self:
        self._writer = ResultsWriter(self.path, self.header)
        return self

    def __exit__(self, *error: Any) -> None:
        self._writer.__exit__(*error)

    def introduce(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        if target.name not in self._introduced:
            self._introduced.add(target.name)
            record = target_record(target, identity, place)
            (before,) = (known for known in self.header.targets if known.name == target.name)
            if before.met and before.engine != record.engine:
                raise WrongUsage(
                    f"{target.name} is not as it was when it gave the answers that are kept; omit --resume"
                )
            self._writer.introduce(record)

    def keep(self, task: CellTask, verdict: V, run: CellRun | None) -> None:
        self._writer.write(self.record(task, verdict, run))

    def finish(self) -> None:
        for cell in self.answered:
            self._writer.write(cell)
        self._writer.finish()

    def left(self) -> str:
        return f"{self._writer.left_at} lacks {counted(len(self._writer.missing()), 'cell')} and its footer"


@dataclass(frozen=True)
class Collector(Sink[V]):
    """Keeps the verdicts on this many cells in the order in which they come, and the engines by name as they introduced themselves."""

    cells: int
    engines: dict[str, TargetRecord] = field(default_factory=dict)
    kept: list[tuple[V, CellRun | None]] = field(default_factory=list)

    def introduce(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        self.engines[target.name] = target_record(target, identity, place)

    def keep(self, task: CellTask, verdict: V, run: CellRun | None) -> None:  # noqa: ARG002
        self.kept.append((verdict, run))

    def left(self) -> str:
        return f"{self.cells - len(self.kept)} of {self.cells} answers are missing"


class Silent(EngineListener):
    def engine_says(self, target: Target, line: str) -> None: ...

    def engine_ready(self, target: Target, identity: Identity, place: EngineLocation) -> None: ...


class Engines:
    """Runs cases on one engine at a time: the engine of another version is closed first. They may run code if there is ``own_code``."""

    def __init__(self, options: RuntimeOptions, limits: Limits, listener: EngineListener | None = None) -> None:
        self._options = options
        self._limits = limits
        self._listener = listener or Silent()
        self._stack = ExitStack()
        self._runtime: Runtime | None = None
        self._slot: EngineSlot | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, case: Case, target: Target) -> CellRun:
        slot = self.slot(target, EngineNeeds.of(case, target))
        return run_cell(case, slot, self._limits, self._options.own_code is not None)

    def slot(self, target: Target, needs: EngineNeeds) -> EngineSlot:
        """The slot of an engine that gives what cases need: that of the last engine if it does, else a new one."""
        if self._slot is None or self._slot.target != target or not self._slot.needs.cover(needs):
            self.close_engine()
            if self._runtime is None:
                self._runtime = self._stack.enter_context(open_runtime(self._options))
            memory = self._limits.engine_memory
            self._slot = EngineSlot(self._runtime, target, self._listener, memory_limit=memory, needs=needs)
        return self._slot

    def close_engine(self) -> None:
        """End the engine, if one runs; the next case starts another."""
        if self._slot is not None:
            self._slot.close()
            self._slot = None

    def close(self) -> None:
        self.close_engine()
        self._runtime = None
        self._stack.close()
