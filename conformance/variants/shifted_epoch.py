"""Everything later by a whole number of windows: no event time is special except the epoch itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from conformance.core.case import Case, Partitioned, Row
from conformance.core.observation import BatchSeen, Column, EventTime, Observation, StepSeen
from conformance.core.query import OPAQUE, PYTHON_STATE
from conformance.core.spark_types import DataType, Schema, parse_type
from conformance.core.values import canonical, show
from conformance.variants.arrivals import rearranged
from conformance.variants.variant import VariantOutput

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
    steps = tuple(_step(step, observation.columns_of(step)) for step in observation.steps)
    return observation.model_copy(update={"steps": steps})


def _step(step: StepSeen, columns: tuple[Column, ...]) -> StepSeen:
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
