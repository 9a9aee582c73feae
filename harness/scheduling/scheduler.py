"""Decides which cell runs when and in which engine: one engine per target, several cases side by side in it, several targets at once.

Cells that change targets share the steps before the cut: these run once, and each resuming target continues from a copy.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol

from conformance.core.case import Case
from conformance.core.errors import end_waits
from conformance.core.observation import Observation
from conformance.suite.selection import estimated_batches
from harness.engine.engine import EngineNeeds, Runtime
from harness.engine.request import kills_its_engine
from harness.scheduling.cell_run import (
    CellRun,
    CellTask,
    EngineListener,
    EngineSlot,
    Limits,
    SavedCheckpoint,
    completed,
    run_after_cut,
    run_and_keep,
    run_before_cut,
)
from harness.scheduling.kept_engines import SIGNALS_WAIT, KeptEngines
from harness.targets.targets import Target


class Listener(EngineListener, Protocol):
    """Is told what happens to cells, too."""

    def cell_started(self, task: CellTask) -> None: ...

    def cell_done(self, run: CellRun) -> None: ...


class LaterCells(Protocol):
    """Cells of which only answers show that they are needed."""

    @property
    def cases(self) -> Iterable[Case]:
        """The cases that they may be of: engines start with what these need, too."""

    def ready(self) -> Iterable[CellTask]:
        """Asked after each answer, from several threads: cells that may run now, each given once."""


class SlotKey(NamedTuple):
    """Which engine of a run a case uses."""

    target: str
    for_kills: bool
    """Whether it is the target's second engine, for cases that kill it: in the first, all others would wait for each kill."""
    needs: EngineNeeds
    """Without what an engine may have although its cases do not need it."""


@dataclass(frozen=True)
class CellBatch:
    """Cells whose first steps run only once: a cell without a cut, all cells that resume the same checkpoint, or all that resume what
    one run has kept, which they do in its directory, one after another.
    """

    cells: tuple[CellTask, ...]

    @property
    def first(self) -> CellTask:
        """Any of the cells, for what they have in common."""
        return self.cells[0]

    @property
    def slot(self) -> SlotKey:
        """The engine of the first step."""
        if self.first.before is not None:
            return _resuming(self.first)
        # With cuts, engines of many versions run at once: a second one for each would not fit into memory.
        case, origin, whole = self.first.case, self.first.origin, self.first.cut is None
        needs = replace(EngineNeeds.of(case, origin), topics=False, main=False)
        if not whole:
            needs = replace(needs, real_time=False)
        return SlotKey(origin.name, whole and kills_its_engine(case), needs)

    def uses(self) -> Iterator[tuple[SlotKey, Target]]:
        if self.first.before is None:
            yield self.slot, self.first.origin
        if self.first.cut is not None:
            yield from ((_resuming(cell), cell.target) for cell in self.cells)


def _resuming(cell: CellTask) -> SlotKey:
    """The engine of the steps after the cut."""
    return SlotKey(cell.target.name, False, EngineNeeds(jars=cell.case.jars, code=bool(cell.case.needs_code)))


def queues(cells: Iterable[CellTask]) -> dict[SlotKey, tuple[CellBatch, ...]]:
    """What each engine starts, the longest cases first."""
    batches: dict[tuple[str, str, object], list[CellTask]] = {}
    for cell in cells:
        # Whole cases share nothing if a setting differs.
        shared = (
            cell.before.directory if cell.before else tuple(cell.workaround.items()) if cell.cut is None else cell.cut
        )
        batches.setdefault((cell.origin.name, cell.case.id, shared), []).append(cell)
    by_slot: dict[SlotKey, list[CellBatch]] = {}
    for batch in (CellBatch(tuple(cells)) for cells in batches.values()):
        by_slot.setdefault(batch.slot, []).append(batch)
    targets = list(dict.fromkeys(slot.target for slot in by_slot))
    return {
        slot: tuple(sorted(by_slot[slot], key=lambda batch: estimated_batches(batch.first.case), reverse=True))
        for slot in sorted(by_slot, key=lambda slot: (slot.needs.code, targets.index(slot.target), slot))
    }


@dataclass(eq=False)
class Scheduler:
    """Runs cells, ``jobs × side_by_side`` at the same time; several threads tell the listener about every event."""

    runtime: Runtime
    limits: Limits
    listener: Listener
    _: KW_ONLY
    allow_code: bool = False
    """Whether cases may do what needs ``--allow-code``."""
    kept: KeptEngines | None = None
    """Where engines come from and are left; None to start and end them."""
    again: Callable[[CellRun], Mapping[str, str] | None] = lambda _: None
    """Asked after each run of a whole case, until it returns None: the settings with which the case runs once more there."""

    def __post_init__(self) -> None:
        self._stopping = threading.Event()
        self._later: LaterCells | None = None
        self._engines = _Engines((), self.limits, self._new_slot, self._stopping)

    def run(self, cells: Iterable[CellTask], later: LaterCells | None = None) -> None:
        """Run all cells, and later ones as soon as they are ready; each gives exactly one ``cell_done`` unless the run is stopped."""
        self._later = later
        cases = tuple(later.cases) if later is not None else ()
        self._engines = _Engines(cases, self.limits, self._new_slot, self._stopping)
        self._engines.add(cells)
        workers = self.limits.jobs * self.limits.side_by_side
        with ThreadPoolExecutor(workers, thread_name_prefix="cell") as pool:
            try:
                pending = {pool.submit(self._work) for _ in range(workers)}
                while pending:
                    done, pending = wait(pending, SIGNALS_WAIT, return_when=FIRST_EXCEPTION)
                    for future in done:
                        future.result()
            except BaseException:
                self.stop()
                self._engines.drain()
                raise

    def stop(self) -> None:
        """End every engine now; cells in flight give no ``cell_done``."""
        self._stopping.set()
        self._engines.close()

    def _new_slot(self, target: Target, needs: EngineNeeds) -> EngineSlot:
        limits = self.limits
        return EngineSlot(
            self.runtime,
            target,
            self.listener,
            width=max(limits.side_by_side, limits.most_side_by_side),
            memory_limit=limits.engine_memory,
            needs=needs,
            kept=self.kept,
        )

    def _work(self) -> None:
        """Run one batch after the other, until none is left and none may come."""
        while (batch := self._engines.next()) is not None:
            try:
                self._run(batch)
            finally:
                self._engines.finished()

    def _run(self, batch: CellBatch) -> None:
        try:
            before = self._start(batch)
        finally:
            self._engines.started(batch)
        if before is not None:
            self._resume(batch, before)

    def _start(self, batch: CellBatch) -> SavedCheckpoint | None:
        """Run the whole case, or the steps before its cut. Returns what the other targets resume; None if the cells are done."""
        for cell in batch.cells:
            self.listener.cell_started(cell)
        if batch.first.before is not None:
            return batch.first.before
        case, cut, slot, limits = batch.first.case, batch.first.cut, self._engines.slot(batch.slot), self.limits
        saved: list[SavedCheckpoint] = []
        kept: dict[int, SavedCheckpoint] = {}

        def before_cut(cut: int) -> Observation:
            saved.append(run_before_cut(case, cut, slot, limits))
            return saved[0].observation

        def whole() -> Observation:
            observation, before = run_and_keep(batch.first, slot, limits)
            kept.update(before)
            return observation

        runs = [whole] * limits.repeat if cut is None else [partial(before_cut, cut)]
        run = completed(batch.first, runs, allow_code=self.allow_code)
        run = replace(run, kept=kept, identity=slot.identity)
        while cut is None and not self._stopping.is_set() and (conf := self.again(run)) is not None:
            limits = replace(self.limits, conf={**self.limits.conf, **conf})
            more = completed(batch.first, [whole], allow_code=self.allow_code)
            run = replace(run, tried=(*run.tried, next(iter(more.observations), None)))
        if saved and run.observations[0].steps[-1].error is None:
            return saved[0]
        for cell in batch.cells:
            if cut is not None:
                self._engines.release(_resuming(cell))
            self._done(replace(run, task=cell))
        return None

    def _resume(self, batch: CellBatch, before: SavedCheckpoint) -> None:
        """Run the steps after the cut, on one target after the other."""
        for cell in batch.cells:
            if self._stopping.is_set():
                return
            key = _resuming(cell)
            slot, discard = self._engines.slot(key), self._engines.take_discarded()
            saved, limits = cell.before or before, self.limits
            with_it = replace(limits, conf={**limits.conf, **cell.workaround})
            runs = [partial(run_after_cut, cell, saved, slot, with_it)] if cell.workaround else []
            if not (cell.before and cell.workaround):
                runs.insert(0, partial(run_after_cut, cell, saved, slot, limits, discard))
            try:
                self._done(completed(cell, runs, allow_code=self.allow_code))
            finally:
                self._engines.release(key)
        if batch.first.before is None:
            self._engines.discard(before.saved)

    def _done(self, run: CellRun) -> None:
        if not self._stopping.is_set():
            self.listener.cell_done(run)
            if self._later is not None:
                # This cell has not released its engine yet, which cells that follow may need.
                self._engines.add(self._later.ready())


@dataclass(eq=False)
class _Engines:
    """The engines of a run: which of them may start a batch, and which are still needed.

    At most ``jobs`` engines start batches at the same time, each at most ``side_by_side``, or more if others leave room.
    """

    later: tuple[Case, ...]
    limits: Limits
    new_slot: Callable[[Target, EngineNeeds], EngineSlot]
    stopping: threading.Event

    def __post_init__(self) -> None:
        self._waiting: dict[SlotKey, deque[CellBatch]] = {}
        self._starting: Counter[SlotKey] = Counter()
        self._running = 0
        self._uses_left: Counter[SlotKey] = Counter()
        self._slots: dict[SlotKey, EngineSlot] = {}
        self._discarded: list[str] = []
        self._changed = threading.Condition()

    def add(self, cells: Iterable[CellTask]) -> None:
        """These cells wait for an engine, too."""
        more = queues(cells)
        uses = [(batch, *use) for batches in more.values() for batch in batches for use in batch.uses()]
        with self._changed:
            for slot, batches in more.items():
                self._waiting.setdefault(slot, deque()).extend(batches)
            self._uses_left.update(slot for _, slot, _ in uses)
            for slot, target in {slot: target for _, slot, target in uses if slot not in self._slots}.items():
                cases = [*self.later, *(batch.first.case for batch, used, _ in uses if used == slot)]
                topics, main = any(case.topics for case in cases), any(case.calls_main for case in cases)
                self._slots[slot] = self.new_slot(target, replace(slot.needs, topics=topics, main=main))
            self._changed.notify_all()

    def slot(self, key: SlotKey) -> EngineSlot:
        return self._slots[key]

    def next(self) -> CellBatch | None:
        """Wait for a batch that may start; None if none is left, and none that runs may add one."""
        with self._changed:
            while (self._waiting or self._running) and not self.stopping.is_set():
                for slot, batches in self._waiting.items():
                    if self._has_room(slot):
                        self._starting[slot] += 1
                        self._running += 1
                        batch = batches.popleft()
                        if not batches:
                            del self._waiting[slot]
                        return batch
                self._changed.wait()
            self._changed.notify_all()
            return None

    def started(self, batch: CellBatch) -> None:
        """A batch no longer uses the engine in which it started."""
        # The engine must have ended before another may start in its place.
        if batch.first.before is None:
            self.release(batch.slot)
        with self._changed:
            self._starting[batch.slot] -= 1
            self._starting += Counter()  # without those at zero
            self._changed.notify_all()

    def finished(self) -> None:
        """All cells of a batch are done, so it adds no more."""
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def release(self, key: SlotKey) -> None:
        """One use of an engine is over; after the last one it is left to another run, or ended."""
        with self._changed:
            self._uses_left[key] -= 1
            unused = self._slots.pop(key) if not self._uses_left[key] else None
        if unused is not None:
            unused.release()

    def discard(self, directory: str) -> None:
        """Let the next engine that resumes a case remove a saved checkpoint."""
        with self._changed:
            self._discarded.append(directory)

    def take_discarded(self) -> tuple[str, ...]:
        with self._changed:
            directories, self._discarded = tuple(self._discarded), []
        return directories

    def close(self) -> None:
        """End all engines, and all cells that wait for one."""
        with self._changed:
            self._changed.notify_all()
            slots = tuple(self._slots.values())
        for slot in slots:
            slot.close(at_once=True)

    def drain(self) -> None:
        """Wait until no batch runs, and end what they wait for: an engine that starts, or what installs it, is in no slot yet."""
        with self._changed:
            while not self._changed.wait_for(lambda: not self._running, timeout=0.1):
                end_waits()

    def _has_room(self, slot: SlotKey) -> bool:
        if slot in self._starting:
            return self._starting[slot] < self._share(slot)
        return len(self._starting) < self.limits.jobs

    def _share(self, slot: SlotKey) -> int:
        """How many batches an engine may start at the same time.

        Cases that kill their engine run alone. If there is work for fewer engines than may run, those divide the places of all.
        """
        if slot.for_kills:
            return 1
        limits, slots = self.limits, self._waiting.keys() | self._starting.keys()
        kills = sum(slot.for_kills for slot in slots)
        engines = max(1, min(limits.jobs, len(slots)) - kills)
        places = limits.jobs * limits.side_by_side - kills
        return max(limits.side_by_side, min(limits.most_side_by_side, places // engines))
