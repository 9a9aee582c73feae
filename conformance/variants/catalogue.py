"""Every variant, and the cases it produces."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Protocol, TypeAlias

from conformance.core.case import (
    OPAQUE,
    PYTHON_STATE,
    Add,
    Arrival,
    Backlog,
    Case,
    Expectation,
    KafkaSource,
    Operation,
    Partitioned,
    Pipeline,
    Restart,
    Row,
    Start,
    Step,
)
from conformance.core.data import read_data
from conformance.core.errors import WrongUsage
from conformance.core.observation import BatchSeen, Column, EventTime, Observation, StepSeen
from conformance.core.spark_types import DataType, Schema, parse_type
from conformance.core.values import canonical, show
from conformance.core.versions import StateStore, VersionRange, releases
from conformance.language.catalogue import DESCRIPTIONS
from conformance.language.source import unknown


def versions_of(variant: str) -> VersionRange:
    """Where a variant of ``versions.yaml`` can run."""
    return VersionRange.parse(read_data("conformance.variants", "versions.yaml")[variant]["spark"])


MARK = "@"
"""Separates the id of a case from the name of the variant; no case id contains it."""

Back: TypeAlias = Callable[[Observation], Observation]
"""From the observation of the changed case to that of the original."""


def unchanged(observation: Observation) -> Observation:
    return observation


@dataclass(frozen=True)
class VariantOutput:
    """A case as changed by a variant."""

    name: str
    """Follows the id of the case: ``rocksdb``, ``restart-3``."""
    case: Case
    back: Back = unchanged


class Variant(Protocol):
    """One kind of change."""

    @property
    def name(self) -> str:
        """As in ``conformance.language.catalogue``."""

    def of(self, case: Case) -> Iterator[VariantOutput]:
        """The changed cases; none if the variant does not apply."""


class VariedCase(Case):
    """A case as changed by a variant, with its own id: ``late-drops/window-still-open@rocksdb``."""

    original: Case
    back: Any
    """A ``Back``."""

    @classmethod
    def of(cls, original: Case, output: VariantOutput) -> VariedCase:
        given = {**dict(output.case), "id": f"{original.id}{MARK}{output.name}"}
        return cls.model_construct(**given, original=original, back=output.back)

    @property
    def variant(self) -> str:
        """``rocksdb``, ``restart-3``"""
        return self.id.removeprefix(f"{self.original.id}{MARK}")

    @property
    def file(self) -> str:
        return self.original.file

    def observation_of_original(self, observation: Observation) -> Observation:
        """The observation as if the engine had run the original case."""
        found: Observation = self.back(observation)
        return found.model_copy(update={"case": self.original.id})


PARTITIONS = 3

Arrangement: TypeAlias = Callable[[str, Partitioned], Partitioned]
"""From a stream name and its rows in one micro-batch to the rows that arrive instead."""


@dataclass(frozen=True)
class Rearranged:
    """The same case with its rows arranged like this."""

    name: str
    how: Arrangement

    def of(self, case: Case) -> Iterator[VariantOutput]:
        other = rearranged(case, self.how)
        if other != case and not (case.in_memory and self.how is spread_rows):  # it has one partition
            yield VariantOutput(self.name, other)


def reversed_rows(_: str, rows: Partitioned) -> Partitioned:
    """The rows of each partition in the opposite order."""
    return Partitioned(partitions=tuple(partition[::-1] for partition in rows.partitions))


def spread_rows(_: str, rows: Partitioned) -> Partitioned:
    """The rows over partitions, if they are in a single one: a case that places rows in partitions does so on purpose."""
    if len(rows.partitions) != 1 or len(rows.partitions[0]) < 2:
        return rows
    return Partitioned(partitions=tuple(rows.partitions[0][at::PARTITIONS] for at in range(PARTITIONS)))


def rearranged(case: Case, how: Arrangement) -> Case:
    """The case with all arriving rows rearranged."""
    return case.model_copy(update={"steps": tuple(_rearranged_step(step, how) for step in case.steps)})


def _rearranged_step(step: Step, how: Arrangement) -> Step:
    match step.action:
        case Add(streams=arrival):
            return step.model_copy(update={"action": Add(streams=_arrival(arrival, how))})
        case Backlog(entries=entries):
            return step.model_copy(update={"action": Backlog(entries=tuple(_arrival(one, how) for one in entries))})
        case Restart(add=arrival) as restart if arrival:
            return step.model_copy(update={"action": restart.model_copy(update={"add": _arrival(arrival, how)})})
        case _:
            return step


def _arrival(arrival: Arrival, how: Arrangement) -> Arrival:
    return {stream: how(stream, rows) for stream, rows in arrival.items()}


@dataclass(frozen=True)
class FromKafka:
    """Every stream is read from a topic, with as many partitions as its most partitioned arrival.

    Does not apply to a case

    - that reads topics or memory already;
    - with a backlog and ``availableNow``, which reads all records of a topic in one micro-batch;
    - whose sources have names: one that gets a name reads all records from the beginning in one micro-batch.
    """

    name: str = "kafka"

    def of(self, case: Case) -> Iterator[VariantOutput]:
        backlog = any(isinstance(step.action, Backlog) for step in case.steps)
        at_once = backlog and "availableNow" in case.triggers
        named = any(one.name == "from" and "name" in one.arguments for one in case.operations())
        if case.topics or case.in_memory or at_once or named:
            return
        topics = {name: KafkaSource(partitions=_partitions(name, case)) for name in case.streams}
        yield VariantOutput(self.name, case.model_copy(update={"topics": topics}))


def _partitions(stream: str, case: Case) -> int:
    return max((len(one[stream].partitions) for one in _arrivals(case) if stream in one), default=1) or 1


def _arrivals(case: Case) -> Iterator[Arrival]:
    for step in case.steps:
        match step.action:
            case Add(streams=arrival) | Restart(add=arrival):
                yield arrival
            case Backlog(entries=entries):
                yield from entries


@dataclass(frozen=True)
class Restarted:
    """A restart before each step except the first, restarts, and steps after a start or restart.

    Also not before a step where, according to ``upgrades`` of the case, even the same version does not simply resume.
    """

    name: str = "restart"

    def of(self, case: Case) -> Iterator[VariantOutput]:
        for before, step in zip(case.steps, case.steps[1:], strict=False):
            if any(isinstance(one.action, Restart | Start) for one in (before, step)):
                continue
            if not _resumes_differently(case, step.number):
                yield VariantOutput(
                    f"{self.name}-{step.number}", _restarted(case, step.number), partial(_without_restart, step.number)
                )


def _resumes_differently(case: Case, at: int) -> bool:
    return any(case.upgrade_between(version, version, at) is not None for version in releases())


def _restarted(case: Case, at: int) -> Case:
    head, tail = case.steps[: at - 1], case.steps[at - 1 :]
    stop = Step(number=at, action=Restart(how="graceful"))
    later = tuple(step.model_copy(update={"number": step.number + 1}) for step in tail)
    return case.model_copy(update={"steps": (*head, stop, *later)})


def _without_restart(at: int, observation: Observation) -> Observation:
    """The observation without the restart; its micro-batches, or its error, move to the following step."""
    steps: list[StepSeen] = []
    stopped: StepSeen | None = None
    for step in observation.steps:
        if step.number == at:
            stopped = step
        elif step.number > at:
            ran = stopped.batches if stopped is not None else ()
            steps.append(step.model_copy(update={"number": step.number - 1, "batches": (*ran, *step.batches)}))
            stopped = None
        else:
            steps.append(step)
    if stopped is not None:
        steps.append(stopped)
    return observation.model_copy(update={"steps": tuple(steps)})


_OPERATION = "transformWithState"


@dataclass(frozen=True)
class RowsForPandas:
    """The same case with processors over rows (SPARK-51814), if it has any over pandas."""

    name: str = "rows-for-pandas"

    def of(self, case: Case) -> Iterator[VariantOutput]:
        if all(_over_rows(operation) is operation for operation in case.operations()):
            return
        versions = versions_of(self.name)
        changed = {
            "query": _pipeline(case.query),
            "steps": tuple(_step_for_pandas(step) for step in case.steps),
            "spark": versions if case.spark is None else case.spark & versions,
        }
        yield VariantOutput(self.name, case.model_copy(update=changed))


def _step_for_pandas(step: Step) -> Step:
    action = step.action
    if not isinstance(action, Restart) or action.change.query is None:
        return step
    change = action.change.model_copy(update={"query": _pipeline(action.change.query)})
    return step.model_copy(update={"action": action.model_copy(update={"change": change})})


def _pipeline(pipeline: Pipeline) -> Pipeline:
    return Pipeline(tuple(_over_rows(operation) for operation in pipeline.operations))


def _over_rows(operation: Operation) -> Operation:
    """The operation with processors over rows, itself if it has none over pandas."""
    nested = tuple(_pipeline(one) for one in operation.nested)
    if operation.name == _OPERATION and operation.arguments[_OPERATION].get("inPandas", True):
        of = {**operation.arguments[_OPERATION], "inPandas": False}
        return replace(operation, arguments={**operation.arguments, _OPERATION: of}, nested=nested)
    if nested == operation.nested:
        return operation
    return replace(operation, arguments={**operation.arguments, **_written(operation, nested)}, nested=nested)


def _written(operation: Operation, nested: tuple[Pipeline, ...]) -> dict[str, object]:
    """The arguments that hold nested pipelines."""
    if operation.name == "sql":
        return {"views": {name: one.wire() for name, one in zip(operation.arguments["views"], nested, strict=True)}}
    return {operation.name: nested[0].wire()} if operation.name != "call" else {}


@dataclass(frozen=True)
class Settings:
    """The same case with these settings.

    Does not apply to a case that sets one of them to something else or all of them to the same, that damages checkpoint files, whose
    location may change, or that checks a plan or a metric of the progress, which may change.
    """

    name: str
    conf: Mapping[str, str]
    spark: VersionRange | None = None
    """The versions that have the settings."""
    default: bool = False
    """Whether these are the default settings, so that the variant applies only to cases that set them."""
    only: str | None = None
    """The one operation with state for which Spark allows the settings; None if it does for all."""

    def of(self, case: Case) -> Iterator[VariantOutput]:
        changed = set().union(*(_conf(step.action) for step in case.steps))
        same = {key for key, value in self.conf.items() if case.conf.get(key) == value} - changed
        own = (set(case.conf) | changed) & set(self.conf)
        applicable = bool(own) if self.default else own == same and len(same) < len(self.conf)
        stateful = {operation.name for operation in case.operations() if operation.may_keep_state}
        if self.only is not None and stateful != {self.only}:
            return
        if applicable and not _checks_internals(case):
            spark = self.spark if case.spark is None or self.spark is None else case.spark & self.spark
            given = {"conf": {**case.conf, **self.conf}, "spark": spark or case.spark}
            yield VariantOutput(self.name, case.model_copy(update=given))


def _conf(action: object) -> Mapping[str, str]:
    return (action.change.conf or {}) if isinstance(action, Restart) else {}


def _checks_internals(case: Case) -> bool:
    damaged = any(isinstance(step.action, Restart) and step.action.damage for step in case.steps)
    expected: list[Expectation | None] = [step.expect for step in case.steps]
    for entry in case.differs:
        expected += [entry.expect, *entry.steps.values()]
    return damaged or any(one is not None and (one.plan or one.progress) for one in expected)


SHIFT_DAYS = 364
"""52 weeks, a multiple of a week and of the common window lengths up to a day."""
SHIFT_MS = SHIFT_DAYS * 24 * 60 * 60 * 1000

_ABSOLUTE = re.compile(
    r"\d\d:\d\d|\d{4}-\d\d|TIMESTAMP\s*['(]|DATE|YEAR|MONTH|DAY\(|HOUR|_seconds|_millis|_micros|unix|epoch|current_|now\(|string|BIGINT|DOUBLE|INT\)",
    re.IGNORECASE,
)
"""In an expression: a possible constant time, or a conversion from or to a time."""
_INSTANTS = ("timestamp", "timestamp_ntz")


@dataclass(frozen=True)
class ShiftedEpoch:
    """All event times 52 weeks later.

    Does not apply to a case without event times, to a query with constant times, or to state functions, which emit times as
    numbers.
    """

    name: str = "shifted-epoch"

    def of(self, case: Case) -> Iterator[VariantOutput]:
        for pipeline in case.pipelines():
            if any(one.name in OPAQUE | PYTHON_STATE for one in pipeline.walk()) or _ABSOLUTE.search(
                json.dumps(pipeline.wire())
            ):
                return
        other = rearranged(case, lambda stream, rows: _later(rows, case.streams[stream]))
        if other != case:
            yield VariantOutput(self.name, other, _earlier)


def _later(rows: Partitioned, schema: Schema) -> Partitioned:
    return Partitioned(
        partitions=tuple(
            tuple(_row(row, schema, SHIFT_MS * 1000) for row in partition) for partition in rows.partitions
        )
    )


def _row(row: Row, schema: Schema, micros: int) -> Row:
    types = {field.name: field.type for field in schema.fields}
    if isinstance(row, tuple):
        return tuple(moved(value, field.type, micros) for value, field in zip(row, schema.fields, strict=True))
    return {name: moved(value, types[name], micros) for name, value in row.items()}


def moved(value: object, type: DataType, micros: int) -> object:
    """The value with every instant in it moved."""
    if value is None:
        return None
    if type.name in _INSTANTS:
        at = canonical(value, type)
        assert isinstance(at, int)
        return show(at + micros)
    if type.name == "struct":
        if isinstance(value, dict):
            return {one.name: moved(value.get(one.name), one.type, micros) for one in type.fields}
        assert isinstance(value, list | tuple)
        return [moved(one, field.type, micros) for one, field in zip(value, type.fields, strict=True)]
    if type.name == "array":
        assert isinstance(value, list | tuple)
        return [moved(one, type.elements[0], micros) for one in value]
    return value


def _earlier(observation: Observation) -> Observation:
    steps = tuple(_step_shifted_back(step, observation.columns_of(step)) for step in observation.steps)
    return observation.model_copy(update={"steps": steps})


def _step_shifted_back(step: StepSeen, columns: tuple[Column, ...]) -> StepSeen:
    batches = tuple(_batch(batch, columns) for batch in step.batches)
    return step.model_copy(update={"batches": batches, "watermark": _watermark(step.watermark)})


def _batch(batch: BatchSeen, columns: tuple[Column, ...]) -> BatchSeen:
    types = [parse_type(column.type) for column in columns]
    rows = tuple(
        tuple(moved(value, type, -SHIFT_MS * 1000) for value, type in zip(row, types, strict=True))
        for row in batch.rows
    )
    times = batch.event_time
    return batch.model_copy(
        update={
            "rows": rows,
            "watermark": _watermark(batch.watermark),
            "logged": _watermark(batch.logged),
            "next_watermark": _watermark(batch.next_watermark),
            "event_time": times
            and EventTime(min=times.min - SHIFT_MS, max=times.max - SHIFT_MS, avg=times.avg - SHIFT_MS),
        }
    )


def _watermark(ms: int | None) -> int | None:
    """0 is the initial watermark, independent of the rows."""
    return ms - SHIFT_MS if ms else ms


_STORE = "spark.sql.streaming.stateStore"

KAFKA = "kafka"
"""The variant that needs a broker."""


@cache
def variants() -> tuple[Variant, ...]:
    """All variants, in the order of ``DESCRIPTIONS``."""
    rocksdb = StateStore.named("rocksdb")
    shuffle, zone = "spark.sql.shuffle.partitions", "spark.sql.session.timeZone"
    found: list[Variant] = [
        Rearranged("reversed-rows", reversed_rows),
        Rearranged("spread-rows", spread_rows),
        Settings("one-shuffle-partition", {shuffle: "1"}, default=True),
        Settings("four-shuffle-partitions", {shuffle: "4"}),
        Settings("rocksdb", rocksdb.conf, rocksdb.versions),
        Settings(
            "changelog-checkpoints",
            {**rocksdb.conf, f"{_STORE}.rocksdb.changelogCheckpointing.enabled": "true"},
            versions_of("changelog-checkpoints"),
        ),
        Settings(
            "checkpoint-format-2",
            {**rocksdb.conf, f"{_STORE}.checkpointFormatVersion": "2"},
            versions_of("checkpoint-format-2"),
        ),
        Settings(
            "avro-state",
            {**rocksdb.conf, f"{_STORE}.encodingFormat": "avro"},
            versions_of("avro-state"),
            only="transformWithState",
        ),
        Settings("row-checksum", {f"{_STORE}.rowChecksum.enabled": "true"}, versions_of("row-checksum")),
        RowsForPandas(),
        Settings(
            "no-codegen", {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
        ),
        Settings("adaptive", {"spark.sql.adaptive.enabled": "true"}),
        # UTC+05:45, not a whole number of hours.
        Settings("time-zone", {zone: "Asia/Kathmandu"}),
        ShiftedEpoch(),
        FromKafka(),
        Restarted(),
    ]
    return tuple(found)


def varied(cases: Iterable[Case], names: Sequence[str]) -> tuple[VariedCase, ...]:
    """Every case as changed by each of these variants, except those that the case excludes.

    Args:
        cases: as written.
        names: of variants; empty means all but ``kafka``, which needs a broker.

    Raises:
        WrongUsage: one of the names is unknown.
    """
    for name in names:
        if name not in DESCRIPTIONS:
            raise WrongUsage(unknown("variant", name, DESCRIPTIONS))
    chosen = [one for one in variants() if one.name in names or (not names and one.name != KAFKA)]
    return tuple(
        VariedCase.of(case, output)
        for case in cases
        for variant in chosen
        if variant.name not in case.variants
        for output in variant.of(case)
    )
