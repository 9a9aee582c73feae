"""Which cell runs when and in which engine: one engine a target, cases one after the other in it, several targets side by side."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from conformance.case import Case
from conformance.observation import Identity, Observation
from harness.alignment import SplitBatch, check_alignment
from harness.engine import DriverFailed, Engine, EngineFailed, KillMissed, Place, Runtime
from harness.legs import joined, legs
from harness.request import calls_code, request_for
from harness.say import Say
from harness.surroundings import SurroundingsFailed
from harness.target import Target

ATTEMPTS = 5
"""Runs of a cell until one shows what was meant: rows together in one micro-batch, an engine killed where it should be."""


@dataclass(frozen=True)
class Lane:
    """What one target runs."""

    target: Target
    cases: tuple[Case, ...]


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


class EngineListener(Protocol):
    """Hears what becomes of engines, from the threads in which it happens."""

    def engine_says(self, target: Target, line: str) -> None:
        """Progress of installing and starting."""

    def engine_ready(self, target: Target, identity: Identity, place: Place) -> None:
        """The engine has introduced itself; once per target, and again when it was replaced."""


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
    repeat: int = 1
    """Runs of each cell."""
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
        self._seats: list[EngineSeat] = []

    def run(self, lanes: Iterable[Lane]) -> None:
        """Run every lane to its end; each cell gives exactly one ``cell_done`` unless the run was stopped."""
        with ThreadPoolExecutor(max_workers=self._limits.jobs, thread_name_prefix="engine") as pool:
            futures = [pool.submit(self._lane, lane) for lane in lanes]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                self.stop()
                raise

    def stop(self) -> None:
        """End every engine now; cells in flight give no ``cell_done``."""
        self._stopping.set()
        for seat in self._seats:
            seat.close()

    def _lane(self, lane: Lane) -> None:
        seat = EngineSeat(self._runtime, lane.target, self._listener)
        self._seats.append(seat)
        try:
            for case in lane.cases:
                if self._stopping.is_set():
                    return
                self._listener.cell_started(case, lane.target)
                run = run_cell(case, seat, self._limits, self._allow_code)
                if not self._stopping.is_set():
                    self._listener.cell_done(run)
        finally:
            seat.close()


class EngineSeat:
    """The place of a target's engine: it is started when first needed and replaced when it was lost.

    Where an engine cannot be started, that is kept: it would fail again, and each attempt may take minutes.
    """

    def __init__(self, runtime: Runtime, target: Target, listener: EngineListener) -> None:
        self.target = target
        self._runtime = runtime
        self._listener = listener
        self._engine: Engine | None = None
        self._unstartable: SurroundingsFailed | None = None

    def engine(self) -> Engine:
        """The engine, started if need be.

        Raises:
            SurroundingsFailed: it cannot be started here.
        """
        if self._unstartable is not None:
            raise self._unstartable
        if self._engine is not None and self._engine.ended:
            self.close()
        if self._engine is None:
            try:
                self._engine = self._runtime.start(self.target, say=self._say())
            except SurroundingsFailed as error:
                self._unstartable = error
                raise
            self._listener.engine_ready(self.target, self._engine.identity, self._engine.place)
        return self._engine

    def close(self) -> None:
        """End the engine, if there is one; the next use starts another."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _say(self) -> Say:
        return lambda line, /: self._listener.engine_says(self.target, line)


def run_cell(case: Case, seat: EngineSeat, limits: Limits, allow_code: bool) -> CellRun:
    """Run one case on one target, as often as ``limits.repeat`` says. Never raises for what an engine or this machine did."""
    begun = time.monotonic()
    observations: list[Observation] = []
    failure, runnable = not_runnable(case, allow_code), True
    if failure is not None:
        runnable = False
    else:
        try:
            for _ in range(limits.repeat):
                observations.append(_observe(case, seat, limits))
        except DriverFailed as error:
            failure = str(error)
        except EngineFailed as error:
            seat.close()
            failure = str(error)
        except (SurroundingsFailed, SplitBatch) as error:
            failure = str(error)
    return CellRun(case, seat.target, tuple(observations), failure, runnable, time.monotonic() - begun)


def _observe(case: Case, seat: EngineSeat, limits: Limits) -> Observation:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _observe_once(case, seat, limits)
        except (SplitBatch, KillMissed):
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def _observe_once(case: Case, seat: EngineSeat, limits: Limits) -> Observation:
    """Where the case kills its engine, the next one of the seat goes on in the same directory."""
    directory = seat.engine().new_directory(case.id)
    seen: list[Observation] = []
    for leg in legs(case):
        engine = seat.engine()
        request = request_for(case, directory, engine.code_path, leg=leg, conf=limits.conf)
        seen.append(engine.observe(request, step_timeout=limits.step_timeout))
        check_alignment(request, seen[-1])
        if seen[-1].steps[-1].error is not None:
            break
    return joined(seen)


def not_runnable(case: Case, allow_code: bool) -> str | None:
    """Why the case cannot be run at all, None where it can."""
    constructs = sorted(set(case.not_yet_runnable()))
    if constructs:
        return f"not yet runnable: {', '.join(constructs)}"
    if calls_code(case) and not allow_code:
        return "not run: the case calls Python code of its author (`call`); allow it with --allow-code"
    return None
