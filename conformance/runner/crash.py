"""Crashes of cases: record the file operations of a micro-batch, restart the query from every image of a crash in it, keep the records."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

from conformance.checkpoints import crash_images
from conformance.checkpoints.crash_images import CrashImage, Fault, FolderContent, Recording
from conformance.core.case import Add, Backlog, Case, Partitioned, Restart, SourceOption, Start, Step, WrittenRow
from conformance.core.errors import WrongUsage
from conformance.core.observation import ErrorSeen, Observation
from conformance.core.output_file import OutputFile
from conformance.core.versions import StateStore
from conformance.core.wording import counted
from conformance.judging.checkpoint_verdict import CheckpointVerdict, Restarted, RowsByBatch, SinkReference, judge_crash
from conformance.judging.expected import Steps, expected
from conformance.runner import resources
from conformance.runner.execution import Engines
from conformance.runner.resources import OptionsClash, SessionOptions
from conformance.suite import discovery
from conformance.suite.selection import only_tagged
from harness.engine.alignment import MisalignedBatches, check_alignment
from harness.engine.engine import Engine, EngineDied, EngineFailed, EngineNeeds, TooBusy
from harness.engine.file_recorder import FileRecorder, RecordingIncomplete
from harness.engine.protocol import CaseRequest
from harness.engine.request import Segment, broker_for, join_segments, request_for
from harness.errors import HarnessError
from harness.scheduling.budget import ENGINE_MEMORY_LIMIT
from harness.scheduling.cell_run import EngineListener, Limits
from harness.targets.targets import Target, having, tuning
from reports.results.crash import CRASH_RECORDS, CrashHeader, CrashRecord, CrashRecords

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_MAINTENANCE = "spark.sql.streaming.stateStore.maintenanceInterval"
ATTEMPTS = 5
"""How often a recording or a restart is tried, on a machine that is too busy for it."""


class NoMicroBatch(WrongUsage):
    """The case has no micro-batch in which it could crash."""

    def __init__(self, case: Case, why: str) -> None:
        super().__init__(f"{case.id}: {why}")


class NotRecordable(HarnessError):
    def __init__(self, case: str, why: str) -> None:
        super().__init__(f"{case} cannot be recorded: {why}")


@dataclass(frozen=True)
class CrashPoint:
    """A case, and the step in whose micro-batches it crashes."""

    case: Case
    step: int

    @classmethod
    def of(cls, case: Case, step: int | None = None) -> CrashPoint:
        """The point in this step, by default the last with rows before others with rows, which show the state; raises NoMicroBatch."""
        if case.trigger != "default":
            raise NoMicroBatch(case, f"its trigger is {case.trigger}; only the default trigger is supported")
        if any(isinstance(step.action, Restart) for step in case.steps):
            raise NoMicroBatch(case, "it restarts its query; choose a case without a restart")
        if case.tables or case.files:
            what = "a table, whose commits would be repeated" if case.tables else "as many files as Spark chooses"
            why = f"it reads {what}; choose a case that reads files"
            raise NoMicroBatch(case, why)
        # The records of a backlog are sent one after another while micro-batches run, so no topic has them all before a restart.
        arriving = Add if case.topics else Add | Backlog
        data = [step.number for step in case.steps if isinstance(step.action, arriving)]
        if step is None:
            if not data:
                raise NoMicroBatch(case, "no rows arrive in it")
            step = data[-2] if len(data) > 1 else data[-1]
        elif step not in data:
            numbers = ", ".join(map(str, data)) or "none"
            raise NoMicroBatch(case, f"no rows arrive in step {step}; steps with rows: {numbers}")
        return cls(case, step)

    @property
    def more_may_arrive(self) -> bool:
        """Whether the next step adds rows, which may as well arrive between crash and restart."""
        return self.step < len(self.case.steps) and isinstance(self.case.steps[self.step].action, Add)

    def resumed(self, arrived: int) -> Case:
        """The case as the query goes on after the crash, when the rows up to a step have arrived: it starts, and later steps follow."""
        steps = list(self.case.steps)
        for number in range(self.step, arrived + 1):
            steps[number - 1] = Step(number=number, action=Start())
        return self.case.model_copy(update={"steps": tuple(steps)})

    @property
    def at_once(self) -> CrashPoint:
        """The same point where the rows of its step and of the next arrive for one micro-batch."""
        steps = list(self.case.steps)
        files: dict[str, tuple[tuple[WrittenRow, ...], ...]] = {}
        for step in steps[self.step - 1 : self.step + 1]:
            for name, rows in step.action.streams.items() if isinstance(step.action, Add) else ():
                files[name] = (*files.get(name, ()), *rows.partitions)
        merged = {name: Partitioned(partitions=partitions) for name, partitions in files.items()}
        steps[self.step - 1] = Step(number=self.step, action=Add(streams=merged))
        return replace(self, case=self.case.model_copy(update={"steps": tuple(steps)}))

    def arrived(self, image: CrashImage) -> int:
        """The last step whose rows are there when the query restarts."""
        return self.step + 1 if image.fault == "arrived" else self.step


@dataclass(frozen=True)
class Recorded:
    """A micro-batch whose file operations are known."""

    point: CrashPoint
    images: tuple[CrashImage, ...]
    boundaries: tuple[CrashImage, ...]
    """The images between two micro-batches, where a query may stop without a crash; also with the next rows, and then before the first."""
    emitted: RowsByBatch
    """The rows that the sink got, from the micro-batch on."""
    operations: int

    def only(self, faults: Collection[Fault] = (), most: int | None = None) -> Recorded:
        """The same with at most this many images of these faults, evenly spread; without arguments with all."""
        images = tuple(image for image in self.images if not faults or image.fault in faults)
        if most is not None and most < len(images):
            images = tuple(images[at * len(images) // most] for at in range(most))
        return replace(self, images=images)


@dataclass(frozen=True)
class Restarts:
    """Restarts a query from images, each in the same ``folder``, which checkpoints name; ``engine``: another once it has ended."""

    engine: Callable[[], Engine]
    folder: Path
    conf: Mapping[str, str]
    step_timeout: float

    @property
    def directory(self) -> Path:
        return self.folder / "query"

    def record(self, point: CrashPoint) -> Recorded:
        """Run the case once, and record the micro-batches of its step; NotRecordable if it ends with an error."""
        folders: frozenset[str] = frozenset()
        for _ in range(ATTEMPTS - 1):
            with suppress(MisalignedBatches, TooBusy):
                try:
                    return self._record(point, folders)
                except RecordingIncomplete as error:
                    folders |= error.folders
        return self._record(point, folders)

    def _record(self, point: CrashPoint, folders: frozenset[str]) -> Recorded:
        """Make these folders before the query does, since a recorder sees all that happens in them."""
        case, saved = point.case, self.folder / "before"
        # An attempt that failed, of this case or of another, leaves its files.
        for left in (saved, self.directory):
            shutil.rmtree(left, ignore_errors=True)
        seen: list[Observation] = []
        if point.step > 1:
            request = self._request(case, Segment(1, point.step - 1), arrived=0)
            seen.append(self._observe(request.model_copy(update={"save": str(saved)})))
            _check_whole(case, seen)
        read = FolderContent.read(saved)
        before = replace(read, folders=read.folders | folders)
        self._place(before)
        keep = self.folder / "kept"
        shutil.rmtree(keep, ignore_errors=True)
        keep.mkdir()
        # Rows arrive from a folder that is made anew at each start.
        with FileRecorder(self.directory, keep, loose="streams") as recorder:
            # Kept aside, so that the recorder does not see its removal.
            request = self._request(case, Segment(point.step, len(case.steps)), arrived=0 if point.step == 1 else None)
            seen.append(self._observe(request.model_copy(update={"save": str(self.folder / "after")})))
        _check_whole(case, seen)
        recording = Recording(before, recorder.operations())
        step = seen[-1].steps[0]
        first = next((batch.id for batch in step.batches if batch.kind == "data"), None)
        if first is None:
            raise NotRecordable(case.id, f"step {point.step} runs no micro-batch with rows")
        window = recording.window(first, step.batches[-1].id)
        emitted = {batch.id: batch.behaviour.rows for step in seen[-1].steps for batch in step.batches}
        rows = recording.next_rows(window) if point.more_may_arrive else {}
        return Recorded(
            point,
            tuple(crash_images.crash_images(recording, window, rows)),
            tuple(crash_images.images_between(recording, window, rows)),
            {id: rows for id, rows in emitted.items() if id >= first},
            window.stop - window.start,
        )

    def judged(self, recorded: Recorded) -> Iterator[tuple[CrashImage, CheckpointVerdict]]:
        uninterrupted = SinkReference(recorded.emitted)
        references = {arrived: [uninterrupted] for arrived in (False, True)}
        together = [image for image in recorded.boundaries if image.fault == "arrived"][:1]
        stops = [(image, recorded) for image in recorded.boundaries]
        # A file source takes files that it has logged and not planned together with the next ones, whatever its limit.
        stops += [(image, replace(recorded, point=recorded.point.at_once)) for image in together]
        for image, at_point in stops:
            if (restart := self._undisturbed(image, at_point)) is not None:
                stopped = SinkReference(restart.emitted, frozenset(restart.before))
                references[image.fault == "arrived"].append(stopped)
        for image in recorded.images:
            yield image, self._judge(image, recorded, references[image.fault == "arrived"])

    def _undisturbed(self, image: CrashImage, recorded: Recorded) -> Restarted | None:
        """The restart from an image; None if it ends with an error or changes rows."""
        restart = self._restart(image, recorded)
        return restart if isinstance(restart, Restarted) and restart.error is None and not restart.changed else None

    def _judge(self, image: CrashImage, recorded: Recorded, references: Sequence[SinkReference]) -> CheckpointVerdict:
        restart = self._restart(image, recorded)
        if isinstance(restart, CheckpointVerdict):
            return restart
        verdict = judge_crash(restart, references)
        if verdict.outcome != "other rows" or image.overlay is None:
            return verdict
        # This image starts the query twice. Two starts alone may change rows, so the same image without the fault is a reference too.
        twice = self._undisturbed(replace(image, overlay=FolderContent()), recorded)
        return judge_crash(restart, [*references, SinkReference(twice.emitted)]) if twice is not None else verdict

    def _restart(self, image: CrashImage, recorded: Recorded) -> Restarted | CheckpointVerdict:
        before = {id: rows for id, rows in recorded.emitted.items() if id in image.emitted}
        first = min(recorded.emitted) if recorded.point.case.written else None
        try:
            return Restarted(before, *self._resume(image, recorded.point), first=first)
        except EngineDied as error:
            return CheckpointVerdict(
                "unclear", ErrorSeen(stage="run", classes=("the engine died",), message=str(error))
            )
        except EngineFailed as error:
            return CheckpointVerdict("no answer", reason=str(error))

    def _resume(self, image: CrashImage, point: CrashPoint) -> tuple[Observation, ...]:
        """What the query does with an image: at its first start and, if something is overlaid after that, at its second."""
        for _ in range(ATTEMPTS - 1):
            with suppress(TooBusy):
                seen = self._resumed(image, point)
                if seen[-1].error is not None or _aligned(point, point.arrived(image), seen[-1]):
                    return seen
        return self._resumed(image, point)

    def _resumed(self, image: CrashImage, point: CrashPoint) -> tuple[Observation, ...]:
        """Resume once, from a directory that nothing has touched."""
        self._place(image.content)
        if image.overlay is None:
            return (self._observe(self._resuming(point, len(point.case.steps), point.arrived(image))),)
        # The query starts, and stops before the next step.
        saved = self.folder / "replayed"
        replay = self._observe(self._resuming(point, point.step).model_copy(update={"save": str(saved)}))
        if replay.error is not None:
            return (replay,)
        content = FolderContent.read(saved)
        for path, file in image.overlay.files.items():
            content = content.with_file(path, file)
        self._place(content)
        return replay, self._observe(self._resuming(point, len(point.case.steps)))

    def _resuming(self, point: CrashPoint, last: int, arrived: int | None = None) -> CaseRequest:
        request = self._request(point.resumed(arrived or point.step), Segment(point.step, last))
        # Each micro-batch has as many files as in the whole case, and topics have the records that arrived before the crash.
        whole = self._request(point.case, arrived=point.step)
        return request.model_copy(update={"streams": whole.streams, "arrived": whole.arrived, "tell": True})

    def _request(self, case: Case, segment: Segment | None = None, *, arrived: int | None = None) -> CaseRequest:
        broker = broker_for(case, self.engine())
        request = request_for(case, str(self.directory), segment=segment, conf=self.conf, kafka=broker, arrived=arrived)
        return request.model_copy(update={"read_sink": case.written is not None})

    def _observe(self, request: CaseRequest) -> Observation:
        return self.engine().observe(request, step_timeout=self.step_timeout)

    def _place(self, content: FolderContent) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        content.write(self.directory)


def _check_whole(case: Case, seen: Sequence[Observation]) -> None:
    """Raise NotRecordable if the case has ended with an error, MisalignedBatches if rows came in other micro-batches than meant."""
    whole = join_segments(seen)
    if whole.error is not None:
        raise NotRecordable(
            case.id, f"step {whole.steps[-1].number} ends with {whole.error.name}: {whole.error.message}"
        )
    check_alignment(case, whole)


def _aligned(point: CrashPoint, arrived: int, seen: Observation) -> bool:
    """Whether rows of steps after ``arrived``, which came after the restart, came in the micro-batches that they were meant for."""
    later = point.case.model_copy(update={"steps": point.case.steps[arrived:]})
    try:
        check_alignment(later, seen.model_copy(update={"steps": seen.steps[1 + arrived - point.step :]}))
    except MisalignedBatches:
        return False
    return True


@dataclass(frozen=True)
class CrashRequest(SessionOptions):
    """What the user asks of crashes. The cache is not used, and working files are not kept."""

    spark: Sequence[str] = ()
    source: SourceOption = "files"
    step: int | None = None
    images: int | None = None
    """The most images of a micro-batch; None for all."""
    faults: Sequence[Fault] = ()
    """Only images of these faults restart; all if empty."""

    @property
    def store(self) -> StateStore:
        return StateStore.named(self.state_store or "hdfs")


@dataclass(frozen=True)
class CrashPlan:
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

    def __str__(self) -> str:
        names = ", ".join(target.name for target in self.targets)
        cases, store = counted(len(self.points), "case"), self.request.store.name
        return f"{cases} on {names}, state in {store}; into {self.request.output}"


class CrashWatcher(EngineListener, Protocol):
    def recorded(self, point: CrashPoint, target: Target, images: int) -> None:
        """The file operations of a micro-batch are recorded; the query will restart from this many images."""

    def judged(self, record: CrashRecord) -> None: ...


def plan_crashes(request: CrashRequest) -> CrashPlan:
    """Choose cases, steps and versions.

    Raises InvalidCase; NoMicroBatch if the only case cannot crash; WrongUsage, HarnessError if nothing is left, see `Targets.choose`.
    """
    loaded = discovery.valid(request.paths)
    cases: Sequence[Case] = only_tagged(loaded.cases, request.tags)
    cases = resources.having_source(request.source, cases)
    points, left_out = [], 0
    for case in cases:
        try:
            points.append(CrashPoint.of(case, request.step))
        except NoMicroBatch:
            if len(cases) == 1:
                raise
            left_out += 1
    choice = resources.choose_targets(request.spark or ["newest"])
    notes = (*choice.notes, *resources.not_confined(request.runtime, cases))
    if left_out:
        notes = (*notes, f"{counted(left_out, 'case')} left out: they restart their query, or no rows arrive.")
    plan = CrashPlan(request, tuple(points), having(request.store, choice.targets), notes)
    if not any(plan.by_target.values()):
        raise OptionsClash("no case is left: none has rows, keeps its query running, and runs on a chosen version")
    return plan


def run_crashes(plan: CrashPlan, watcher: CrashWatcher) -> CrashRecords:
    """Record each micro-batch, restart its query from every image, and write what it does.

    Raises Interrupted, which names what is left; what `OutputFile` raises; HarnessError: no engine, or file operations are not recorded.
    """
    request = plan.request
    header = CrashHeader(command=request.command)
    records: list[CrashRecord] = []
    with ExitStack() as stack:
        output = stack.enter_context(OutputFile(request.output, CRASH_RECORDS))
        # What has been judged until an interruption or an error stays beside the place.
        stack.callback(output.close)
        stack.enter_context(resources.interruptible(lambda: f"{output.part} has {counted(len(records), 'image')}"))
        folder = stack.enter_context(resources.working_folder())
        output.write(header.line)
        for target in plan.targets:
            for record in _crashes(plan, target, folder, watcher):
                output.write(record.line)
                records.append(record)
                watcher.judged(record)
        output.complete()
    return CrashRecords(header, tuple(records))


def _crashes(plan: CrashPlan, target: Target, folder: Path, watcher: CrashWatcher) -> Iterator[CrashRecord]:
    """Record cases in one engine, and restart them in another: only the first writes snapshots in the background.

    Both use the same folder, because checkpoints hold absolute paths. Cases with code have engines of their own.
    """
    for code in (False, True):
        some = replace(plan, points=tuple(point for point in plan.points if bool(point.case.needs_code) is code))
        if some.by_target[target.name]:
            yield from _crashes_of_plan(some, target, folder, watcher)


def _crashes_of_plan(plan: CrashPlan, target: Target, folder: Path, watcher: CrashWatcher) -> Iterator[CrashRecord]:
    recordings: list[Recorded] = []
    store = plan.request.store.name
    with _restarts(plan, target, folder, watcher, maintenance="200ms") as restarts:
        for point in plan.by_target[target.name]:
            try:
                recorded = restarts.record(point).only(plan.request.faults, plan.request.images)
            except (NotRecordable, RecordingIncomplete, EngineFailed) as error:
                verdict = CheckpointVerdict("no answer", reason=str(error))
                yield CrashRecord.of(point.case.id, target.name, store, point.step, None, verdict)
            else:
                recordings.append(recorded)
                watcher.recorded(point, target, len(recorded.images))
    with _restarts(plan, target, folder, watcher, maintenance="1d") as restarts:
        for recorded in recordings:
            for image, verdict in restarts.judged(recorded):
                point = recorded.point
                yield CrashRecord.of(point.case.id, target.name, store, point.step, image, verdict)


@contextmanager
def _restarts(
    plan: CrashPlan, target: Target, folder: Path, watcher: CrashWatcher, *, maintenance: str
) -> Iterator[Restarts]:
    """An engine for restarts. ``maintenance``: how often its state stores write snapshots and remove old files."""
    request = plan.request
    points = plan.by_target[target.name]
    topics = any(point.case.topics for point in points)
    tables = tuple(sorted({format for point in points for format in point.case.table_formats}))
    jars = tuple(dict.fromkeys(jar for point in points for jar in point.case.jars))
    conf = {**as_users_run(target), _MAINTENANCE: maintenance, **request.runtime.conf}
    limits = Limits(jobs=1, step_timeout=request.concurrency.step_timeout, engine_memory=ENGINE_MEMORY_LIMIT)
    main, code = any(point.case.calls_main for point in points), any(point.case.needs_code for point in points)
    needs = EngineNeeds(topics=topics, tables=tables, jars=jars, main=main, code=code)
    with Engines(replace(request.runtime, conf=conf), limits, watcher) as engines:
        slot = engines.slot(target, needs)
        with slot.use():
            yield Restarts(slot.engine, folder, request.store.conf, limits.step_timeout)


def as_users_run(target: Target) -> dict[str, str]:
    """Settings under which Spark operates on files as it does for its users: the suite's own leave out half of that."""
    manager = tuning(target.version)[MANAGER]
    return {
        MANAGER: manager.replace("FileSystemBased", "FileContextBased"),
        "spark.conformance.writeChecksums": "true",
        "spark.conformance.makeDirectories": "false",
        "spark.conformance.hadoopDefaults": "true",
    }
