"""Runs one cell: a case on one target, or a case whose checkpoint one target writes and another resumes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias, TypeVar

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.wording import counted
from harness.engine.alignment import MisalignedBatches, check_alignment
from harness.engine.engine import DriverFailed, EngineDied, EngineFailed, ExecutorsLost, KillMissed, TooBusy
from harness.engine.request import broker_for, has_operation, request_for
from harness.engine.segments import Segment, join_segments, segments_of
from harness.errors import HarnessError
from harness.scheduling.engine_slot import EngineSlot
from harness.targets.target import Target

Answer = TypeVar("Answer")

ATTEMPTS = 5
"""How often a cell is tried before it fails: until rows meant for one micro-batch came in one, an engine was killed where it should
be, and the cluster lost no executor."""


CellKey: TypeAlias = tuple[str, tuple[str, ...], int | None]
"""Case id, names of the targets, and cut."""


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

    @property
    def key(self) -> CellKey:
        return self.case.id, tuple(target.name for target in self.targets), self.cut

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
    """The result of running a cell: an observation per repetition, or the reason why there is none."""

    task: CellTask
    observations: tuple[Observation, ...]
    failure: str | None
    """Why the harness has no answer; None if it has one."""
    runnable: bool
    """False if the case was not tried, because it needs ``--allow-code``; ``failure`` says where and why."""
    seconds: float
    """How long it took; with a cut, without the steps before it, unless those failed."""
    reused: bool = False
    """Whether the answer comes from an earlier run."""

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
    """Cases at the same time in one engine."""
    most_side_by_side: int = 0
    """Cases at the same time in one engine that others leave room; never fewer than ``side_by_side``."""
    repeat: int = 1
    """Runs of each cell without a cut."""
    engine_memory: int | None = None
    """Bytes above which an engine is replaced between two cases; None for no limit."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Spark settings for every case; the settings of a case override them."""


@dataclass(frozen=True)
class SavedCheckpoint:
    """The state of a case before its cut, for other targets to resume from."""

    observation: Observation
    """Of the steps before the cut."""
    directory: str
    """Where the case ran, and where each copy is restored: checkpoints hold absolute paths."""
    saved: str
    """Where the original is kept."""


def run_cell(case: Case, slot: EngineSlot, limits: Limits, allow_code: bool) -> CellRun:
    """Run one case on one target, ``limits.repeat`` times. Never raises for what an engine or this machine did."""
    runs = [partial(run_whole, case, slot, limits)] * limits.repeat
    return completed(CellTask(case, (slot.target,)), runs, allow_code=allow_code)


def completed(task: CellTask, runs: Sequence[Callable[[], Observation]], *, allow_code: bool) -> CellRun:
    """The result of running a cell, or a part of it; a failure of the harness becomes the reason why there is none."""
    began = time.monotonic()
    observations: list[Observation] = []
    failure = not_runnable(task.case, allow_code)
    runnable = failure is None
    if runnable:
        try:
            for run in runs:
                observations.append(run())
        except (HarnessError, MisalignedBatches) as error:
            failure = str(error)
            if isinstance(error, EngineDied) and (task.case.sink or has_operation(task.case, "call")):
                failure = f"the engine ended while your code ran: does it call os._exit, or crash?\n{failure}"
    return CellRun(task, tuple(observations), failure, runnable, time.monotonic() - began)


def not_runnable(case: Case, allow_code: bool) -> str | None:
    """Why the case cannot run at all; None if it can."""
    if case.needs_code and not allow_code:
        first, more = case.needs_code[0], len(case.needs_code) - 1
        others = f", and {counted(more, 'other reason')}" if more else ""
        return f"not run: {case.file}:{first.line}:{first.column}: {first.reason}{others}; --allow-code runs it"
    return None


def run_whole(case: Case, slot: EngineSlot, limits: Limits, resumes: str | None = None) -> Observation:
    """Run every step of a case; ``resumes``: as in `CellTask`.

    Raises:
        HarnessError, MisalignedBatches: see ``with_retries``.
    """
    segments = segments_of(case)
    return with_retries(
        slot,
        segments,
        lambda: _run_segments(case, segments, slot.engine().new_directory(case.id), slot, limits, restore=resumes),
    )


def run_before_cut(case: Case, cut: int, slot: EngineSlot, limits: Limits) -> SavedCheckpoint:
    """Run the steps before the cut and save what they leave.

    If the case kills its engine in the step of the cut, this target's engine is the one killed.

    Raises:
        HarnessError, MisalignedBatches: see ``with_retries``.
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
    """Run the steps after the cut on a copy of a saved checkpoint.

    Args:
        task: a cell with a cut.
        before: what the steps before the cut left.
        slot: of the engine that resumes.
        discard: saved checkpoints that the engine removes first.

    Returns:
        What the whole case showed, including the steps before the cut.

    Raises:
        HarnessError, MisalignedBatches: see ``with_retries``.
    """
    case, segments = task.case, segments_of(task.case, task.cut or 1)
    return with_retries(
        slot,
        segments,
        lambda: _run_segments(
            case,
            segments,
            before.directory,
            slot,
            limits,
            restore=before.saved,
            discard=discard,
            earlier=(before.observation,),
        ),
    )


def with_retries(slot: EngineSlot, segments: Sequence[Segment], run: Callable[[], Answer]) -> Answer:
    """Use the engine of a slot until an attempt shows what was meant, at most ``ATTEMPTS`` times.

    If an engine is lost while several cases run in it, none of them is known to be the cause: each runs again, alone in an engine.

    Args:
        segments: what runs; if it kills its engine, no other case may run there meanwhile.

    Raises:
        EngineFailed, MisalignedBatches: the last attempt failed, or one with no other possible cause.
        HarnessError: the engine cannot be started.
    """
    alone = any(segment.killed for segment in segments)
    for attempt in range(1, ATTEMPTS + 1):
        with slot.use(alone=alone) as use:
            try:
                return run()
            except (MisalignedBatches, KillMissed, ExecutorsLost):
                if attempt == ATTEMPTS:
                    raise
            except TooBusy:
                if attempt == ATTEMPTS:
                    raise
                alone = True
            except DriverFailed:
                raise
            except EngineFailed:
                if not use.shared or attempt == ATTEMPTS:
                    raise
                alone = True
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
) -> Observation:
    """Run segments in the same directory, up to the first error; after a kill, the slot's next engine continues.

    ``earlier``: what the steps before these showed. Returns what all of them showed.
    """
    seen = [*earlier]
    for segment in segments:
        engine = slot.engine()
        first, last = segment is segments[0], segment is segments[-1]
        request = request_for(
            case, directory, engine.code, segment=segment, conf=limits.conf, kafka=broker_for(case, engine)
        ).model_copy(
            update={
                "restore": restore if first else None,
                "discard": discard if first else (),
                "save": save if last else None,
            }
        )
        seen.append(engine.observe(request, step_timeout=limits.step_timeout))
        check_alignment(case, join_segments(seen), killed=segment.killed)
        if seen[-1].steps[-1].error is not None:
            break
    whole = join_segments(seen)
    # While nothing arrives, as many empty micro-batches run in real time as the machine is fast.
    return whole.with_consecutive_ids() if case.in_real_time else whole
