"""Compares one step of a case with what an engine showed: one function per key of the expectation.

The rules are in ``docs/case-language/expectations.md``.
"""

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Self, TypeAlias

from conformance.core import metrics
from conformance.core.case import Case, ExpectedBatch, WrittenRow
from conformance.core.data import Json
from conformance.core.observation import BatchSeen, Column, StepSeen
from conformance.core.patterns import occurs
from conformance.core.spark_types import DataType, NotAType, parse_type
from conformance.core.values import canonical, instant_ms, show, show_ms, to_json_number
from conformance.core.versions import SparkVersion
from conformance.core.wording import counted
from conformance.judging import finding
from conformance.judging.expected import ExpectedStep
from conformance.judging.finding import Cells, ExtraRow, Finding, FindingLocation, ValueDiffers

Comparable: TypeAlias = tuple[Hashable, ...]

INSTANTS = ("timestamp", "timestamp_ntz")


class NotARow(ValueError):
    """An expected row that does not match the columns of the query."""

    def __init__(self, row: WrittenRow, problem: str) -> None:
        super().__init__(f"{row!r}: {problem}")
        self.row = row
        self.problem = problem


@dataclass(frozen=True)
class OutputSchema:
    columns: tuple[Column, ...]
    types: tuple[DataType, ...]
    exact: bool = False
    """Whether doubles are also compared by sign, that of zero included, and by 12 digits, as two engines compute them."""

    @classmethod
    def of(cls, columns: tuple[Column, ...], *, exact: bool = False) -> Self:
        """Parse the types. Values of a type that no case can write, such as a user-defined type, are compared as text."""
        return cls(columns, tuple(_type(column.type) for column in columns), exact)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def described(self) -> tuple[str, ...]:
        return tuple(f"{column.name}: {column.type}" for column in self.columns)

    def expected_row(self, row: WrittenRow) -> tuple[Json, ...]:
        """The values of an expected row in the order of the columns; NotARow for another width, other columns or wrong types."""
        values = self._in_order(row)
        for column, value, type_ in zip(self.columns, values, self.types, strict=True):
            try:
                canonical(value, type_)
            except ValueError as problem:
                raise NotARow(row, f"{column.name} is {column.type}: {problem}") from problem
        return values

    def _in_order(self, row: WrittenRow) -> tuple[Json, ...]:
        if not isinstance(row, Mapping):
            if len(row) != len(self.columns):
                raise NotARow(row, f"it has {counted(len(row), 'value')} for {counted(len(self.columns), 'column')}")
            return tuple(row)
        if unknown := [name for name in row if name not in self.names]:
            raise NotARow(row, f"there is no column {unknown[0]}")
        if absent := [name for name in self.names if name not in row]:
            raise NotARow(row, f"column {absent[0]} is missing")
        if len(set(self.names)) < len(self.names):
            raise NotARow(row, "the query has several columns of the same name; write the row as a list")
        return tuple(row[name] for name in self.names)

    def comparable(self, values: tuple[Json, ...]) -> Comparable:
        """The row as a hashable value, equal for every way to write it; as JSON if it does not match its own columns."""
        try:
            plain = tuple(canonical(value, type_) for value, type_ in zip(values, self.types, strict=True))
            return (plain, tuple(map(_digits, values, plain))) if self.exact else plain
        except ValueError:
            return ("does not match the columns", json.dumps(values, default=str))

    def as_written(self, values: tuple[Json, ...]) -> Cells:
        if len(values) != len(self.types):
            return values
        return tuple(as_written(value, type_) for value, type_ in zip(values, self.types, strict=True))


def _digits(value: Json, plain: Hashable) -> str | tuple[object, ...]:
    """Return the sign and the first 12 digits of a number, and of each double in a list, wherever the pairs of a map stand.

    ``plain``: the value in the one way in which a BIGINT or DECIMAL is written, which another version may compute instead of a double.
    """
    if isinstance(value, list):
        inner = [_digits(item, None) for item in value]
        pairs = all(isinstance(item, list) and len(item) == 2 for item in value)
        return tuple(sorted(inner, key=repr) if pairs else inner)
    number = value if isinstance(value, float) else plain
    if isinstance(number, bool) or not isinstance(number, (float, int, Decimal)):
        return ""
    return f"{Decimal(number):.11e}"


def difference(
    expected: Iterable[WrittenRow], batches: Iterable[BatchSeen], schema: OutputSchema
) -> tuple[tuple[Cells, ...], tuple[ExtraRow, ...], tuple[Cells, ...]]:
    """The rows that these micro-batches lack, have in addition, and have as expected; NotARow if an expected one does not fit."""
    wanted = [schema.expected_row(row) for row in expected]
    outstanding = Counter(schema.comparable(row) for row in wanted)
    common: list[Cells] = []
    extra: list[ExtraRow] = []
    for batch in batches:
        for row in batch.rows:
            key = schema.comparable(row)
            if outstanding[key]:
                outstanding[key] -= 1
                common.append(schema.as_written(row))
            else:
                extra.append(ExtraRow(cells=schema.as_written(row), batch=batch.id))
    missing: list[Cells] = []
    for row in wanted:
        key = schema.comparable(row)
        if outstanding[key]:
            outstanding[key] -= 1
            missing.append(schema.as_written(row))
    return tuple(missing), tuple(extra), tuple(common)


def as_written(value: Json, type_: DataType) -> Json:
    """A value in the notation of the case language: an instant as ``12:05``; unchanged if it does not match the type."""
    if value is None:
        return None
    try:
        if type_.name in INSTANTS:
            micros = canonical(value, type_)
            return show(micros) if isinstance(micros, int) else value
        if type_.name == "struct":
            values = [value[field.name] for field in type_.fields] if isinstance(value, Mapping) else value
            return [as_written(item, field.type) for item, field in zip(values, type_.fields, strict=True)]
        if type_.name == "array":
            return [as_written(item, type_.elements[0]) for item in value]
        if type_.name == "map":
            pairs = value.items() if isinstance(value, Mapping) else value
            items = [(as_written(key, type_.elements[0]), as_written(item, type_.elements[1])) for key, item in pairs]
            return dict(sorted(items)) if all(isinstance(key, str) for key, _ in items) else [*map(list, items)]
        plain = canonical(value, type_)
        if isinstance(plain, Decimal):
            return to_json_number(plain)
        return plain if isinstance(plain, float) or type_.name == "decimal" else value
    except (ValueError, TypeError, KeyError):
        return value


def _type(text: str) -> DataType:
    try:
        return parse_type(text)
    except NotAType:
        return DataType(text)


NO_METRIC = "no such metric"
NO_PATH = "no such path"


class PlanNotTaken(Exception):
    """The case has a plan expectation and the observation has no plan: the harness did not request it."""

    def __init__(self, step: int) -> None:
        super().__init__(f"step {step} has a plan expectation, but the observation has no plan")


@dataclass(frozen=True)
class SeenStep:
    case: Case
    version: SparkVersion
    schema: OutputSchema
    expected: ExpectedStep
    seen: StepSeen
    before: tuple[BatchSeen, ...]

    @cached_property
    def place(self) -> FindingLocation:
        return FindingLocation.of_step(self.case, self.seen.number, tuple(batch.id for batch in self.seen.batches))

    @cached_property
    def last_batch(self) -> BatchSeen | None:
        """The last micro-batch that ran, in this step or earlier."""
        return next(reversed((*self.before, *self.seen.batches)), None)

    @property
    def counted(self) -> tuple[BatchSeen, ...]:
        """The micro-batches whose rows are those of the step: all of them, in complete mode the last."""
        complete = self.case.output_mode_in(self.seen.number) == "complete"
        return self.seen.batches[-1:] if complete else self.seen.batches

    def at(self, batch: BatchSeen) -> FindingLocation:
        return FindingLocation.of_step(self.case, self.seen.number, (batch.id,))


def compare(step: SeenStep) -> Iterator[Finding | str]:
    """Yield what is not as expected, and notes on what could not be compared; PlanNotTaken if the plan was not observed."""
    for key, check in CHECKS.items():
        if key in step.expected.checked:
            yield from check(step)


def _rows(step: SeenStep) -> Iterator[Finding | str]:
    wanted, batches = step.expected.expectation, step.seen.batches
    if step.expected.rows_from_batches and wanted.batches is not None and len(wanted.batches) == len(batches):
        return  # each is compared by itself
    yield from _compare_rows(wanted.rows, step.counted, step, step.place)


def _in_order(step: SeenStep) -> Iterator[Finding | str]:
    """The order is compared only of the rows that are expected: others are what is wrong."""
    schema = step.schema
    observed = [row for batch in step.counted for row in batch.rows]
    with suppress(NotARow):
        expected = [schema.expected_row(row) for row in step.expected.expectation.rows]
        keys = [[schema.comparable(row) for row in rows] for rows in (expected, observed)]
        if keys[0] != keys[1] and Counter(keys[0]) == Counter(keys[1]):
            wanted, seen = ([list(schema.as_written(row)) for row in rows] for rows in (expected, observed))
            yield from _unequal(step.place, "order of rows", wanted, seen)


def _compare_rows(
    rows: Iterable[WrittenRow], batches: tuple[BatchSeen, ...], step: SeenStep, place: FindingLocation
) -> Iterator[Finding]:
    try:
        missing, extra, common = difference(rows, batches, step.schema)
    except NotARow as problem:
        row = dict(problem.row) if isinstance(problem.row, Mapping) else list(problem.row)
        yield finding.NotOfTheType(place=place, expected=row, observed=step.schema.described(), problem=problem.problem)
        return
    if missing or extra:
        yield finding.RowsDiffer(place=place, columns=step.schema.names, missing=missing, extra=extra, common=common)


def _unequal(
    place: FindingLocation,
    aspect: str,
    expected: Json,
    observed: Json,
    shown: Callable[[Json], Json] = lambda same: same,
) -> Iterator[Finding]:
    if expected != observed:
        yield ValueDiffers(place=place, aspect=aspect, expected=shown(expected), observed=shown(observed))


def _batches(step: SeenStep) -> Iterator[Finding | str]:
    entries = step.expected.expectation.batches or ()
    seen = step.seen.batches
    if len(entries) != len(seen):
        kinds = [entry.kind or "any kind" for entry in entries]
        yield ValueDiffers(place=step.place, aspect="batches", expected=kinds, observed=[batch.kind for batch in seen])
        return
    for entry, batch in zip(entries, seen, strict=True):
        yield from _batch(entry, batch, step)


def _batch(entry: ExpectedBatch, batch: BatchSeen, step: SeenStep) -> Iterator[Finding | str]:
    place = step.at(batch)
    if entry.kind is not None:
        yield from _unequal(place, "kind", entry.kind, batch.kind)
    if entry.rows is not None:
        yield from _compare_rows(entry.rows, (batch,), step, place)
    if "watermark" in entry.model_fields_set:
        wanted = None if entry.watermark is None else instant_ms(entry.watermark)
        # A query without a watermark has 0 in the offset log, which is not a watermark.
        yield from _unequal(place, "watermark it ran with", wanted, batch.watermark, show_ms)
    if "dropped" in entry.model_fields_set:
        yield from _compare_dropped(entry.dropped, (batch,), step, place)
    if entry.state is not None:
        yield from _compare_state(entry.state, batch.state, place)


def _watermark(step: SeenStep) -> Iterator[Finding | str]:
    wanted = instant_ms(step.expected.expectation.watermark)
    yield from _unequal(step.place, "watermark", wanted, step.seen.watermark, show_ms)


def _dropped(step: SeenStep) -> Iterator[Finding | str]:
    yield from _compare_dropped(step.expected.expectation.dropped, step.seen.batches, step, step.place)


def _compare_dropped(
    wanted: int | tuple[int, ...] | None, batches: tuple[BatchSeen, ...], step: SeenStep, place: FindingLocation
) -> Iterator[Finding | str]:
    """The sum over the batches, for a list that of each operator; ``null``: no such metric, as in old versions (SPARK-24634)."""
    lacking = metrics.missing(metrics.DROPPED, step.version)
    counted = [batch.dropped for batch in batches if batch.dropped is not None]
    exists = len(counted) == len(batches) and (bool(batches) or lacking is None)
    observed = sum(counted) if exists or counted else NO_METRIC
    if wanted is None:
        yield from _unequal(place, "dropped", NO_METRIC, observed)
    elif not exists and lacking is not None:
        yield f"dropped is not compared: {lacking}"
    elif isinstance(wanted, tuple):
        yield from _unequal(place, "dropped", list(wanted), _dropped_by_operator(batches, len(wanted)))
    else:
        yield from _unequal(place, "dropped", wanted, observed if exists else NO_METRIC)


def _dropped_by_operator(batches: tuple[BatchSeen, ...], operators: int) -> Json:
    """Late rows dropped by each operator in all batches; by each batch if their operators differ. Zeros if there is no batch."""
    known = [batch.dropped_by_operator for batch in batches if batch.dropped_by_operator is not None]
    if len(known) < len(batches):
        return NO_METRIC
    if len({len(count) for count in known}) > 1:
        return [list(count) for count in known]
    return list(map(sum, zip(*known, strict=True))) if known else [0] * operators


def _state(step: SeenStep) -> Iterator[Finding | str]:
    wanted = step.expected.expectation.state
    held = step.last_batch.state if step.last_batch is not None else ()
    if wanted is not None:
        yield from _compare_state(wanted, held, step.place)


def _compare_state(
    wanted: int | tuple[int, ...], held: tuple[int, ...], place: FindingLocation
) -> Iterator[Finding | str]:
    """A number is compared with the sum over the operators, a list with each operator."""
    if isinstance(wanted, tuple):
        yield from _unequal(place, "state", list(wanted), list(held))
    elif wanted != sum(held):
        by_operator = f"per operator: {list(held)}" if len(held) > 1 else None
        yield ValueDiffers(place=place, aspect="state", expected=wanted, observed=sum(held), because=by_operator)


def _event_time(step: SeenStep) -> Iterator[Finding | str]:
    """The statistics of the last data batch count, in milliseconds."""
    wanted = step.expected.expectation.event_time
    batch = next((seen for seen in reversed((*step.before, *step.seen.batches)) if seen.kind == "data"), None)
    if wanted is None:
        return
    if batch is None or batch.event_time is None:
        observed = "no data batch has run" if batch is None else "no event-time statistics"
        expected = {key: getattr(wanted, key) for key in ("min", "max", "avg") if getattr(wanted, key) is not None}
        yield ValueDiffers(place=step.place, aspect="eventTime", expected=expected, observed=observed)
        return
    for key in ("min", "max", "avg"):
        if (value := getattr(wanted, key)) is not None:
            seen = getattr(batch.event_time, key)
            yield from _unequal(step.place, f"eventTime.{key}", instant_ms(value), seen, show_ms)


def _progress(step: SeenStep) -> Iterator[Finding | str]:
    """Dotted paths into the progress of the last micro-batch that ran; ``null`` means that a path must not exist."""
    for path, wanted in (step.expected.expectation.progress or {}).items():
        if step.last_batch is None:
            observed = "no micro-batch has run"
            yield ValueDiffers(place=step.place, aspect=f"progress.{path}", expected=wanted, observed=observed)
            continue
        exists, value = _look_up(step.last_batch.progress, path)
        lacking = None if exists else metrics.missing(path, step.version)
        if lacking is not None and wanted is not None:
            yield f"progress.{path} is not compared: {lacking}"
        elif not same_json(wanted, value) or (not exists and wanted is not None):
            place, observed = step.at(step.last_batch), value if exists else NO_PATH
            yield ValueDiffers(place=place, aspect=f"progress.{path}", expected=wanted, observed=observed)


def _plan(step: SeenStep) -> Iterator[Finding | str]:
    if step.seen.plan is None:
        raise PlanNotTaken(step.seen.number)
    for pattern in step.expected.expectation.plan or ():
        if not occurs(pattern, step.seen.plan, in_lines=True):
            yield finding.PlanDiffers(place=step.place, expected=pattern, observed=step.seen.plan)


def _look_up(progress: Json, path: str) -> tuple[bool, Json]:
    """Whether the path exists, and its value. Names of metrics may contain dots."""
    if isinstance(progress, Mapping) and path in progress:
        return True, progress[path]
    head, _, rest = path.partition(".")
    if isinstance(progress, Mapping) and head in progress:
        inner = progress[head]
    elif isinstance(progress, (list, tuple)) and head.isdigit() and int(head) < len(progress):
        inner = progress[int(head)]
    else:
        return False, None
    return _look_up(inner, rest) if rest else (True, inner)


def same_json(expected: Json, observed: Json) -> bool:
    """Numbers are compared to nine decimals, everything else exactly; a boolean is not a number."""
    if isinstance(expected, bool) or isinstance(observed, bool):
        return expected is observed
    if isinstance(expected, (int, float)) and isinstance(observed, (int, float)):
        return expected == observed or round(expected, 9) == round(observed, 9)
    if isinstance(expected, (list, tuple)) and isinstance(observed, (list, tuple)):
        return len(expected) == len(observed) and all(map(same_json, expected, observed))
    if isinstance(expected, Mapping) and isinstance(observed, Mapping):
        return expected.keys() == observed.keys() and all(same_json(expected[key], observed[key]) for key in expected)
    return bool(expected == observed)


CHECKS: Mapping[str, Callable[[SeenStep], Iterator[Finding | str]]] = {
    "batches": _batches,
    "rows": _rows,
    "in_order": _in_order,
    "watermark": _watermark,
    "dropped": _dropped,
    "state": _state,
    "event_time": _event_time,
    "progress": _progress,
    "plan": _plan,
}
"""Key of the expectation → its check; ``error`` is checked by the verdict, since it ends the case."""
