"""The steps of a case as they are laid side by side: what is expected, what the engine showed, what a model predicts.

A model is one more observation: whoever has one gives it, and it becomes a column of its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from conformance.core.case import Action, Add, Arrival, Backlog, Case, ExpectedBatch, Idle, Restart, Row, Start
from conformance.core.observation import BatchSeen, ErrorSeen, Observation, StepSeen
from conformance.core.values import NotAValue, instant_ms, show, show_in_full
from conformance.core.versions import SparkVersion
from conformance.judging.expected import ExpectedStep, NotApplicable, Unsupported, expected
from conformance.judging.finding import ErrorExpectedAs, cell
from conformance.judging.rows import NotARow, OutputSchema
from reports.html.visible import cut
from reports.results.records import Cell

Json: TypeAlias = Any
Sign: TypeAlias = Literal["", "missing", "extra", "other"]
MOST_ROWS = 60
INSTANTS = ("watermark", "ran with", "event time, min", "event time, max", "event time, avg")
"""Labels of lines whose values are times."""
LONGEST_MESSAGE = 400
"""Characters of an error: after its first sentence Spark writes out the plan."""


@dataclass(frozen=True)
class Value:
    """One value of a line: a row, a watermark, a number."""

    text: str
    sign: Sign = ""
    """``missing``: expected and not there; ``extra``: there and not expected; ``other``: not the value expected."""
    full: str = ""
    """With the date and zone of its times, where the text leaves them out."""


@dataclass(frozen=True)
class Line:
    """What one side says of one thing."""

    label: str
    values: tuple[Value, ...]

    @property
    def differs(self) -> bool:
        return any(value.sign for value in self.values)


AGREED = (Line("agrees", (Value("as the engine"),)),)
"""What is shown of a model that says the same."""


@dataclass(frozen=True)
class Block:
    """One micro-batch, or what holds after the step."""

    head: str
    no_data: bool
    sides: tuple[tuple[Line, ...], ...]
    """In the order of ``Account.sides``."""


@dataclass(frozen=True)
class Step:
    number: int
    name: str | None
    action: str
    """``add``, ``backlog`` …"""
    given: tuple[str, ...]
    """What arrives, a line each."""
    blocks: tuple[Block, ...]
    reached: bool
    diverges: bool
    """Whether it is the first that is not as expected."""

    @property
    def differs(self) -> bool:
        return any(line.differs for block in self.blocks for side in block.sides for line in side)


@dataclass(frozen=True)
class Account:
    """All steps of a case on one version."""

    sides: tuple[str, ...]
    steps: tuple[Step, ...]


def account(case: Case, version: SparkVersion, found: Cell, model: Observation | None = None) -> Account:
    """Expected, observed and, where there is one, predicted, step by step."""
    seen = {"Engine": found.observation} | ({"Model": model} if model is not None else {})
    observations = {name: observation for name, observation in seen.items() if observation is not None}
    diverging = next((one.place.step for one in found.findings if one.place.step is not None), None)
    steps = []
    for step in case.steps:
        wanted = _wanted(case, version, step.number)
        shown = {name: _step(observation, step.number) for name, observation in observations.items()}
        schema = {name: OutputSchema.of(observation.columns) for name, observation in observations.items()}
        steps.append(
            Step(
                number=step.number,
                name=step.name,
                action=_action(step.action),
                given=tuple(_given(step.action)),
                blocks=tuple(_blocks(wanted, shown, schema, case)),
                reached=any(one is not None for one in shown.values()),
                diverges=step.number == diverging,
            )
        )
    return Account(("Expected", *observations), tuple(steps))


def witnessed(observation: Observation) -> Account:
    """What an engine showed, step by step, of a case that is not at hand: nothing is known of what was given or expected."""
    schema = OutputSchema.of(observation.columns)
    return Account(
        ("Engine",),
        tuple(
            Step(
                number=step.number,
                name=None,
                action="",
                given=(),
                blocks=tuple(replace(block, sides=block.sides[1:]) for block in _seen(step, schema)),
                reached=True,
                diverges=False,
            )
            for step in observation.steps
        ),
    )


def _seen(step: StepSeen, schema: OutputSchema) -> Iterator[Block]:
    for batch in step.batches:
        yield _batch(None, [batch], [schema])
    yield _block("after the step", False, [(), tuple(_seen_after(step))])


def _step(observation: Observation, number: int) -> StepSeen | None:
    return next((step for step in observation.steps if step.number == number), None)


@dataclass(frozen=True)
class _Wanted:
    """What is expected of one step."""

    batches: tuple[ExpectedBatch, ...] = ()
    rows: tuple[Row, ...] | None = None
    after: Mapping[str, Json] | None = None
    error: str | None = None
    nothing: str | None = None
    """Why nothing is expected."""


def _wanted(case: Case, version: SparkVersion, number: int) -> _Wanted:
    of_version = expected(case, version)
    if isinstance(of_version, NotApplicable):
        return _Wanted(nothing="the case is not about this version")
    if isinstance(of_version, Unsupported):
        return _Wanted(error="an error at analysis or start, for it is unsupported") if number == 1 else _Wanted()
    step = of_version.of(number)
    if step is None:
        return _Wanted(nothing="the case has ended")
    if step.expectation.error is not None:
        error = step.expectation.error
        return _Wanted(error=str(ErrorExpectedAs(classes=error.classes, message=error.message, stage=error.stage)))
    batches = step.expectation.batches or () if "batches" in step.checked else ()
    rows = step.expectation.rows if "rows" in step.checked and not (batches and step.rows_from_batches) else None
    return _Wanted(batches, rows, dict(_after(step)))


def _after(step: ExpectedStep) -> Iterator[tuple[str, Json]]:
    said = step.expectation
    if "watermark" in step.checked:
        yield "watermark", _instant(said.watermark)
    if "dropped" in step.checked:
        yield "dropped", "no such metric" if said.dropped is None else str(said.dropped)
    if "state" in step.checked:
        yield "state", ", ".join(map(str, said.state)) if isinstance(said.state, tuple) else str(said.state)
    if "event_time" in step.checked and said.event_time is not None:
        for key in ("min", "max", "avg"):
            if (value := getattr(said.event_time, key)) is not None:
                yield f"event time, {key}", _instant(value)
    if "progress" in step.checked:
        for path, value in (said.progress or {}).items():
            yield path, json.dumps(value)
    if "plan" in step.checked:
        for pattern in said.plan or ():
            yield "plan has", f"/{pattern}/"


def _blocks(
    wanted: _Wanted, shown: Mapping[str, StepSeen | None], schemas: Mapping[str, OutputSchema], case: Case
) -> Iterator[Block]:
    batches = [step.batches if step is not None else () for step in shown.values()]
    # Where one micro-batch ran and the step says its rows as a whole, they are those of the micro-batch.
    single = wanted.rows is not None and not wanted.batches and [len(each) for each in batches] == [1] * len(batches)
    entries: Sequence[ExpectedBatch] = (ExpectedBatch(rows=wanted.rows),) if single else wanted.batches
    for at in range(max([len(entries), *map(len, batches)])):
        entry = entries[at] if at < len(entries) else None
        yield _batch(entry, [each[at] if at < len(each) else None for each in batches], tuple(schemas.values()))
    sides: list[tuple[Line, ...]] = [tuple(_expected_after(wanted))]
    for step, schema in zip(shown.values(), schemas.values(), strict=True):
        sides.append(tuple(_seen_after(step)) if step is not None else ())
        if step is not None and wanted.rows is not None and not single:
            sides = _with_rows(sides, wanted.rows, step, schema, case)
    yield _block("after the step", False, sides)


def _batch(entry: ExpectedBatch | None, seen: Sequence[BatchSeen | None], schemas: Sequence[OutputSchema]) -> Block:
    engine = next((batch for batch in seen if batch is not None), None)
    kind = engine.kind if engine is not None else entry.kind if entry is not None else None
    head = "not run" if engine is None else f"micro-batch {engine.id}"
    sides: list[tuple[Line, ...]] = [tuple(_expected_batch(entry)) if entry is not None else ()]
    for batch, schema in zip(seen, schemas, strict=True):
        if batch is None:
            sides.append(
                (Line("did not run", (Value("no such micro-batch", "missing"),)),) if entry is not None else ()
            )
            continue
        lines = [Line("kind", (Value(batch.kind),))]
        if batch.watermark is not None:
            lines.append(Line("ran with", (Value(show(batch.watermark * 1000)),)))
        if batch.dropped is not None:
            lines.append(Line("dropped", (Value(str(batch.dropped)),)))
        if entry is not None and entry.rows is not None:
            expected_rows, observed_rows = _rows(entry.rows, batch.rows, schema)
            lines.append(observed_rows)
            if len(sides) == 1:
                sides[0] = (*sides[0], expected_rows)
        else:
            lines.append(_plain_rows(batch.rows, schema))
        sides.append(tuple(lines))
    if all(batch is None for batch in seen) and entry is not None and entry.rows is not None:
        sides[0] = (*sides[0], _limited("rows", [Value(_text(row)) for row in entry.rows]))
    return _block(head, kind == "no-data", sides)


def _block(head: str, no_data: bool, sides: list[tuple[Line, ...]]) -> Block:
    expected_side, *seen = _compared(sides)
    agreeing = [AGREED if at and _agree(side, seen[0]) else side for at, side in enumerate(seen)]
    return Block(head, no_data, tuple(tuple(map(_in_full, side)) for side in (expected_side, *agreeing)))


def _in_full(line: Line) -> Line:
    """The line with its times told in full beside the short form; rows have theirs already."""
    if line.label not in INSTANTS:
        return line
    return replace(line, values=tuple(replace(value, full=_whole(value.text)) for value in line.values))


def _agree(side: Sequence[Line], engine: Sequence[Line]) -> bool:
    """Whether a model says what the engine showed; of errors only the stage, for a model has not the engine's words."""
    return _told(side) == _told(engine) != []


def _told(side: Sequence[Line]) -> list[tuple[str, list[str]]]:
    return sorted(
        (line.label, sorted(_stage(value.text) if line.label == "error" else value.text for value in line.values))
        for line in side
    )


def _stage(text: str) -> str:
    return text.partition(":")[0].rpartition(" at ")[2]


def _expected_batch(entry: ExpectedBatch) -> Iterator[Line]:
    if entry.kind is not None:
        yield Line("kind", (Value(entry.kind),))
    if "watermark" in entry.model_fields_set:
        yield Line("ran with", (Value("none" if entry.watermark is None else _instant(entry.watermark)),))
    if "dropped" in entry.model_fields_set:
        yield Line("dropped", (Value("no such metric" if entry.dropped is None else str(entry.dropped)),))


def _expected_after(wanted: _Wanted) -> Iterator[Line]:
    if wanted.nothing is not None:
        yield Line("nothing", (Value(wanted.nothing),))
    if wanted.error is not None:
        yield Line("error", (Value(cut(wanted.error)),))
    for label, text in (wanted.after or {}).items():
        yield Line(label, (Value(cut(text)),))


def _seen_after(step: StepSeen) -> Iterator[Line]:
    if step.error is not None:
        yield Line("error", (Value(_error(step.error)),))
        return
    yield Line("watermark", (Value(show(step.watermark * 1000)),))
    counted = [batch.dropped for batch in step.batches if batch.dropped is not None]
    if counted and len(counted) == len(step.batches):
        yield Line("dropped", (Value(str(sum(counted))),))
    if step.batches:
        yield Line("state", (Value(", ".join(map(str, step.batches[-1].state)) or "none"),))


def _with_rows(
    sides: list[tuple[Line, ...]], wanted: Sequence[Row], step: StepSeen, schema: OutputSchema, case: Case
) -> list[tuple[Line, ...]]:
    """The sides with the rows of the whole step at their head; of those expected those of the first engine."""
    batches = step.batches[-1:] if case.output_mode == "complete" else step.batches
    expected_rows, observed_rows = _rows(wanted, [row for batch in batches for row in batch.rows], schema)
    head = sides[0] if len(sides) > 2 else (expected_rows, *sides[0])
    return [head, *sides[1:-1], (observed_rows, *sides[-1])]


def _rows(wanted: Sequence[Row], seen: Sequence[Sequence[Json]], schema: OutputSchema) -> tuple[Line, Line]:
    """Expected and observed rows, each with what the other lacks marked."""
    keys = Counter(schema.comparable(tuple(row)) for row in seen)
    left: list[Value] = []
    for row in wanted:
        try:
            values = schema.expected_row(row)
        except NotARow as problem:
            left.append(Value(f"{_text(row)} ({problem.problem})", "missing"))
            continue
        key = schema.comparable(values)
        found = keys[key] > 0
        keys[key] -= found
        left.append(_row(values, schema, "" if found else "missing"))
    right: list[Value] = []
    for observed in seen:
        key = schema.comparable(tuple(observed))
        extra = keys[key] > 0
        keys[key] -= extra
        right.append(_row(observed, schema, "extra" if extra else ""))
    return _limited("rows", left), _limited("rows", right)


def _plain_rows(rows: Sequence[Sequence[Json]], schema: OutputSchema) -> Line:
    return _limited("rows", [_row(row, schema) for row in rows])


def _row(row: Sequence[Json], schema: OutputSchema, sign: Sign = "") -> Value:
    text, full = _text(schema.as_written(tuple(row))), _text(row)
    return Value(text, sign, "" if text == full else full)


def _limited(label: str, values: list[Value]) -> Line:
    if not values:
        return Line(label, (Value("none"),))
    # The order of rows says nothing; where all sides have one, what belongs together stands side by side.
    ordered = sorted(values, key=lambda value: (value.sign == "", value.text))
    more = len(ordered) - MOST_ROWS
    return Line(label, (*ordered[:MOST_ROWS], *((Value(f"… and {more} more"),) if more > 0 else ())))


def _compared(sides: list[tuple[Line, ...]]) -> Iterator[tuple[Line, ...]]:
    """The sides with every value marked that is not the one expected; rows are marked one by one already."""
    wanted = {line.label: line for line in sides[0]}
    yield sides[0]
    for side in sides[1:]:
        yield tuple(
            replace(line, values=tuple(replace(value, sign="other") for value in line.values))
            if line.label in wanted and line.label not in ("rows", "error") and _unlike(line, wanted[line.label])
            else line
            for line in side
        )


def _unlike(line: Line, wanted: Line) -> bool:
    seen, said = line.values[0].text, wanted.values[0].text
    if line.label == "state" and "," in seen and "," not in said:
        return str(sum(int(part) for part in seen.split(","))) != said
    return seen != said


def _action(action: Action) -> str:
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


def _given(action: Action) -> Iterator[str]:
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
                yield "another query"


def _arriving(arrival: Arrival) -> Iterator[str]:
    for stream, placed in arrival.items():
        parts = [" · ".join(f"[{_text(row)}]" for row in rows[:MOST_ROWS]) or "no rows" for rows in placed.partitions]
        yield cut(f"{stream}: {' ∥ '.join(parts)}")


def _text(row: Sequence[Json] | Mapping[str, Json]) -> str:
    if isinstance(row, Mapping):
        return cut(", ".join(f"{key}: {cell(value)}" for key, value in row.items()))
    return cut(", ".join(cell(value) for value in row))


def _instant(value: Json) -> str:
    try:
        return show(instant_ms(value) * 1000)
    except NotAValue:
        return str(value)


def _whole(text: str) -> str:
    try:
        return show_in_full(instant_ms(text) * 1000)
    except NotAValue:
        return ""


def _error(error: ErrorSeen) -> str:
    said = next((line.strip() for line in error.message.splitlines() if line.strip()), "")
    return f"{' < '.join(error.classes[:4]) or 'an error'} at {error.stage}: {cut(said, LONGEST_MESSAGE)}"
