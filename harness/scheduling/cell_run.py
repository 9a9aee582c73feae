"""Runs one cell: a case on one target, or a case whose checkpoint one target writes and another resumes."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from conformance.core.case import Case
from conformance.core.observation import Identity, Observation
from conformance.core.wording import counted
from harness.engine.alignment import MisalignedBatches, check_alignment
from harness.engine.engine import (
    NOTHING_ELSE,
    DriverFailed,
    Engine,
    EngineDied,
    EngineFailed,
    EngineLocation,
    EngineNeeds,
    EngineSilent,
    ExecutorsLost,
    KillMissed,
    Runtime,
    TooBusy,
)
from harness.engine.request import Segment, broker_for, join_segments, request_for, segments_of
from harness.errors import HarnessError
from harness.scheduling.budget import is_busy
from harness.scheduling.kept_engines import KeptEngines
from harness.targets.targets import Target


class EngineListener(Protocol):
    """Is told what happens to engines, from the threads in which it happens."""

    def engine_says(self, target: Target, line: str) -> None:
        """Progress of installing and starting."""

    def engine_ready(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        """The engine has introduced itself; once per target, and again after each replacement."""

    def step_done(self) -> None:
        """A step has ended of a cell whose rows are in files: only these run long."""
        return


class SlotClosed(HarnessError):
    """The run was stopped; no engine starts any more."""


@dataclass(eq=False)
class SlotUse:
    after_others: bool
    """Whether the engine had other users before."""
    shared: bool = False
    """Whether the engine had other users meanwhile, who may have caused what happened to it."""


@dataclass(eq=False)
class EngineSlot:
    """One engine of a target at a time, started when first needed and replaced when it is lost or has grown too big.

    If an engine cannot be started, the slot remembers the error: another attempt may take minutes and fails again.
    """

    runtime: Runtime
    target: Target
    listener: EngineListener
    _: KW_ONLY
    width: int = 1
    """How many users the engine may have at once; fewer if its cluster has fewer slots."""
    memory_limit: int | None = None
    """Bytes above which an engine is replaced as soon as it has no users; None for no limit."""
    needs: EngineNeeds = NOTHING_ELSE
    kept: KeptEngines | None = None
    """Where the engine may come from, and is left in the end; None to end it."""

    def __post_init__(self) -> None:
        # The first user starts the engine. The others could only wait for it, and a cluster reports its slots only then.
        self._width = 1
        self._changed = threading.Condition()
        self._uses: list[SlotUse] = []
        self._was_used = False
        self._held_alone = False
        self._waiting_to_be_alone = 0
        self._starting = threading.Lock()
        self._engine: Engine | None = None
        self._start_error: HarnessError | None = None
        self._said_lost: Engine | None = None
        self._closed = False

    @contextmanager
    def use(self, *, alone: bool = False) -> Iterator[SlotUse]:
        """Use the engine, together with others or ``alone``, once that is possible. Raises ``SlotClosed`` if the run was stopped."""
        with self._changed:
            self._waiting_to_be_alone += alone
            self._changed.wait_for(lambda: self._closed or self._has_room(alone))
            self._waiting_to_be_alone -= alone
            self._check_open()
            self._held_alone = alone
            use = SlotUse(self._was_used)
            self._uses.append(use)
            if len(self._uses) > 1:
                for other in self._uses:
                    other.shared = True
            too_big = self._too_big
        try:
            if too_big:
                self.replace()
            yield use
        finally:
            with self._changed:
                self._uses.remove(use)
                self._was_used = True
                self._held_alone = False
                self._changed.notify_all()

    def engine(self) -> Engine:
        """The engine, started if needed; only within ``use``. Raises ``HarnessError`` if it cannot be started here."""
        with self._starting:
            self._check_open()
            if self._start_error is not None:
                raise self._start_error
            if self._engine is not None and self._engine.ended:
                self.replace()
            if self._engine is None:
                try:
                    self._engine = self._left_by_another_run() or self._start()
                except HarnessError as error:
                    self._start_error = error
                    if not self._closed:
                        self._say(error)
                    raise
                engine = self._engine
                if self._closed:  # meanwhile, when there was no engine to end
                    self.replace()
                self._check_open()
                with self._changed:
                    self._width = min(self.width, engine.slots or self.width)
                    self._changed.notify_all()
                self.listener.engine_ready(self.target, engine.identity, engine.place)
                self._check_open()
            return self._engine

    @property
    def identity(self) -> Identity | None:
        """How its engine introduced itself; None without one."""
        engine = self._engine  # another thread may end it
        return engine.identity if engine is not None else None

    def step_done(self) -> None:
        self.listener.step_done()

    def say_lost(self, error: EngineFailed) -> None:
        """Say at once, and once, why the engine is lost: what ran in it may run again before its cells have a reason."""
        with self._changed:
            said, self._said_lost = self._said_lost, self._engine
        if self._engine is not None and said is not self._engine:
            self._say(error)

    def _say(self, error: HarnessError) -> None:
        self.listener.engine_says(self.target, str(error).split("\n", 1)[0])

    def _left_by_another_run(self) -> Engine | None:
        engine = self.kept.take(self.target, self.needs) if self.kept is not None else None
        self._was_used |= engine is not None
        return engine

    def _start(self) -> Engine:
        """Start an engine. On a busy machine one that is silent for too long is tried again."""

        def on_progress(line: str, /) -> None:
            self.listener.engine_says(self.target, line)

        for _ in range(STARTS - 1):
            try:
                return self.runtime.start(self.target, on_progress=on_progress, needs=self.needs)
            except EngineSilent as error:
                if self._closed or not is_busy():
                    raise
                on_progress(f"{error.message}; this machine is busy, so another one is started")
        return self.runtime.start(self.target, on_progress=on_progress, needs=self.needs)

    def _check_open(self) -> None:
        if self._closed:
            raise SlotClosed(f"{self.target.name} was stopped")

    def replace(self) -> None:
        """End the engine, if there is one; the next use starts another."""
        engine, self._engine = self._engine, None
        self._was_used = False
        if engine is not None:
            engine.close()

    def release(self) -> None:
        """Give the engine to the next run, or end it. The slot cannot be used afterwards."""
        engine = self._engine
        if self.kept is not None and engine is not None and not engine.ended:
            self._engine = None
            self.kept.leave(self.target, self.needs, engine)
        self.close()

    def close(self, *, at_once: bool = False) -> None:
        """End the engine for good, ``at_once`` by SIGKILL; whoever waits for it gets ``SlotClosed``."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if at_once and (engine := self._engine) is not None:
            engine.kill()
        self.replace()

    @property
    def _too_big(self) -> bool:
        memory = self._engine.memory if self._engine is not None else None
        return self.memory_limit is not None and memory is not None and memory > self.memory_limit

    def _has_room(self, alone: bool) -> bool:
        if alone:
            return not self._uses
        # A user who waits to be alone needs the engine empty, and so does its replacement: no other user may enter before.
        return not (self._held_alone or self._waiting_to_be_alone) and (
            not self._uses or (not self._too_big and len(self._uses) < self._width)
        )


SlotAnswer = TypeVar("SlotAnswer")

STARTS = 3
"""How many engines are started on a busy machine until one introduces itself in time."""

ATTEMPTS = 5
"""How often a cell is tried before it fails: until rows meant for one micro-batch came in one, an engine was killed where it should
be, and the cluster lost no executor."""


TaskKey: TypeAlias = tuple[str, tuple[str, ...], int | None, tuple[tuple[str, str], ...]]
"""Case id, names of the targets, cut, and the settings of the workaround."""


@dataclass(frozen=True)
class SavedCheckpoint:
    """The state of a case before its cut, for other targets to resume from."""

    observation: Observation
    """What the steps before the cut showed."""
    directory: str
    """Where the case ran, and where each copy is restored: checkpoints hold absolute paths."""
    saved: str
    """Where the original is kept."""


@dataclass(frozen=True)
class CellTask:
    """A cell to run: a case on one target or, with a cut, on two."""

    case: Case
    targets: tuple[Target, ...]
    """The target; with a cut, the target that writes the checkpoint and the one that resumes it."""
    cut: int | None = None
    """The number of the step before which the case changes targets; None if it stays on one."""
    resumes: str | None = None
    """A directory with a ``checkpoint`` that the first step resumes, on the engine's file system; None to begin without one."""
    workaround: Mapping[str, str] = field(default_factory=dict)
    """Spark settings with which the target after the cut resumes the checkpoint a second time; not those that the case itself sets.
    Without a cut, those that set the cell apart from others of its case, which sets them."""
    keep: tuple[int, ...] = ()
    """Steps before which a run without a cut keeps a copy of its checkpoint, for cells that resume it."""
    before: SavedCheckpoint | None = None
    """What a run kept of the steps before the cut; None to run them."""
    files: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """Number of a step → stream → a file on the engine's file system whose rows arrive in place of those of the case. With any, the
    engine answers with digests of the rows that it emits."""

    @property
    def key(self) -> TaskKey:
        names = tuple(target.name for target in self.targets)
        return self.case.id, names, self.cut, tuple(sorted(self.workaround.items()))

    @property
    def origin(self) -> Target:
        """The target that runs the first step."""
        return self.targets[0]

    @property
    def target(self) -> Target:
        """The target that runs the last step."""
        return self.targets[-1]


@dataclass(frozen=True)
class CellRun:
    """The observations of a cell, or why there are none: one for each repetition; with a workaround two, without and with it."""

    task: CellTask
    observations: tuple[Observation, ...]
    failure: str | None
    seconds: float
    """How long it took; with a cut, without the steps before it, unless those failed."""
    not_run: bool = False
    """Whether the case did not run, because it needs ``--allow-code``; ``failure`` says where and why."""
    reused: bool = False
    kept: Mapping[int, SavedCheckpoint] = field(default_factory=dict)
    """The checkpoints that ``task.keep`` asks for, before the steps that the run has reached."""
    identity: Identity | None = None
    """How its engine introduced itself; None if that is not known."""
    tried: tuple[Observation | None, ...] = ()
    """What the case did with other settings, which a judge asked for one after another; None where it gave no answer."""

    @property
    def case(self) -> Case:
        return self.task.case


@dataclass(frozen=True)
class Limits:
    """How much runs at once, and for how long."""

    jobs: int
    """Engines at the same time; with cuts, engines that write checkpoints."""
    step_timeout: float
    """Seconds a step may take."""
    side_by_side: int = 1
    most_side_by_side: int = 0
    """Cases at the same time in one engine that others leave room; never fewer than ``side_by_side``."""
    repeat: int = 1
    """Runs of each cell without a cut."""
    engine_memory: int | None = None
    """Bytes above which an engine is replaced between two cases; None for no limit."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Spark settings for every case; the settings of a case override them."""


def run_cell(case: Case, slot: EngineSlot, limits: Limits, allow_code: bool) -> CellRun:
    """Run one case on one target, ``limits.repeat`` times. Never raises for what an engine or this machine did."""
    task = CellTask(case, (slot.target,))
    return completed(task, [lambda: run_and_keep(task, slot, limits)[0]] * limits.repeat, allow_code=allow_code)


def completed(task: CellTask, runs: Sequence[Callable[[], Observation]], *, allow_code: bool) -> CellRun:
    """The result of running a cell, or a part of it; a failure of the harness becomes the reason why there is none."""
    began, case = time.monotonic(), task.case
    observations: list[Observation] = []
    if case.needs_code and not allow_code:
        first, more = case.needs_code[0], len(case.needs_code) - 1
        others = f", and {counted(more, 'other reason')}" if more else ""
        why = f"not run: {case.file}:{first.line}:{first.column}: {first.reason}{others}; --allow-code runs it"
        return CellRun(task, (), why, time.monotonic() - began, not_run=True)
    failure = None
    try:
        for run in runs:
            observations.append(run())
    except (HarnessError, MisalignedBatches) as error:
        failure = str(error).encode(errors="backslashreplace").decode()  # a path need not be valid text
        if isinstance(error, EngineDied) and (case.own_sink or any(case.calls())):
            failure = f"the engine ended while your code ran: does it call os._exit, or crash?\n{failure}"
    return CellRun(task, tuple(observations), failure, time.monotonic() - began)


def run_and_keep(task: CellTask, slot: EngineSlot, limits: Limits) -> tuple[Observation, Mapping[int, SavedCheckpoint]]:
    """Run every step of a case, and keep its checkpoint before the steps that ``task.keep`` names. Raises as ``with_retries`` does."""
    case, segments = task.case, segments_of(task.case)

    def run() -> tuple[Observation, Mapping[int, SavedCheckpoint]]:
        directory = slot.engine().new_directory(case.id)
        keep = {step: f"{directory}.before-{step}" for step in task.keep}
        whole = _run_segments(
            case, segments, directory, slot, limits, restore=task.resumes, keep=keep, files=task.files
        )
        kept = {
            step: SavedCheckpoint(whole.model_copy(update={"steps": whole.steps[: step - 1]}), directory, saved)
            for step, saved in keep.items()
            if len(whole.steps) >= step
        }
        return whole, kept

    return with_retries(slot, segments, run)


def run_before_cut(case: Case, cut: int, slot: EngineSlot, limits: Limits) -> SavedCheckpoint:
    """Run the steps before the cut and save what they leave. Raises as ``with_retries`` does.

    If the case kills its engine in the step of the cut, this target's engine is the one killed.
    """
    segments = segments_of(case, 1, cut)
    killed = any(segment.killed and segment.last == cut for segment in segments)
    segments = segments[:-1] if killed else segments_of(case, 1, cut - 1)

    def run() -> SavedCheckpoint:
        directory = slot.engine().new_directory(case.id)
        saved = f"{directory}.saved"
        observation = _run_segments(case, segments, directory, slot, limits, save=saved)
        if killed:
            # The killed engine saved nothing, so its replacement does.
            nothing = Segment(len(case.steps) + 1, len(case.steps))
            request = request_for(case, directory, segment=nothing).model_copy(update={"save": saved})
            slot.engine().observe(request, step_timeout=limits.step_timeout)
        return SavedCheckpoint(observation, directory, saved)

    return with_retries(slot, segments, run)


def run_after_cut(
    task: CellTask, before: SavedCheckpoint, slot: EngineSlot, limits: Limits, discard: tuple[str, ...] = ()
) -> Observation:
    """Run the steps after the cut on a copy of a saved checkpoint. Raises as ``with_retries`` does.

    ``discard``: saved checkpoints that the engine removes first. Returns what the whole case showed, including the steps before the cut.
    """
    case, segments = task.case, segments_of(task.case, task.cut or 1)
    resume = partial(
        _run_segments, restore=before.saved, discard=discard, earlier=(before.observation,), files=task.files
    )
    return with_retries(slot, segments, partial(resume, case, segments, before.directory, slot, limits))


def with_retries(slot: EngineSlot, segments: Sequence[Segment], run: Callable[[], SlotAnswer]) -> SlotAnswer:
    """Use the engine of a slot until an attempt shows what was meant, at most ``ATTEMPTS`` times.

    If an engine is lost while several cases run in it, none of them is known to be the cause: each runs again, alone in an engine. Nor is
    a case that has it after others: it runs again once, in an engine that no other case has used. A segment that kills runs alone, too.

    Raises:
        EngineFailed, MisalignedBatches: the last attempt failed, or one with no other possible cause.
        HarnessError: the engine cannot be started.
    """
    alone, unused = any(segment.killed for segment in segments), False
    for attempt in range(1, ATTEMPTS + 1):
        with slot.use(alone=alone) as use:
            try:
                if unused:
                    slot.replace()
                return run()
            except (MisalignedBatches, KillMissed, ExecutorsLost):
                if attempt == ATTEMPTS:
                    raise
            except EngineFailed as error:
                lost = not isinstance(error, DriverFailed)
                if lost:
                    slot.say_lost(error)
                others = use.shared or (use.after_others and not unused)
                if not (isinstance(error, TooBusy) or (lost and others)) or attempt == ATTEMPTS:
                    raise
                alone, unused = True, unused or (lost and not use.shared)
    raise AssertionError("unreachable: the last attempt returns or raises")


def _run_segments(
    case: Case,
    segments: Sequence[Segment],
    directory: str,
    slot: EngineSlot,
    limits: Limits,
    *,
    restore: str | None = None,
    save: str | None = None,
    discard: tuple[str, ...] = (),
    earlier: tuple[Observation, ...] = (),
    keep: Mapping[int, str] | None = None,
    files: Mapping[int, Mapping[str, str]] | None = None,
) -> Observation:
    """Run segments in one directory, up to the first error or the end; return what they, and those ``earlier``, showed."""
    observations = [*earlier]
    for segment in segments:
        engine = slot.engine()
        kafka = broker_for(case, engine)
        # An engine whose answers are not those of code must run none.
        code = engine.code if case.needs_code else None
        request = request_for(
            case, directory, code, segment=segment, conf=limits.conf, kafka=kafka, keep=keep, files=files
        )
        if segment is segments[0]:
            request = request.model_copy(update={"restore": restore, "discard": discard})
        if segment is segments[-1]:
            request = request.model_copy(update={"save": save})
        on_step = slot.step_done if files else None
        observations.append(engine.observe(request, step_timeout=limits.step_timeout, on_step=on_step))
        whole = join_segments(observations)
        check_alignment(case, whole, killed=segment.killed)
        if observations[-1].steps[-1].error is not None:
            break
    # While nothing arrives, as many empty micro-batches run in real time as the machine is fast.
    return whole.with_consecutive_ids() if case.in_real_time else whole
