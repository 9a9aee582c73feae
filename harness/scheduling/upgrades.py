"""Checkpoints handed from one version to another: the steps before a cut run on one engine, the rest on others, each on a copy.

Every version has one engine that stays up; the steps before the cut run once for all who go on from there.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from conformance.core.case import Case
from conformance.core.observation import Observation
from harness.engine.alignment import SplitBatch, check_alignment
from harness.engine.engine import Runtime
from harness.engine.protocol import CaseRequest
from harness.engine.request import request_for
from harness.engine.segments import Segment, join_segments, segments_of
from harness.errors import HarnessError
from harness.scheduling.engine_slot import EngineListener, EngineSlot
from harness.scheduling.scheduler import Limits, attempted, not_runnable
from harness.targets.target import Target


@dataclass(frozen=True)
class Crossing:
    """A case that changes versions before step ``cut``: who writes its checkpoint, and who goes on from it."""

    case: Case
    cut: int
    origin: Target
    to: tuple[Target, ...]


@dataclass(frozen=True)
class CrossingRun:
    """What one cell gave: an observation over both engines, or why there is none."""

    case: Case
    cut: int
    origin: Target
    to: Target
    observation: Observation | None
    failure: str | None
    """Why the harness has no answer; None where it has."""
    runnable: bool
    """False where the case holds a construct that no runtime can carry out yet."""
    seconds: float


class CrossingListener(EngineListener, Protocol):
    """Hears what becomes of crossings too."""

    def crossing_done(self, run: CrossingRun) -> None: ...


class Upgrades:
    """Runs crossings.

    Args:
        runtime: where engines come from.
        limits: budget; ``jobs × side_by_side`` crossings run at the same time, and every version has one engine.
        listener: hears every event; its methods are called from several threads.
        allow_code: whether cases may call Python code of their authors.
    """

    def __init__(
        self, runtime: Runtime, limits: Limits, listener: CrossingListener, *, allow_code: bool = False
    ) -> None:
        self._runtime = runtime
        self._limits = limits
        self._listener = listener
        self._allow_code = allow_code
        self._stopping = threading.Event()
        self._slots: _Seats | None = None

    def run(self, crossings: Sequence[Crossing]) -> None:
        """Run all of them; each pair of each gives exactly one ``crossing_done`` unless the run was stopped."""
        limits = self._limits
        self._slots = _Seats(
            lambda target: EngineSlot(
                self._runtime,
                target,
                self._listener,
                width=limits.side_by_side,
                most_memory=limits.engine_memory,
            ),
            crossings,
        )
        with ThreadPoolExecutor(limits.jobs * limits.side_by_side, thread_name_prefix="crossing") as pool:
            futures = [pool.submit(self._cross, crossing) for crossing in crossings]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                self.stop()
                raise
            finally:
                self._slots.close()

    def stop(self) -> None:
        """End every engine now; cells in flight give no ``crossing_done``."""
        self._stopping.set()
        if self._slots is not None:
            self._slots.close()

    def _cross(self, crossing: Crossing) -> None:
        slots = self._slots
        if self._stopping.is_set() or slots is None:
            return
        begun = time.monotonic()
        hindrance = not_runnable(crossing.case, self._allow_code)
        if hindrance is not None:
            slots.used(crossing.origin)
            self._tell_all(crossing, None, hindrance, runnable=False)
            return
        try:
            before = self._write(crossing, slots)
        except (HarnessError, SplitBatch) as error:
            self._tell_all(crossing, None, str(error), seconds=time.monotonic() - begun)
            return
        finally:
            slots.used(crossing.origin)
        if before.observation.steps[-1].error is not None:
            self._tell_all(crossing, before.observation, None, seconds=time.monotonic() - begun)
            return
        for to in crossing.to:
            if self._stopping.is_set():
                return
            begun = time.monotonic()
            observation, failure = None, None
            try:
                observation = join_segments([before.observation, self._resume(crossing, to, before, slots)])
            except (HarnessError, SplitBatch) as error:
                failure = str(error)
            finally:
                slots.used(to)
            self._tell(crossing, to, observation, failure, time.monotonic() - begun)
        slots.discard(before.saved)

    def _write(self, crossing: Crossing, slots: _Seats) -> _Written:
        """The steps before the cut, on the version that writes the checkpoint.

        Where the case kills its engine at the cut, that is the engine of this version.
        """
        case, cut = crossing.case, crossing.cut
        killed = tuple(segment for segment in segments_of(case, 1, cut) if segment.killed and segment.last == cut)
        way = segments_of(case, 1, cut)[: -len(killed)] if killed else segments_of(case, 1, cut - 1)
        slot = slots.of(crossing.origin)

        def write() -> _Written:
            directory = slot.engine().new_directory(case.id)
            saved = f"{directory}.saved"
            observation = self._walk(case, way, directory, slot, save=saved)
            if killed:
                self._save(case, directory, saved, slot)
            return _Written(observation, directory, saved)

        return attempted(slot, bool(killed) or any(segment.killed for segment in way), write)

    def _resume(self, crossing: Crossing, to: Target, before: _Written, slots: _Seats) -> Observation:
        """The rest, on the version that goes on, from a copy of its own of what was written."""
        rest = segments_of(crossing.case, crossing.cut)
        slot = slots.of(to)
        discard = slots.discarded()
        return attempted(
            slot,
            any(segment.killed for segment in rest),
            lambda: self._walk(crossing.case, rest, before.directory, slot, restore=before.saved, discard=discard),
        )

    def _walk(
        self,
        case: Case,
        way: Sequence[Segment],
        directory: str,
        slot: EngineSlot,
        *,
        restore: str | None = None,
        save: str | None = None,
        discard: tuple[str, ...] = (),
    ) -> Observation:
        seen: list[Observation] = []
        for segment in way:
            engine = slot.engine()
            request = request_for(case, directory, engine.code_path, segment=segment, conf=self._limits.conf)
            first, last = segment is way[0], segment is way[-1]
            request = request.model_copy(
                update={
                    "restore": restore if first else None,
                    "discard": discard if first else (),
                    "save": save if last else None,
                }
            )
            seen.append(self._observe(request, slot))
            if seen[-1].steps[-1].error is not None:
                break
        return join_segments(seen)

    def _save(self, case: Case, directory: str, saved: str, slot: EngineSlot) -> None:
        """Put away what an engine left that was killed, by the one that took its place."""
        request = request_for(case, directory, segment=Segment(len(case.steps) + 1, len(case.steps)))
        self._observe(request.model_copy(update={"save": saved}), slot)

    def _observe(self, request: CaseRequest, slot: EngineSlot) -> Observation:
        observation = slot.engine().observe(request, step_timeout=self._limits.step_timeout)
        check_alignment(request, observation)
        return observation

    def _tell_all(
        self,
        crossing: Crossing,
        observation: Observation | None,
        failure: str | None,
        *,
        runnable: bool = True,
        seconds: float = 0.0,
    ) -> None:
        """The same answer for everyone who would have gone on."""
        for to in crossing.to:
            if self._slots is not None:
                self._slots.used(to)
            self._tell(crossing, to, observation, failure, seconds, runnable=runnable)

    def _tell(
        self,
        crossing: Crossing,
        to: Target,
        observation: Observation | None,
        failure: str | None,
        seconds: float,
        *,
        runnable: bool = True,
    ) -> None:
        if not self._stopping.is_set():
            self._listener.crossing_done(
                CrossingRun(crossing.case, crossing.cut, crossing.origin, to, observation, failure, runnable, seconds)
            )


@dataclass(frozen=True)
class _Written:
    observation: Observation
    directory: str
    """Where the case ran, and where whoever goes on must find it: checkpoints hold absolute paths."""
    saved: str
    """Where what was written is kept."""


class _Seats:
    """One engine a version, ended when nobody needs it any more."""

    def __init__(self, slot: Callable[[Target], EngineSlot], crossings: Iterable[Crossing]) -> None:
        self._lock = threading.Lock()
        self._left: Counter[str] = Counter()
        self._slots: dict[str, EngineSlot] = {}
        self._discarded: list[str] = []
        for crossing in crossings:
            for target in (crossing.origin, *crossing.to):
                self._left[target.name] += 1
                if target.name not in self._slots:
                    self._slots[target.name] = slot(target)

    def of(self, target: Target) -> EngineSlot:
        return self._slots[target.name]

    def used(self, target: Target) -> None:
        """One who needed an engine of this version needs it no more."""
        with self._lock:
            self._left[target.name] -= 1
            done = self._left[target.name] <= 0
        if done:
            self._slots[target.name].close()

    def discard(self, directory: str) -> None:
        """Let the next engine that has something to do remove a directory."""
        with self._lock:
            self._discarded.append(directory)

    def discarded(self) -> tuple[str, ...]:
        with self._lock:
            found, self._discarded = tuple(self._discarded), []
        return found

    def close(self) -> None:
        for slot in self._slots.values():
            slot.close()
