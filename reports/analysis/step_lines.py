"""The lines of a step table: what a case gives and expects, and what an answer shows, as text with marks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from conformance.core.case import Action, Add, Arrival, Backlog, ExpectedBatch, Idle, Restart, Row, Start
from conformance.core.observation import BatchSeen, ErrorSeen, StepSeen
from conformance.core.values import NotAValue, instant_ms, show, show_in_full
from conformance.judging.expected import ExpectedStep
from conformance.judging.finding import cell
from conformance.judging.rows import NotARow, OutputSchema

Json: TypeAlias = Any
Difference: TypeAlias = Literal["", "missing", "extra", "other"]

MOST_ROWS = 60
INSTANTS = ("watermark", "ran with", "event time, min", "event time, max", "event time, avg")
"""Labels of lines whose values are times."""
LONGEST_MESSAGE = 400
"""Characters of an error: after its first sentence Spark appends the plan."""


@dataclass(frozen=True)
class LineValue:
    """One value of a line: a row, a watermark, a number."""

    text: str
    difference: Difference = ""
    """``missing``: expected, not observed; ``extra``: observed, not expected; ``other``: not the expected value."""
    full: str = ""
    """With the date and zone of its times, if the text leaves them out."""


@dataclass(frozen=True)
class Line:
    """What one side says about one thing."""

    label: str
    values: tuple[LineValue, ...]

    @property
    def differs(self) -> bool:
        return any(value.difference for value in self.values)

    def marked(self) -> Line:
        """The same, marked as not the expected value."""
        return replace(self, values=tuple(replace(value, difference="other") for value in self.values))

    def in_full(self) -> Line:
        """The same, with the full form of its times; rows have theirs already."""
        if self.label not in INSTANTS:
            return self
        return replace(self, values=tuple(replace(value, full=_with_date(value.text)) for value in self.values))


def text_line(label: str, text: str) -> Line:
    return Line(label, (LineValue(text),))


def action_name(action: Action) -> str:
    """``add``, ``backlog``, ``restart: stop`` …"""
    match action:
        case Start():
            return "start"
        case Add():
            return "add"
        case Backlog():
            return "backlog"
        case Idle():
            return "idle"
        case Restart(how=how):
            return f"restart: {how}"


def given(action: Action) -> Iterator[str]:
    """What a step gives the query, a line each."""
    match action:
        case Add(streams=streams):
            yield from _arriving(streams)
        case Backlog(entries=entries):
            for number, entry in enumerate(entries, 1):
                yield from (f"{number}. {line}" for line in _arriving(entry))
        case Restart(change=change):
            if change.conf:
                yield from (f"{key} = {value}" for key, value in change.conf.items())
            if change.output_mode:
                yield f"output mode {change.output_mode}"
            if change.trigger:
                yield f"trigger {change.trigger}"
            if change.query:
                yield "a different query"


def expected_after(step: ExpectedStep) -> Iterator[Line]:
    """What must hold after the step."""
    said = step.expectation
    if "watermark" in step.checked:
        yield text_line("watermark", _instant(said.watermark))
    if "dropped" in step.checked:
        yield text_line("dropped", _dropped(said.dropped))
    if "state" in step.checked:
        yield text_line("state", _count(said.state))
    if "event_time" in step.checked and said.event_time is not None:
        for key in ("min", "max", "avg"):
            if (value := getattr(said.event_time, key)) is not None:
                yield text_line(f"event time, {key}", _instant(value))
    if "progress" in step.checked:
        for path, value in (said.progress or {}).items():
            yield text_line(path, json.dumps(value))
    if "plan" in step.checked:
        for pattern in said.plan or ():
            yield text_line("plan has", f"/{pattern}/")


def expected_batch(entry: ExpectedBatch) -> Iterator[Line]:
    """What a micro-batch must show, besides its rows."""
    if entry.kind is not None:
        yield text_line("kind", entry.kind)
    if "watermark" in entry.model_fields_set:
        yield text_line("ran with", "none" if entry.watermark is None else _instant(entry.watermark))
    if "dropped" in entry.model_fields_set:
        yield text_line("dropped", _dropped(entry.dropped))
    if entry.state is not None:
        yield text_line("state", _count(entry.state))


def observed_batch(batch: BatchSeen) -> Iterator[Line]:
    """What a micro-batch showed, besides its rows."""
    yield text_line("kind", batch.kind)
    if batch.watermark is not None:
        yield text_line("ran with", show(batch.watermark * 1000))
    if batch.dropped is not None:
        yield text_line("dropped", str(batch.dropped))


def observed_after(step: StepSeen) -> Iterator[Line]:
    """What held after the step, or how it failed."""
    if step.error is not None:
        yield text_line("error", _error(step.error))
        return
    yield text_line("watermark", show(step.watermark * 1000))
    counted = [batch.dropped for batch in step.batches if batch.dropped is not None]
    if counted and len(counted) == len(step.batches):
        yield text_line("dropped", str(sum(counted)))
    if step.batches:
        yield text_line("state", _numbers(step.batches[-1].state) or "none")


def expected_and_observed_rows(
    wanted: Sequence[Row], seen: Sequence[Sequence[Json]], schema: OutputSchema
) -> tuple[Line, Line]:
    """Both lines of rows, each with the rows that the other lacks marked."""
    keys = Counter(schema.comparable(tuple(row)) for row in seen)
    left: list[LineValue] = []
    for row in wanted:
        try:
            values = schema.expected_row(row)
        except NotARow as problem:
            left.append(LineValue(f"{_text(row)} ({problem.problem})", "missing"))
            continue
        key = schema.comparable(values)
        found = keys[key] > 0
        keys[key] -= found
        left.append(_row(values, schema, "" if found else "missing"))
    right: list[LineValue] = []
    for observed in seen:
        key = schema.comparable(tuple(observed))
        extra = keys[key] > 0
        keys[key] -= extra
        right.append(_row(observed, schema, "extra" if extra else ""))
    return _rows_line(left), _rows_line(right)


def observed_rows(rows: Sequence[Sequence[Json]], schema: OutputSchema) -> Line:
    return _rows_line([_row(row, schema) for row in rows])


def expected_rows(rows: Sequence[Row]) -> Line:
    return _rows_line([LineValue(_text(row)) for row in rows])


def _row(row: Sequence[Json], schema: OutputSchema, difference: Difference = "") -> LineValue:
    text, full = _text(schema.as_written(tuple(row))), _text(row)
    return LineValue(text, difference, "" if text == full else full)


def _rows_line(values: list[LineValue]) -> Line:
    if not values:
        return text_line("rows", "none")
    # The order of rows means nothing; sorted, equal rows of two sides are next to each other.
    ordered = sorted(values, key=lambda value: (value.difference == "", value.text))
    more = len(ordered) - MOST_ROWS
    return Line("rows", (*ordered[:MOST_ROWS], *((LineValue(f"… and {more} more"),) if more > 0 else ())))


def _arriving(arrival: Arrival) -> Iterator[str]:
    for stream, placed in arrival.items():
        parts = [" · ".join(f"[{_text(row)}]" for row in rows[:MOST_ROWS]) or "no rows" for rows in placed.partitions]
        yield f"{stream}: {' ∥ '.join(parts)}"


def _text(row: Sequence[Json] | Mapping[str, Json]) -> str:
    if isinstance(row, Mapping):
        return ", ".join(f"{key}: {cell(value)}" for key, value in row.items())
    return ", ".join(cell(value) for value in row)


def _dropped(count: int | tuple[int, ...] | None) -> str:
    return "no such metric" if count is None else _count(count)


def _count(count: int | tuple[int, ...] | None) -> str:
    """A number for all operators together, or one for each."""
    return _numbers(count) if isinstance(count, tuple) else str(count)


def _numbers(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))


def _instant(value: Json) -> str:
    try:
        return show(instant_ms(value) * 1000)
    except NotAValue:
        return str(value)


def _with_date(text: str) -> str:
    try:
        return show_in_full(instant_ms(text) * 1000)
    except NotAValue:
        return ""


def _error(error: ErrorSeen) -> str:
    first = next((line.strip() for line in error.message.splitlines() if line.strip()), "")
    first = first if len(first) <= LONGEST_MESSAGE else f"{first[:LONGEST_MESSAGE]}…"
    return f"{' < '.join(error.classes[:4]) or 'an error'} at {error.stage}: {first}"
