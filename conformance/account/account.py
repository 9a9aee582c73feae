"""The account of a micro-batch: rows in, what became of each, watermarks, windows in state, rows out, and who says so.

An engine counts rows that it dropped and rows of state; which ones these are only the reference model says. Its word counts for a
micro-batch only if it predicted everything that the engine showed of it and of those before it. Where neither knows, the account
says nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal, TypeAlias

from conformance.core.case import Add, Arrival, Backlog, Case, Restart, WrittenRow
from conformance.core.observation import BatchSeen, Observation, StepSeen
from conformance.core.spark_types import DataType, Schema
from conformance.core.values import NotAValue, canonical, show
from conformance.core.versions import SparkVersion
from conformance.judging.finding import cell
from conformance.judging.step_comparison import INSTANTS, OutputSchema
from conformance.model.catalogue import catalogue
from conformance.model.operators import BatchProgress, ComparedRow
from conformance.oracle.prediction import Prediction
from conformance.query import read_query
from conformance.query.reading import QueryReading

Teller: TypeAlias = Literal["engine", "model"]
Treatment: TypeAlias = Literal["taken", "late", "behind", "null", "timeless"]
"""``behind``: at or before the watermark, and not known whether dropped; ``null``: without an event time; ``timeless``: its stream has
no column of event time."""

LONGEST_MESSAGE = 400
"""Characters of an error: after its first sentence Spark appends the plan."""

_PASSES_ON = ("dedupe", "symmetricHashJoin", "globalLimit")
"""How the names of operators begin that emit rows they read: another operator above may drop these."""


@dataclass(frozen=True, order=True)
class Span:
    """A window of event time, in microseconds; the end is exclusive."""

    start: int
    end: int

    def holds(self, time_us: int | None) -> bool:
        return time_us is not None and self.start <= time_us < self.end


@dataclass(frozen=True)
class RowAccount:
    """A row that a micro-batch read."""

    stream: str
    time_us: int | None
    """The event time, in microseconds since the epoch."""
    text: str
    """The row as the case writes it."""
    treatment: Treatment
    by: Teller = "engine"
    operator: str = ""
    """The operator that dropped it, if the model says so: ``aggregation by window``."""
    behind: bool = False
    """Whether its time is at or before the watermark of the micro-batch."""


@dataclass(frozen=True)
class EmittedWindow:
    span: Span
    rest: str


@dataclass(frozen=True)
class BatchAccount:
    """A micro-batch that ran."""

    step: int
    """The number of its step, from 1."""
    seen: BatchSeen
    """What the engine showed: the watermark it ran with and the one that it set, and how many rows came in, went out, were dropped
    and are kept."""
    late_ms: int | None
    """The watermark that decides which rows are late, by the rule of the version; None if that is not known."""
    rows: tuple[RowAccount, ...]
    """The rows that the case gave it."""
    streams: tuple[str, ...]
    """The streams of ``rows``, also those that brought none."""
    emitted: tuple[EmittedWindow, ...]
    restarted: str | None = None
    """How the query was restarted just before it; None if it was not."""
    model: BatchProgress | None = None
    """The same by the reference model, which predicted all that the engine showed: each operator with its watermarks for late rows
    and for eviction, the rows and windows that it keeps and removes, and the inputs with their watermarks. None if it did not."""

    @cached_property
    def facts(self) -> Mapping[str, str]:
        """What the engine showed, in words by label, as far as it showed it."""
        seen = self.seen
        facts = {
            "kind": seen.kind,
            "ran with": "" if seen.watermark is None else instant(seen.watermark),
            "dropped": "" if seen.dropped is None else str(seen.dropped),
            "state": ", ".join(map(str, seen.state)),
        }
        return {label: text for label, text in facts.items() if text}

    @cached_property
    def kept(self) -> frozenset[Span] | None:
        """The windows in state after the micro-batch; None if they are not known."""
        return None if self.model is None else _windows(operator.shown for operator in self.model.operators)

    @cached_property
    def evicted(self) -> frozenset[Span] | None:
        """The windows whose state the watermark removed; None if they are not known."""
        return None if self.model is None else _windows(operator.evicted for operator in self.model.operators)


@dataclass(frozen=True)
class StepAccount:
    seen: StepSeen
    name: str | None
    restarted: str | None
    batches: tuple[BatchAccount, ...]
    schema: OutputSchema
    """The columns of the rows that it emitted."""

    @property
    def facts(self) -> Mapping[str, str]:
        """What the engine showed after the step, in words by label; for a step that failed, only the error."""
        if (error := self.seen.error) is not None:
            first = error.first_line
            first = first if len(first) <= LONGEST_MESSAGE else f"{first[:LONGEST_MESSAGE]}…"
            return {"error": f"{' < '.join(error.classes[:4]) or 'an error'} at {error.stage}: {first}"}
        facts = {"watermark": instant(self.seen.watermark)}
        dropped = [batch.seen.dropped for batch in self.batches if batch.seen.dropped is not None]
        if dropped and len(dropped) == len(self.batches):
            facts["dropped"] = str(sum(dropped))
        if self.batches:
            facts["state"] = self.batches[-1].facts.get("state", "none")
        return facts

    def row(self, values: Sequence[object]) -> str:
        """An emitted row as the case language writes it."""
        return ", ".join(map(cell, self.schema.as_written(tuple(values))))


def instant(millis: int) -> str:
    """A watermark as the case language writes instants: ``12:05``."""
    return show(millis * 1000)


def account(
    case: Case, version: SparkVersion | None, observation: Observation, prediction: Prediction | None = None
) -> tuple[StepAccount, ...]:
    """The account of every micro-batch that an engine ran for a case; the account of a prediction alone is that of its observation.

    Rows are taken from the case, because an observation only counts them: an ``add`` is a micro-batch, a ``backlog`` one for each
    entry, and a replay repeats what it replays. ``version``: None if it is not known.
    """
    confirmed = dict(_confirmed(observation, prediction)) if prediction is not None else {}
    return tuple(_Reading(case, version, confirmed).steps(observation))


def account_without_case(observation: Observation) -> tuple[StepAccount, ...]:
    """The account of an answer to a case that is not at hand: nothing is known of the rows that it gave."""

    def step_account(step: StepSeen) -> StepAccount:
        batches = tuple(BatchAccount(step.number, batch, None, (), (), ()) for batch in step.batches)
        return StepAccount(step, None, None, batches, OutputSchema.of(observation.columns_of(step)))

    return tuple(map(step_account, observation.steps))


def batches_of(steps: Sequence[StepAccount]) -> tuple[BatchAccount, ...]:
    return tuple(batch for step in steps for batch in step.batches)


def _confirmed(observation: Observation, prediction: Prediction) -> Iterator[tuple[int, BatchProgress]]:
    """Yields each micro-batch by its place, with what the model says, up to the first that it predicts otherwise."""
    predicted = (
        (seen.number, batch, progress)
        for seen, step in zip(prediction.observation.steps, prediction.steps, strict=True)
        for batch, progress in zip(seen.batches, step.batches, strict=True)
    )
    engine = ((step.number, batch) for step in observation.steps for batch in step.batches)
    for at, ((number, batch, progress), (step, seen)) in enumerate(zip(predicted, engine, strict=False)):
        if number != step or batch.behaviour != seen.behaviour:
            return
        yield at, progress


class _Reading:
    def __init__(self, case: Case, version: SparkVersion | None, confirmed: Mapping[int, BatchProgress]) -> None:
        self._case = case
        self._confirmed = confirmed
        self._query = read_query(case.query, case.streams)
        self._times = {name: _event_time(name, schema, self._query) for name, schema in case.streams.items()}
        rule = None if version is None else catalogue()["late_watermark"].at(version).value
        self._late_by_own = None if rule is None else rule == "own batch"
        self._given: dict[int, tuple[Arrival, ...]] = {}
        self._watermarks: dict[int, int | None] = {}
        """Id of a micro-batch, up to the next, → its watermark; a micro-batch that only divides the state is not among those observed."""
        self._ran = 0

    def steps(self, observation: Observation) -> Iterator[StepAccount]:
        restarted: str | None = None
        waiting: list[Arrival] = []
        for seen in observation.steps:
            step = self._case.steps[seen.number - 1] if seen.number <= len(self._case.steps) else None
            action = None if step is None else step.action
            match action:
                case Restart(how=how):
                    restarted = how
                case Add(streams=streams):
                    waiting.append(streams)
                case Backlog(entries=entries):
                    waiting += entries
            schema = OutputSchema.of(observation.columns_of(seen))
            data = [batch for batch in seen.batches if batch.kind == "data" and batch.id not in self._given]
            batches = []
            for batch in seen.batches:
                if batch.id not in self._given:
                    # The last micro-batch gets the rest, in case it read several entries.
                    taken = waiting if data and batch is data[-1] else waiting[: batch.kind == "data"]
                    waiting = waiting[len(taken) :]
                    self._given[batch.id] = tuple(taken)
                batches.append(self._batch(seen.number, batch, schema, restarted))
                restarted = None
            name = None if step is None else step.name
            yield StepAccount(seen, name, action.how if isinstance(action, Restart) else None, tuple(batches), schema)

    def _batch(self, step: int, batch: BatchSeen, schema: OutputSchema, restarted: str | None) -> BatchAccount:
        model = self._confirmed.get(self._ran)
        self._ran += 1
        self._watermarks |= {batch.id: batch.watermark, batch.id + 1: batch.next_watermark}
        of_before = None if self._late_by_own is None else self._watermarks.get(batch.id - 1, 0)
        late_ms = batch.watermark if self._late_by_own else of_before
        given = self._given[batch.id]
        rows = self._by_the_engine([row for arrival in given for row in self._rows(arrival, batch)], batch, late_ms)
        judged = rows if model is None else self._by_the_model(rows, model)
        streams = tuple(dict.fromkeys(stream for arrival in given for stream in arrival))
        return BatchAccount(step, batch, late_ms, judged, streams, tuple(_emitted(schema, batch)), restarted, model)

    def _rows(self, arrival: Arrival, batch: BatchSeen) -> Iterator[RowAccount]:
        for stream, placed in arrival.items():
            for row in (row for partition in placed.partitions for row in partition):
                known, time = _time(row, self._case.streams.get(stream), self._times.get(stream))
                behind = time is not None and batch.watermark is not None and time <= batch.watermark * 1000
                of_time: Treatment = "null" if time is None else "behind" if behind else "taken"
                text = ", ".join(map(cell, row.values() if isinstance(row, Mapping) else row))
                yield RowAccount(stream, time, text, of_time if known else "timeless", behind=behind)

    def _by_the_engine(
        self, rows: Sequence[RowAccount], batch: BatchSeen, late_ms: int | None
    ) -> tuple[RowAccount, ...]:
        sessions = any(window.kind == "session" for window in self._query.windows)
        if not any(row.behind for row in rows) or batch.dropped is None or sessions:
            return tuple(rows)
        late = [] if batch.dropped == 0 else self._late(rows, batch.dropped, late_ms)
        if late is None:
            return tuple(rows)
        return tuple(
            replace(row, treatment="late" if row in late else "taken") if row.time_us is not None else row
            for row in rows
        )

    def _late(self, rows: Sequence[RowAccount], dropped: int, late_ms: int | None) -> list[RowAccount] | None:
        """The rows that make up the count of a query's only stateful operator; None if that does not follow."""
        query = self._query
        filtered = any(window.filtered for window in query.windows)
        compared = [(row, self._compared(row)) for row in rows if row.time_us is not None]
        alone = len(query.stateful) == 1 and not query.unread and all(times for _, times in compared)
        if late_ms is None or filtered or not alone:
            return None
        passed = [(row, times, [time for time in times if time <= late_ms * 1000]) for row, times in compared]
        late = [row for row, times, gone in passed if gone == [*times]]
        counted = [(row.stream, time) for row, _, gone in passed for time in gone]
        # An aggregation counts late groups, of which a window may have several, and other operators late rows.
        possible = range(len({*counted}), len(counted) + 1) if query.windows else (len({*counted}), len(counted))
        return late if dropped in possible else None

    def _compared(self, row: RowAccount) -> tuple[int, ...]:
        """What is compared with the watermark: the ends of the row's windows, or its time; nothing if it is not known."""
        if not self._query.windows or row.time_us is None:
            return () if row.time_us is None else (row.time_us,)
        window, *others = self._query.windows
        held = window.holding(row.time_us) or ()
        return () if others or window.streams != (row.stream,) else tuple(end for _, end in held)

    def _by_the_model(self, rows: Sequence[RowAccount], model: BatchProgress) -> tuple[RowAccount, ...]:
        read = dict(model.read)
        dropped = dropped_rows(model)
        places: Counter[str] = Counter()
        judged = []
        for row in rows:
            operator = dropped.get((row.stream, places[row.stream]), "")
            places[row.stream] += 1
            treatment: Treatment = "late" if operator else "taken"
            if row.time_us is not None and row.stream in read:
                by: Teller = "engine" if row.treatment == treatment else "model"
                row = replace(row, treatment=treatment, by=by, operator=operator)
            judged.append(row)
        same = all(len(read[stream]) == count for stream, count in places.items() if stream in read)
        return tuple(judged if same else rows)


def dropped_rows(model: BatchProgress) -> dict[tuple[str, int], str]:
    """Of each row that counts nowhere because it is late, the operator that dropped it; rows by stream and place."""
    dropped: dict[tuple[str, int], str] = {}
    counted = set()
    for operator in model.operators:
        late = Counter(origin for row in operator.late for origin in row.origins)
        for origin, read in Counter(operator.read).items():
            if late[origin] == read:
                dropped[origin] = operator.title
            elif not operator.operator.startswith(_PASSES_ON):
                counted.add(origin)
    return {origin: title for origin, title in dropped.items() if origin not in counted}


def _windows(rows_of_operators: Iterable[Sequence[ComparedRow]]) -> frozenset[Span]:
    return frozenset(
        Span(*value)
        for row in chain.from_iterable(rows_of_operators)
        for _, type_, value in row.what
        if is_window(type_) and value is not None and all(isinstance(part, int) for part in value)
    )


def is_window(type_: DataType) -> bool:
    """Whether values of a type are windows: a struct of start and end."""
    return [field.name for field in type_.fields] == ["start", "end"]


def _emitted(schema: OutputSchema, batch: BatchSeen) -> Iterator[EmittedWindow]:
    places = _window_columns(schema)
    for row in batch.rows if places else ():
        if (span := _span(row, places, schema.types)) is not None:
            yield EmittedWindow(span, " ".join(cell(value) for at, value in enumerate(row) if at not in places))


def _window_columns(schema: OutputSchema) -> tuple[int, ...]:
    """The positions of the first window in a row: a column with two fields, or two columns; empty if there is none."""
    for at, type_ in enumerate(schema.types):
        if is_window(type_):
            return (at,)
    names = [name.lower() for name in schema.names]
    for at, name in enumerate(names):
        other = name.removesuffix("start") + "end"
        if name.endswith("start") and other in names:
            places = (at, names.index(other))
            if all(schema.types[place].name in INSTANTS for place in places):
                return places
    return ()


def _span(row: Sequence[Any], places: Sequence[int], types: Sequence[DataType]) -> Span | None:
    if any(place >= len(row) for place in places):
        return None
    try:
        values = [canonical(row[place], types[place]) for place in places]
    except NotAValue:
        return None
    parts = values[0] if len(values) == 1 else values
    if parts is None or any(not isinstance(part, int) for part in parts) or parts[0] > parts[1]:
        return None
    return Span(*parts)


def _event_time(stream: str, schema: Schema, query: QueryReading) -> str | None:
    names = {field.name.lower(): field.name for field in schema.fields if field.type.name.startswith("timestamp")}
    marked = (names.get(item.column.lower()) for item in query.watermarks if item.stream == stream)
    return next(filter(None, (*marked, *names.values())), None)


def _time(row: WrittenRow, schema: Schema | None, column: str | None) -> tuple[bool, int | None]:
    if schema is None or column is None:
        return False, None
    at = next(index for index, field in enumerate(schema.fields) if field.name == column)
    value: Any = row.get(column) if isinstance(row, Mapping) else row[at] if at < len(row) else None
    time = canonical(value, schema.fields[at].type)
    return True, time if isinstance(time, int) else None
