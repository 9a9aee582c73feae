"""Runs cells: takes what the cache answers, lets the harness run the others, judges each answer, and passes every cell on as it comes."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

from conformance.core.observation import Identity
from conformance.runner.cached_answers import CachedAnswers
from harness.engine.engine import EngineLocation, Runtime
from harness.scheduling.answer_cache import AnswerCache, CachedAnswer
from harness.scheduling.cell_run import CellKey, CellRun, CellTask, Limits
from harness.scheduling.engine_slot import EngineListener
from harness.scheduling.scheduler import Scheduler
from harness.targets.target import Target

V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)
V_contra = TypeVar("V_contra", contravariant=True)


class Judge(Protocol[V_co]):
    """Gives each cell its verdict. Threads may share it."""

    def without_run(self, task: CellTask, lacking: str | None) -> V_co | None:
        """The verdict on a cell that does not need to run, None if it does; ``lacking``: why the runtime cannot run it."""

    def verdict(self, run: CellRun) -> V_co: ...


class Display(EngineListener, Protocol[V_contra]):
    """What a person sees while cells run. Calls never overlap."""

    def started(self, task: CellTask) -> None: ...

    def judged(self, task: CellTask, verdict: V_contra, seconds: float) -> None: ...


class Sink(Protocol[V_contra]):
    """Keeps the results. Calls never overlap."""

    def introduce(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        """An engine has introduced itself; at least once per target that runs."""

    def keep(self, task: CellTask, verdict: V_contra, run: CellRun | None) -> None:
        """A judged cell; ``run`` is None if it did not need to run."""


def run_cells(
    cells: Iterable[CellTask],
    judge: Judge[V],
    runtime: Runtime,
    limits: Limits,
    *,
    display: Display[V],
    sink: Sink[V],
    allow_code: bool = False,
    cache: AnswerCache | None = None,
) -> int:
    """Run cells and pass each verdict on; returns when all are done.

    Args:
        allow_code: whether cases may do what needs ``--allow-code``.
        cache: answers of earlier runs, used instead of an engine, and where new answers are stored; None for neither.

    Returns:
        How many cells were answered from the cache.

    Raises:
        KeyboardInterrupt: the user stopped the run; every engine has ended.
    """
    cached = CachedAnswers(cache, runtime, limits.conf) if cache is not None else None
    judging = _Judging(judge, display, sink, cached)
    to_run: dict[CellKey, CellTask] = {}
    for task in cells:
        lacking = next(filter(None, (runtime.unsupported(task.case, target) for target in task.targets)), None)
        verdict = judge.without_run(task, lacking)
        if verdict is None:
            to_run[task.key] = task
        else:
            judging.keep(task, verdict, None)
    reused = 0
    for task, answer in cached.lookup(to_run.values()) if cached is not None else ():
        judging.reuse(task, answer)
        del to_run[task.key]
        reused += 1
    Scheduler(runtime, limits, judging, allow_code=allow_code).run(to_run.values())
    return reused


class _Judging(Generic[V]):
    """The scheduler's listener: one call of display and sink at a time, whichever engine reports."""

    def __init__(self, judge: Judge[V], display: Display[V], sink: Sink[V], cached: CachedAnswers | None) -> None:
        self._judge = judge
        self._display = display
        self._sink = sink
        self._cached = cached
        self._lock = threading.Lock()

    def engine_says(self, target: Target, line: str) -> None:
        with self._lock:
            self._display.engine_says(target, line)

    def engine_ready(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        with self._lock:
            self._sink.introduce(target, identity, place)
            self._display.engine_ready(target, identity, place)
            if self._cached is not None:
                self._cached.engine_ready(target, identity, place)

    def cell_started(self, task: CellTask) -> None:
        with self._lock:
            self._display.started(task)

    def cell_done(self, run: CellRun) -> None:
        if self._cached is not None:
            self._cached.store(run)
        verdict = self._judge.verdict(run)
        with self._lock:
            self.keep(run.task, verdict, run)

    def reuse(self, task: CellTask, answer: CachedAnswer) -> None:
        """A cached answer takes the place of a run."""
        for target, (identity, place) in zip(task.targets, answer.engines, strict=True):
            self._sink.introduce(target, identity, place)
        run = CellRun(task, (answer.observation,), None, runnable=True, seconds=answer.seconds, reused=True)
        self.keep(task, self._judge.verdict(run), run)

    def keep(self, task: CellTask, verdict: V, run: CellRun | None) -> None:
        self._sink.keep(task, verdict, run)
        self._display.judged(task, verdict, run.seconds if run else 0.0)
