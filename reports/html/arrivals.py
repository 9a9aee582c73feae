"""Which rows a micro-batch read, and whether they were dropped.

An observation only counts rows, so they are taken from the case: an ``add`` is one micro-batch, a ``backlog`` one for each
entry, and a replay repeats the micro-batch it replays. Which rows were dropped follows from the number of drops if only one
set of rows fits, else from the reference model, which is marked; otherwise it is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from conformance.core.case import Add, Arrival, Backlog, Case, Pipeline, Restart, Row
from conformance.core.observation import BatchSeen, Observation
from conformance.core.spark_types import Schema
from conformance.core.values import NotAValue, canonical
from conformance.judging.finding import cell
from reports.analysis.model_fates import BatchFates, LateRows, Span

RowFate: TypeAlias = Literal["taken", "late", "model-taken", "model-late", "behind", "null", "timeless"]

FATES: Mapping[RowFate, str] = {
    "taken": "processed",
    "late": "dropped as late",
    "model-taken": "processed, by the reference model",
    "model-late": "dropped as late, by the reference model",
    "behind": "behind the watermark; unknown whether dropped",
    "null": "no event time",
    "timeless": "no event-time column",
}

_UNITS = {"second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6, "day": 86400 * 10**6}
_LENGTH = r"'\s*(\d+)\s+(second|minute|hour|day)s?\s*'"
_WINDOW = re.compile(rf"(?<!_)\bwindow\s*\(\s*`?(\w+)`?\s*,\s*{_LENGTH}\s*(,)?")


@dataclass(frozen=True)
class ArrivedRow:
    """One row of a micro-batch."""

    stream: str
    time_us: int | None
    """Its event time, in microseconds since the epoch."""
    text: str
    """The row as the case writes it."""
    fate: RowFate
    behind: bool = False
    """Whether its time is at or before the watermark of the micro-batch."""
    values: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)
    """Column in lower case → value, as it is compared; instants in µs."""


@dataclass(frozen=True)
class ExecutedBatch:
    """One executed micro-batch with the rows it read."""

    step: int
    batch: BatchSeen
    rows: tuple[ArrivedRow, ...]
    restarted: str | None = None
    """How the query was restarted just before it; None if it was not."""


@dataclass(frozen=True)
class TumblingWindows:
    """Tumbling windows, the only ones that can be derived from the query with certainty."""

    column: str
    length_us: int

    def of(self, time_us: int) -> tuple[int, int]:
        start = time_us - time_us % self.length_us
        return start, start + self.length_us


def executed(case: Case, observation: Observation, fates: Sequence[BatchFates] = ()) -> tuple[ExecutedBatch, ...]:
    """The micro-batches of an observation in order, each with its rows.

    Args:
        fates: by the model, of the first micro-batches of the observation; for rows whose fate the engine does not tell.
    """
    batches = tuple(_Reading(case).all(observation))
    return (
        *(_by_the_model(one, known) for one, known in zip(batches, fates, strict=False)),
        *batches[len(fates) :],
    )


def _by_the_model(one: ExecutedBatch, known: BatchFates) -> ExecutedBatch:
    """The micro-batch with the fates of the rows that are behind, if each late row of the model is one of its rows."""
    among = [[rows for rows in known.late if _is_among(row, rows)] for row in one.rows]
    if sum(map(len, among)) != sum(rows.rows for rows in known.late):
        return one
    return replace(
        one,
        rows=tuple(
            replace(row, fate="model-late" if late and not _counts(row, late, known) else "model-taken")
            if row.fate == "behind"
            else row
            for row, late in zip(one.rows, among, strict=True)
        ),
    )


def _is_among(row: ArrivedRow, late: LateRows) -> bool:
    shared = late.values.keys() & row.values.keys()
    return (
        bool(shared or late.window)
        and (late.window is None or _within(row, late.window))
        and all(late.values[name] == row.values[name] for name in shared)
    )


def _counts(row: ArrivedRow, late: Sequence[LateRows], known: BatchFates) -> bool:
    """Whether a row that is late for some windows is in time for another."""
    too_late = {rows.window for rows in late}
    return None not in too_late and any(_within(row, span) for span in (known.kept | known.evicted) - too_late)


def _within(row: ArrivedRow, span: Span) -> bool:
    return row.time_us is not None and span.start <= row.time_us < span.end


def tumbling(case: Case) -> TumblingWindows | None:
    """The windows of the query's only ``window(…)``; None if there is none, or it slides, or there are several."""
    found = _WINDOW.findall(repr([operation.arguments for operation in case.query.operations]).replace('"', ""))
    if len(found) != 1 or found[0][3]:
        return None
    column, number, unit, _ = found[0]
    return TumblingWindows(column, int(number) * _UNITS[unit]) if int(number) else None


class _Reading:
    def __init__(self, case: Case) -> None:
        self._case = case
        self._times = {name: _event_time(name, schema, case.query) for name, schema in case.streams.items()}
        self._tumbling = tumbling(case)
        self._given: dict[int, tuple[ArrivedRow, ...]] = {}
        self._previous = 0

    def all(self, observation: Observation) -> Iterator[ExecutedBatch]:
        restarted: str | None = None
        waiting: list[Arrival] = []
        for seen in observation.steps:
            action = self._case.steps[seen.number - 1].action if seen.number <= len(self._case.steps) else None
            match action:
                case Restart(how=how):
                    restarted = how
                case Add(streams=streams):
                    waiting.append(streams)
                case Backlog(entries=entries):
                    waiting += entries
            data = [batch for batch in seen.batches if batch.kind == "data" and batch.id not in self._given]
            for batch in seen.batches:
                if batch.id in self._given:
                    rows = self._given[batch.id]
                elif batch.kind == "data" and waiting:
                    # The last micro-batch gets the rest, in case it read several entries.
                    taken, waiting = (waiting, []) if batch is data[-1] else (waiting[:1], waiting[1:])
                    rows = tuple(row for arrival in taken for row in self._rows(arrival, batch))
                else:
                    rows = ()
                self._given[batch.id] = rows
                yield ExecutedBatch(seen.number, batch, self._judged(rows, batch), restarted)
                restarted = None
                self._previous = batch.watermark or 0

    def _rows(self, arrival: Arrival, batch: BatchSeen) -> Iterator[ArrivedRow]:
        for stream, placed in arrival.items():
            for row in (row for partition in placed.partitions for row in partition):
                known, time = _time(row, self._case.streams.get(stream), self._times.get(stream))
                behind = time is not None and batch.watermark is not None and time <= batch.watermark * 1000
                fate: RowFate = "timeless" if not known else "null" if time is None else "behind" if behind else "taken"
                yield ArrivedRow(stream, time, _shown(row), fate, behind, _values(row, self._case.streams.get(stream)))

    def _judged(self, rows: tuple[ArrivedRow, ...], batch: BatchSeen) -> tuple[ArrivedRow, ...]:
        timed = [row for row in rows if row.time_us is not None]
        if not any(row.behind for row in timed) or batch.dropped is None:
            return rows
        if batch.dropped == 0:
            return tuple(replace(row, fate="taken") if row.fate == "behind" else row for row in rows)
        late = self._late(timed, batch, batch.dropped)
        if late is None:
            return rows
        return tuple(
            replace(row, fate="late" if row in late else "taken") if row.time_us is not None else row for row in rows
        )

    def _late(self, rows: Sequence[ArrivedRow], batch: BatchSeen, dropped: int) -> set[ArrivedRow] | None:
        """The rows that make up the count, by the end of their window or by their own time; None if none do."""
        for watermark in dict.fromkeys((self._previous, batch.watermark or 0)):
            found = [row for row in rows if self._compared(row) <= watermark * 1000]
            # An aggregation counts late groups, other operators late rows.
            if dropped in (len(found), len({(row.stream, self._compared(row)) for row in found})):
                return set(found)
        return None

    def _compared(self, row: ArrivedRow) -> int:
        time = row.time_us or 0
        return self._tumbling.of(time)[1] if self._tumbling is not None else time


def _event_time(stream: str, schema: Schema, pipeline: Pipeline) -> str | None:
    """The event-time column of the stream: the one with a watermark, else the first timestamp."""
    names = {field.name.lower(): field.name for field in schema.fields if field.type.name.startswith("timestamp")}
    for marked in _watermarked(stream, pipeline):
        if marked.lower() in names:
            return names[marked.lower()]
    return next(iter(names.values()), None)


def _watermarked(stream: str, pipeline: Pipeline) -> Iterator[str]:
    reads = next((operation.arguments.get("from") for operation in pipeline.operations), None)
    for operation in pipeline.operations:
        if operation.name == "withWatermark" and reads == stream:
            yield str(operation.arguments["withWatermark"][0])
        for nested in operation.nested:
            yield from _watermarked(stream, nested)


def _time(row: Row, schema: Schema | None, column: str | None) -> tuple[bool, int | None]:
    """Whether the row has an event-time column, and the time."""
    if schema is None or column is None:
        return False, None
    at = next(index for index, field in enumerate(schema.fields) if field.name == column)
    value: Any = row.get(column) if isinstance(row, Mapping) else row[at] if at < len(row) else None
    try:
        time = canonical(value, schema.fields[at].type)
    except NotAValue:
        return False, None
    return True, time if isinstance(time, int) else None


def _values(row: Row, schema: Schema | None) -> dict[str, object]:
    found: dict[str, object] = {}
    for at, field_ in enumerate(schema.fields if schema is not None else ()):
        value: Any = row.get(field_.name) if isinstance(row, Mapping) else row[at] if at < len(row) else None
        with suppress(NotAValue):
            found[field_.name.lower()] = canonical(value, field_.type)
    return found


def _shown(row: Row) -> str:
    values = list(row.values()) if isinstance(row, Mapping) else list(row)
    return ", ".join(cell(value) for value in values)
