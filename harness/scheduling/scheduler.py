"""Which cell runs when and in which engine: one engine a target, several cases side by side in it, several targets side by side."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.suite.running_time import longest_first
from harness.engine.alignment import SplitBatch, check_alignment
from harness.engine.engine import DriverFailed, EngineFailed, ExecutorsLost, KillMissed, Runtime, TooBusy
from harness.engine.request import calls_code, request_for
from harness.engine.segments import join_segments, kills_its_engine, segments_of
from harness.errors import HarnessError
from harness.scheduling.engine_slot import EngineListener, EngineSlot
from harness.targets.target import Target

Answer = TypeVar("Answer")

ATTEMPTS = 5
"""Runs of a cell until one shows what was meant: rows together in one micro-batch, an engine killed where it should be, no executor
lost."""


@dataclass(frozen=True)
class TargetQueue:
    """What one target runs."""

    target: Target
    cases: tuple[Case, ...]

    def parts(self) -> Iterator[TargetQueue]:
        """What runs in an engine of its own: cases that kill theirs would have all others wait for them, one after the other."""
        for killing in (False, True):
            cases = tuple(case for case in self.cases if kills_its_engine(case) is killing)
            if cases:
                yield TargetQueue(self.target, cases)


@dataclass(frozen=True)
class CellRun:
    """What running one cell gave: an observation per repetition, or why there is none."""

    case: Case
    target: Target
    observations: tuple[Observation, ...]
    failure: str | None
    """Why the harness has no answer; None where it has."""
    runnable: bool
    """False where the case holds a construct that no runtime can carry out yet; ``failure`` names it."""
    seconds: float
    reused: bool = False
    """Whether it was run earlier, and the answer kept."""


class Listener(EngineListener, Protocol):
    """Hears what becomes of cells too."""

    def cell_started(self, case: Case, target: Target) -> None: ...

    def cell_done(self, run: CellRun) -> None: ...


@dataclass(frozen=True)
class Limits:
    """How much at once, and how long."""

    jobs: int
    """Engines at the same time."""
    step_timeout: float
    """Seconds a step may take."""
    side_by_side: int = 1
    """Cases at the same time in one engine."""
    repeat: int = 1
    """Runs of each cell."""
    engine_memory: int | None = None
    """Bytes above which an engine is replaced, between two cases; None for never."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Spark settings for every case; what a case says itself is stronger."""


class Scheduler:
    """Runs lanes.

    Args:
        runtime: where engines come from.
        limits: budget.
        listener: hears every event; its methods are called from several threads.
        allow_code: whether cases may call Python code of their authors.
    """

    def __init__(self, runtime: Runtime, limits: Limits, listener: Listener, *, allow_code: bool = False) -> None:
        self._runtime = runtime
        self._limits = limits
        self._listener = listener
        self._allow_code = allow_code
        self._stopping = threading.Event()
        self._slots: list[EngineSlot] = []

    def run(self, queues: Iterable[TargetQueue]) -> None:
        """Run every lane to its end; each cell gives exactly one ``cell_done`` unless the run was stopped."""
        with ThreadPoolExecutor(max_workers=self._limits.jobs, thread_name_prefix="engine") as pool:
            self._all(pool.submit(self._run_queue, part) for queue in queues for part in queue.parts())

    def _all(self, futures: Iterable[Future[None]]) -> None:
        futures = list(futures)
        try:
            for future in futures:
                future.result()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every engine now; cells in flight give no ``cell_done``."""
        self._stopping.set()
        for slot in self._slots:
            slot.close()

    def _run_queue(self, queue: TargetQueue) -> None:
        if self._stopping.is_set():
            return
        slot = EngineSlot(
            self._runtime,
            queue.target,
            self._listener,
            width=self._limits.side_by_side,
            most_memory=self._limits.engine_memory,
        )
        self._slots.append(slot)
        cases = deque(longest_first(queue.cases))
        try:
            with ThreadPoolExecutor(self._limits.side_by_side, thread_name_prefix=queue.target.name) as pool:
                self._all(pool.submit(self._some, cases, slot) for _ in range(self._limits.side_by_side))
        finally:
            slot.close()

    def _some(self, cases: deque[Case], slot: EngineSlot) -> None:
        """One case after the other, until none is left."""
        while not self._stopping.is_set():
            try:
                case = cases.popleft()
            except IndexError:
                return
            self._listener.cell_started(case, slot.target)
            run = run_cell(case, slot, self._limits, self._allow_code)
            if not self._stopping.is_set():
                self._listener.cell_done(run)


def run_cell(case: Case, slot: EngineSlot, limits: Limits, allow_code: bool) -> CellRun:
    """Run one case on one target, as often as ``limits.repeat`` says. Never raises for what an engine or this machine did."""
    begun = time.monotonic()
    observations: list[Observation] = []
    failure, runnable = not_runnable(case, allow_code), True
    if failure is not None:
        runnable = False
    else:
        try:
            for _ in range(limits.repeat):
                observations.append(_observe(case, slot, limits))
        except (HarnessError, SplitBatch) as error:
            failure = str(error)
    return CellRun(case, slot.target, tuple(observations), failure, runnable, time.monotonic() - begun)


def _observe(case: Case, slot: EngineSlot, limits: Limits) -> Observation:
    return attempted(slot, kills_its_engine(case), lambda: _observe_once(case, slot, limits))


def attempted(slot: EngineSlot, alone: bool, observe: Callable[[], Answer]) -> Answer:
    """Use the engine of a seat until an attempt shows what was meant, at most ``ATTEMPTS`` times.

    An engine that was lost while several cases ran in it says nothing about who is to blame: each runs again, alone in another.

    Args:
        slot: of the engine.
        alone: whether nothing else may run in the engine meanwhile.
        observe: one attempt.

    Raises:
        EngineFailed, SplitBatch: the last attempt failed, or one that nothing else can have been to blame for.
        HarnessError: there is no engine.
    """
    for attempt in range(1, ATTEMPTS + 1):
        with slot.taken(alone=alone) as visit:
            try:
                return observe()
            except (SplitBatch, KillMissed, ExecutorsLost):
                if attempt == ATTEMPTS:
                    raise
            except TooBusy:
                if attempt == ATTEMPTS:
                    raise
                alone = True
            except DriverFailed:
                raise
            except EngineFailed:
                if not visit.company or attempt == ATTEMPTS:
                    raise
                alone = True
    raise AssertionError("unreachable: the last attempt returns or raises")


def _observe_once(case: Case, slot: EngineSlot, limits: Limits) -> Observation:
    """Where the case kills its engine, the next one of the seat goes on in the same directory."""
    directory = slot.engine().new_directory(case.id)
    seen: list[Observation] = []
    for segment in segments_of(case):
        engine = slot.engine()
        request = request_for(case, directory, engine.code_path, segment=segment, conf=limits.conf)
        seen.append(engine.observe(request, step_timeout=limits.step_timeout))
        check_alignment(request, seen[-1])
        if seen[-1].steps[-1].error is not None:
            break
    return join_segments(seen)


def not_runnable(case: Case, allow_code: bool) -> str | None:
    """Why the case cannot be run at all, None where it can."""
    if calls_code(case) and not allow_code:
        return "not run: the case calls Python code of its author (`call`); allow it with --allow-code"
    return None
