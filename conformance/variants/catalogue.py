"""Every variant, and the cases it produces."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from typing import Any, TypeAlias

from conformance.core import case as case_values
from conformance.core.case import TABLE_FORMATS, Add, Arrival, Backlog, Case, Partitioned, Restart, Step
from conformance.core.data import read_data
from conformance.core.errors import WrongUsage
from conformance.core.observation import BatchSeen, EventTime, Observation, StepSeen
from conformance.core.operations import From, Opaque, Operation, PythonState, TransformWithState
from conformance.core.spark_types import DataType, parse_type
from conformance.core.values import canonical, show
from conformance.core.versions import StateStore, VersionRange, releases
from conformance.core.wording import unknown
from conformance.language.catalogue import DESCRIPTIONS
from conformance.language.streams import KAFKA


def versions_of(variant: str) -> VersionRange:
    """Where a variant of ``versions.yaml`` can run."""
    return VersionRange.parse(read_data("conformance.variants", "versions.yaml")[variant]["spark"])


MARK = "@"
"""Separates the id of a case from the name of the variant; no case id contains it."""

Back: TypeAlias = Callable[[Observation], Observation]
"""Turns the observation of the changed case into that of the original."""


@dataclass(frozen=True)
class VariantOutput:
    case: Case
    back: Back | None = None
    suffix: str = ""
    """Follows the name of a variant that changes a case in several ways: ``-3`` in ``restart-3``."""


Variant: TypeAlias = Callable[[Case], Iterable[VariantOutput]]
"""One kind of change: from a case to the changed cases; none if the variant does not apply."""


class VariedCase(Case):
    """A case as changed by a variant, with its own id: ``late-drops/window-still-open@rocksdb``."""

    original: Case
    back: Any
    """A ``Back``, or None."""

    @classmethod
    def of(cls, original: Case, name: str, output: VariantOutput) -> VariedCase:
        given = {**dict(output.case), "id": f"{original.id}{MARK}{name}{output.suffix}"}
        return cls.model_construct(**given, original=original, back=output.back)

    @property
    def variant(self) -> str:
        return self.id.removeprefix(f"{self.original.id}{MARK}")

    @property
    def file(self) -> str:
        return self.original.file

    def observation_of_original(self, observation: Observation) -> Observation:
        original: Observation = observation if self.back is None else self.back(observation)
        return original.model_copy(update={"case": self.original.id})


PARTITIONS = 3

Arrangement: TypeAlias = Callable[[str, Partitioned], Partitioned]


def reversed_rows(_: str, rows: Partitioned) -> Partitioned:
    return Partitioned(partitions=tuple(partition[::-1] for partition in rows.partitions))


def spread_rows(_: str, rows: Partitioned) -> Partitioned:
    """The rows over partitions, if they are in a single one: a case that places rows in partitions does so on purpose."""
    if len(rows.partitions) != 1 or len(rows.partitions[0]) < 2:
        return rows
    return Partitioned(partitions=tuple(rows.partitions[0][at::PARTITIONS] for at in range(PARTITIONS)))


def rearranged(how: Arrangement, case: Case) -> Iterator[VariantOutput]:
    """The case with all arriving rows rearranged, if that changes it."""

    def arranged(arrival: Arrival) -> Arrival:
        return {stream: how(stream, rows) for stream, rows in arrival.items()}

    def action_of(step: Step) -> case_values.Action:
        match step.action:
            case Add(streams=arrival):
                return Add(streams=arranged(arrival))
            case Backlog(entries=entries):
                return Backlog(entries=tuple(map(arranged, entries)))
            case Restart(add=arrival) as restart if arrival:
                return restart.model_copy(update={"add": arranged(arrival)})
            case other:
                return other

    steps = tuple(step.model_copy(update={"action": action_of(step)}) for step in case.steps)
    if steps != case.steps:
        yield VariantOutput(case.model_copy(update={"steps": steps}))


def spread(case: Case) -> Iterator[VariantOutput]:
    """The case with its rows over partitions; a stream in memory has one partition, and more files are other micro-batches if Spark
    chooses among them."""
    if not case.in_memory and not case.files:
        yield from rearranged(spread_rows, case)


def from_kafka(case: Case) -> Iterator[VariantOutput]:
    """Every stream is read from a topic, with as many partitions as its most partitioned arrival."""
    if not _reads_only_files_one_by_one(case):
        return
    partitions = dict.fromkeys(case.streams, 1)
    for arrival in (arrival for step in case.steps for arrival in step.arrivals()):
        for name, rows in arrival.items():
            partitions[name] = max(partitions[name], len(rows.partitions))
    topics = {name: case_values.KafkaSource(partitions=count) for name, count in partitions.items()}
    yield VariantOutput(case.model_copy(update={"topics": topics}))


def from_table(format: case_values.TableFormat, case: Case) -> Iterator[VariantOutput]:
    if _reads_only_files_one_by_one(case):
        yield VariantOutput(case.model_copy(update={"tables": dict.fromkeys(case.streams, format)}))


def _reads_only_files_one_by_one(case: Case) -> bool:
    """Whether another source than files, without a limit for a micro-batch, can give a case its rows.

    None can for a case

    - that reads something else already, or chooses among its files;
    - with a backlog and ``availableNow``, which reads all that is there in one micro-batch;
    - whose sources have names: one that gets a name reads all from the beginning in one micro-batch;
    - that drives the clock of its query, which then reads what waits for its next trigger in one micro-batch.
    """
    backlog = any(isinstance(step.action, Backlog) for step in case.steps)
    at_once = backlog and "availableNow" in case.triggers
    named = any(isinstance(operation, From) and operation.source_name is not None for operation in case.operations())
    return case.source == "files" and not (case.files or at_once or named) and case.interval_ms is None


def restarted(case: Case) -> Iterator[VariantOutput]:
    """A restart before each step except the first, restarts, and steps after a start or restart.

    Also not before a step where, according to ``upgrades`` of the case, even the same version does not simply resume, and not in a case
    that drives the clock of its query, which triggers one more micro-batch when it starts.
    """
    if case.interval_ms is not None:
        return
    for before, step in pairwise(case.steps):
        at = step.number
        if any(isinstance(near.action, Restart | case_values.Start) for near in (before, step)):
            continue
        if any(case.upgrade_between(version, version, at) is not None for version in releases()):
            continue
        stop = Step(number=at, action=Restart(how="graceful"))
        later = (later.model_copy(update={"number": later.number + 1}) for later in case.steps[at - 1 :])
        changed = case.model_copy(update={"steps": (*case.steps[: at - 1], stop, *later)})
        yield VariantOutput(changed, partial(_without_restart, at), f"-{at}")


def _without_restart(at: int, observation: Observation) -> Observation:
    """The observation without the restart; its micro-batches, or its error, move to the following step."""
    steps = list(observation.steps[:at])
    for step in observation.steps[at:]:
        before = steps.pop().batches if step.number == at + 1 else ()
        steps.append(step.model_copy(update={"number": step.number - 1, "batches": (*before, *step.batches)}))
    return observation.model_copy(update={"steps": tuple(steps)})


def rows_for_pandas(case: Case) -> Iterator[VariantOutput]:
    """The same case with processors over rows (SPARK-51814), if it has any over pandas."""
    if all(_over_rows(operation) is operation for operation in case.operations()):
        return
    versions = versions_of("rows-for-pandas")
    changed = {
        "query": case.query.changed(_over_rows),
        "steps": tuple(_step_over_rows(step) for step in case.steps),
        "spark": versions if case.spark is None else case.spark & versions,
    }
    yield VariantOutput(case.model_copy(update=changed))


def _step_over_rows(step: Step) -> Step:
    action = step.action
    if not isinstance(action, Restart) or action.change.query is None:
        return step
    change = action.change.model_copy(update={"query": action.change.query.changed(_over_rows)})
    return step.model_copy(update={"action": action.model_copy(update={"change": change})})


def _over_rows(operation: Operation) -> Operation:
    """The operation with a processor over rows, itself if it has none over pandas."""
    if not isinstance(operation, TransformWithState) or not operation.in_pandas:
        return operation
    return replace(operation, in_pandas=False)


@dataclass(frozen=True)
class WithSettings:
    """The same case with these settings.

    Does not apply to a case that sets one of them to something else or all of them to the same, that damages checkpoint files, whose
    location may change, or that checks a plan or a metric of the progress, which may change.
    """

    conf: Mapping[str, str]
    spark: VersionRange | None = None
    default: bool = False
    """Whether these are the default settings, so that the variant applies only to cases that set them."""
    only: str | None = None
    """The one operation with state for which Spark allows the settings; None if it does for all."""
    without: re.Pattern[str] | None = None
    """What no expression of the query may contain, since the settings give it another meaning."""

    def __call__(self, case: Case) -> Iterator[VariantOutput]:
        if self.without is not None and _occurs(self.without, case):
            return
        restarts = [step.action for step in case.steps if isinstance(step.action, Restart)]
        changed = set().union(*(restart.change.conf or {} for restart in restarts))
        same = {key for key, value in self.conf.items() if case.conf.get(key) == value} - changed
        own = (set(case.conf) | changed) & set(self.conf)
        applicable = bool(own) if self.default else own == same and len(same) < len(self.conf)
        stateful = {operation.name for operation in case.operations() if operation.may_keep_state}
        if self.only is not None and stateful != {self.only}:
            return
        expected: list[case_values.Expectation | None] = [step.expect for step in case.steps]
        for entry in case.differs:
            expected += [entry.expect, *entry.steps.values()]
        checks_internals = any(stated is not None and (stated.plan or stated.progress) for stated in expected)
        if applicable and not checks_internals and not any(restart.damage for restart in restarts):
            spark = self.spark if case.spark is None or self.spark is None else case.spark & self.spark
            given = {"conf": {**case.conf, **self.conf}, "spark": spark or case.spark}
            yield VariantOutput(case.model_copy(update=given))


def _occurs(pattern: re.Pattern[str], case: Case) -> bool:
    """Whether an expression of a query of the case contains a match."""
    return any(pattern.search(json.dumps(pipeline.wire())) for pipeline in case.pipelines())


_LOCAL_TIME = re.compile(r"TIMESTAMP\s*'[^'Z+]*'", re.IGNORECASE)
"""A constant time of the clock of the session's time zone."""

SHIFT_MS = 364 * 24 * 60 * 60 * 1000
"""52 weeks, a multiple of a week and of the common window lengths up to a day."""
SHIFT_US = SHIFT_MS * 1000

_ABSOLUTE = re.compile(
    r"\d\d:\d\d|\d{4}-\d\d|TIMESTAMP\s*['(]|DATE|YEAR|MONTH|DAY\(|HOUR|_seconds|_millis|_micros|unix|epoch|current_|now\(|string|BIGINT|DOUBLE|INT\)",
    re.IGNORECASE,
)
"""What may be a constant time in an expression, or a conversion from or to a time."""
_INSTANTS = ("timestamp", "timestamp_ntz")


def shifted_epoch(case: Case) -> Iterator[VariantOutput]:
    """All event times 52 weeks later.

    Does not apply to a case without event times, to a query with constant times, or to state functions, which emit times as
    numbers.
    """
    if any(isinstance(operation, Opaque | PythonState) for operation in case.operations()) or _occurs(_ABSOLUTE, case):
        return

    def later(stream: str, rows: Partitioned) -> Partitioned:
        columns = case.streams[stream].struct
        partitions = tuple(tuple(moved(row, columns, SHIFT_US) for row in partition) for partition in rows.partitions)
        return Partitioned.model_validate({"partitions": partitions})

    for output in rearranged(later, case):
        yield replace(output, back=_earlier)


def moved(value: object, type: DataType, micros: int) -> object:
    if value is None:
        return None
    if type.name in _INSTANTS:
        at = canonical(value, type)
        assert isinstance(at, int)
        return show(at + micros)
    if type.name == "struct":
        if isinstance(value, dict):
            return {field.name: moved(value.get(field.name), field.type, micros) for field in type.fields}
        assert isinstance(value, list | tuple)
        return [moved(item, field.type, micros) for item, field in zip(value, type.fields, strict=True)]
    if type.name == "array":
        assert isinstance(value, list | tuple)
        return [moved(item, type.elements[0], micros) for item in value]
    return value


def _earlier(observation: Observation) -> Observation:
    def shifted_back(step: StepSeen) -> StepSeen:
        types = [parse_type(column.type) for column in observation.columns_of(step)]
        batches = tuple(_batch(batch, types) for batch in step.batches)
        return step.model_copy(update={"batches": batches, "watermark": _watermark(step.watermark)})

    return observation.model_copy(update={"steps": tuple(map(shifted_back, observation.steps))})


def _batch(batch: BatchSeen, types: Sequence[DataType]) -> BatchSeen:
    rows = tuple(
        tuple(moved(value, type, -SHIFT_US) for value, type in zip(row, types, strict=True)) for row in batch.rows
    )
    times = batch.event_time
    shifted = times and EventTime(min=times.min - SHIFT_MS, max=times.max - SHIFT_MS, avg=times.avg - SHIFT_MS)
    marks = {name: _watermark(getattr(batch, name)) for name in ("watermark", "logged", "next_watermark")}
    return batch.model_copy(update={"rows": rows, **marks, "event_time": shifted})


def _watermark(ms: int | None) -> int | None:
    """0 is the initial watermark, independent of the rows."""
    return ms - SHIFT_MS if ms else ms


_STORE = "spark.sql.streaming.stateStore"

ELSEWHERE: tuple[str, ...] = (KAFKA, *TABLE_FORMATS)
"""The variants that need what Spark does not ship: a broker and its connector, or the package of a table format."""


@cache
def variants() -> Mapping[str, Variant]:
    """All variants by name, in the order of ``DESCRIPTIONS``."""
    rocksdb = StateStore.named("rocksdb")
    shuffle = "spark.sql.shuffle.partitions"

    def on_rocksdb(name: str, key: str, value: str, only: str | None = None) -> WithSettings:
        return WithSettings({**rocksdb.conf, f"{_STORE}.{key}": value}, versions_of(name), only=only)

    return {
        "reversed-rows": partial(rearranged, reversed_rows),
        "spread-rows": spread,
        "one-shuffle-partition": WithSettings({shuffle: "1"}, default=True),
        "four-shuffle-partitions": WithSettings({shuffle: "4"}),
        "rocksdb": WithSettings(rocksdb.conf, rocksdb.versions),
        "changelog-checkpoints": on_rocksdb("changelog-checkpoints", "rocksdb.changelogCheckpointing.enabled", "true"),
        "checkpoint-format-2": on_rocksdb("checkpoint-format-2", "checkpointFormatVersion", "2"),
        "avro-state": on_rocksdb("avro-state", "encodingFormat", "avro", only=TransformWithState.name),
        "row-checksum": WithSettings({f"{_STORE}.rowChecksum.enabled": "true"}, versions_of("row-checksum")),
        "rows-for-pandas": rows_for_pandas,
        "no-codegen": WithSettings(
            {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
        ),
        "adaptive": WithSettings({"spark.sql.adaptive.enabled": "true"}),
        # UTC+05:45, not a whole number of hours.
        "time-zone": WithSettings({"spark.sql.session.timeZone": "Asia/Kathmandu"}, without=_LOCAL_TIME),
        "shifted-epoch": shifted_epoch,
        KAFKA: from_kafka,
        **{format: partial(from_table, format) for format in TABLE_FORMATS},
        "restart": restarted,
    }


def varied(cases: Iterable[Case], names: Sequence[str]) -> tuple[VariedCase, ...]:
    """Every case as changed by these variants, unless it excludes them; without names by all but those of ``ELSEWHERE``.

    Raises WrongUsage: one of the names is unknown.
    """
    for name in names:
        if name not in DESCRIPTIONS:
            raise WrongUsage(unknown("variant", name, DESCRIPTIONS))
    chosen = {
        name: variant for name, variant in variants().items() if name in names or (not names and name not in ELSEWHERE)
    }
    return tuple(
        VariedCase.of(case, name, output)
        for case in cases
        for name, variant in chosen.items()
        if name not in case.variants
        for output in variant(case)
    )
