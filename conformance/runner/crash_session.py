"""Crashes of cases, from what the user asked for to a file of records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

from conformance.checkpoints.crash_images import Fault
from conformance.core.case import Case, Source
from conformance.core.output_file import OutputFile
from conformance.core.versions import Name as StoreName
from conformance.core.versions import StateStore
from conformance.core.wording import counted
from conformance.judging.expected import Steps, expected
from conformance.runner.crash import CrashPoint, NoMicroBatch, NotRecorded, Recorded, Restarts
from conformance.runner.resources import (
    STEP_TIMEOUT_S,
    OptionsClash,
    interruptible,
    not_confined,
    open_runtime,
    working_folder,
)
from conformance.runner.session import choose_targets, from_topics
from conformance.suite import discovery
from conformance.suite.selection import only_tagged
from conformance.variants.catalogue import KAFKA
from harness.engine.engine import EngineFailed
from harness.engine.file_recorder import RecordingIncomplete
from harness.runtimes.options import RuntimeOptions
from harness.scheduling.budget import ENGINE_MEMORY_LIMIT
from harness.scheduling.engine_slot import EngineListener, EngineSlot
from harness.targets.state_store_support import having
from harness.targets.target import Target
from harness.targets.tuning import tuning
from reports.results.crash import CRASH_RECORDS, CrashHeader, CrashRecord, CrashRecords

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_MAINTENANCE = "spark.sql.streaming.stateStore.maintenanceInterval"


@dataclass(frozen=True)
class CrashRequest:
    """What the user asks of crashes."""

    output: Path
    command: str
    paths: Sequence[Path]
    tags: Sequence[str] = ()
    spark: Sequence[str] = ()
    source: Source = "files"
    """``kafka``: cases run from topics if they can."""
    step: int | None = None
    images: int | None = None
    """The most images of a micro-batch; None for all."""
    faults: Sequence[Fault] = ()
    """Only these; all if empty."""
    state_store: StoreName | None = None
    runtime: RuntimeOptions = field(default_factory=RuntimeOptions)
    step_timeout: float = STEP_TIMEOUT_S

    @property
    def store(self) -> StateStore:
        return StateStore.named(self.state_store or "hdfs")


@dataclass(frozen=True)
class CrashPlan:
    """What will crash, and where."""

    request: CrashRequest
    points: tuple[CrashPoint, ...]
    targets: tuple[Target, ...]
    notes: tuple[str, ...]

    @cached_property
    def by_target(self) -> Mapping[str, tuple[CrashPoint, ...]]:
        """Name of a target → the cases that its version can run."""
        return {
            target.name: tuple(
                point for point in self.points if isinstance(expected(point.case, target.version), Steps)
            )
            for target in self.targets
        }

    @property
    def recordings(self) -> int:
        """How many micro-batches are recorded."""
        return sum(map(len, self.by_target.values()))

    def __str__(self) -> str:
        names = ", ".join(target.name for target in self.targets)
        where = f"{names}, state in {self.request.store.name}"
        return f"{counted(len(self.points), 'case')} on {where}; into {self.request.output}"


class CrashWatcher(EngineListener, Protocol):
    """Is told how crashes go on."""

    def recorded(self, point: CrashPoint, target: Target, images: int) -> None:
        """The file operations of a micro-batch are recorded; the query will be restarted from so many images."""

    def judged(self, record: CrashRecord) -> None:
        """A query was restarted from an image."""


def plan_crashes(request: CrashRequest) -> CrashPlan:
    """Choose cases, steps and versions.

    Raises:
        InvalidCase: a case is invalid.
        NoMicroBatch: the only case cannot crash.
        OptionsClash: no case is left, or none has its rows come from a topic.
        NoSuchStore: no version has the state store.
        UnknownTarget, NothingRuns, NoPyspark, UnusablePyspark: see `Targets.choose`.
    """
    loaded = discovery.load(request.paths or None)
    loaded.raise_for_problems()
    cases: Sequence[Case] = only_tagged(loaded.cases, request.tags)
    if request.source == KAFKA:
        cases = from_topics(cases)
    points, left_out = [], 0
    for case in cases:
        try:
            points.append(CrashPoint.of(case, request.step))
        except NoMicroBatch:
            if len(cases) == 1:
                raise
            left_out += 1
    choice = choose_targets(request.spark or ["newest"])
    notes = (*choice.notes, *not_confined(request.runtime, cases))
    if left_out:
        notes = (*notes, f"{counted(left_out, 'case')} left out: they restart their query, or no rows arrive.")
    plan = CrashPlan(request, tuple(points), having(request.store, choice.targets), notes)
    if not plan.recordings:
        raise OptionsClash("no case is left: none has rows, keeps its query running, and runs on a chosen version")
    return plan


def run_crashes(plan: CrashPlan, watcher: CrashWatcher) -> CrashRecords:
    """Record each micro-batch, restart its query from every image, and write what it does.

    Raises:
        Interrupted: Ctrl-C or SIGTERM; what it left is beside the output.
        CannotWriteFile, OtherContent, BeingWritten: see `conformance.core.output_file`.
        HarnessError: an engine does not start, or the machine records no file operations.
    """
    request = plan.request
    header = CrashHeader(command=request.command)
    records: list[CrashRecord] = []
    with ExitStack() as stack:
        output = stack.enter_context(OutputFile(request.output, CRASH_RECORDS))
        # What has been judged until an interruption or an error stays beside the place.
        stack.callback(output.close)
        stack.enter_context(interruptible(lambda: f"{output.part} has {counted(len(records), 'image')}"))
        folder = stack.enter_context(working_folder())
        output.write(header.line)
        for target in plan.targets:
            for record in _crashes(plan, target, folder, watcher):
                output.write(record.line)
                records.append(record)
                watcher.judged(record)
        output.complete()
    return CrashRecords(header, tuple(records))


def _crashes(plan: CrashPlan, target: Target, folder: Path, watcher: CrashWatcher) -> Iterator[CrashRecord]:
    """Record all cases in one engine, and restart them in another: only the first writes snapshots in the background.

    Args:
        folder: for the directories of the queries; checkpoints hold absolute paths, so both engines use the same.
    """
    recordings: list[Recorded] = []
    with _restarts(plan, target, folder, watcher, maintenance="200ms") as restarts:
        for point in plan.by_target[target.name]:
            try:
                recorded = restarts.record(point).only(plan.request.faults).with_at_most(plan.request.images)
            except (NotRecorded, RecordingIncomplete, EngineFailed) as error:
                yield CrashRecord.not_recorded(
                    point.case.id, target.name, plan.request.store.name, point.step, str(error)
                )
                continue
            recordings.append(recorded)
            watcher.recorded(point, target, len(recorded.images))
    with _restarts(plan, target, folder, watcher, maintenance="1d") as restarts:
        for recorded in recordings:
            for image, verdict in restarts.judged(recorded):
                point = recorded.point
                yield CrashRecord.of(point.case.id, target.name, plan.request.store.name, point.step, image, verdict)


@contextmanager
def _restarts(
    plan: CrashPlan, target: Target, folder: Path, watcher: CrashWatcher, *, maintenance: str
) -> Iterator[Restarts]:
    """An engine for restarts. ``maintenance``: how often its state stores write snapshots and remove old files."""
    request = plan.request
    topics = any(point.case.topics for point in plan.by_target[target.name])
    conf = {**as_users_run(target), _MAINTENANCE: maintenance, **request.runtime.conf}
    with ExitStack() as stack:
        runtime = stack.enter_context(open_runtime(replace(request.runtime, conf=conf)))
        slot = EngineSlot(runtime, target, watcher, memory_limit=ENGINE_MEMORY_LIMIT, topics=topics)
        stack.callback(slot.close)
        with slot.use():
            yield Restarts(slot.engine, folder, request.store.conf, request.step_timeout)


def as_users_run(target: Target) -> dict[str, str]:
    """Settings under which Spark operates on files as it does for its users: the suite's own leave out half of that."""
    manager = tuning(target.version)[MANAGER]
    return {
        MANAGER: manager.replace("FileSystemBased", "FileContextBased"),
        "spark.conformance.writeChecksums": "true",
        "spark.conformance.makeDirectories": "false",
        "spark.conformance.hadoopDefaults": "true",
    }
