"""The steps of a case side by side: what is expected, what the engine showed, what a model predicts.

What an answer showed is rendered from its account; here it is compared with what is expected.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeAlias

from conformance.account.account import BatchAccount, StepAccount, account, account_without_case
from conformance.core.case import (
    Action,
    Add,
    Advance,
    Arrival,
    Backlog,
    Case,
    ExpectedBatch,
    ExpectedError,
    Restart,
    WrittenRow,
)
from conformance.core.observation import Observation
from conformance.core.values import NotAValue, instant_ms, show, show_in_full
from conformance.core.versions import SparkVersion
from conformance.judging.comparison import batches_equivalent, steps_equivalent
from conformance.judging.expected import ExpectedStep, NotApplicable, Unsupported, expected
from conformance.judging.finding import ErrorExpectedAs, Finding, cell
from conformance.judging.step_comparison import NotARow, OutputSchema, PlanNotTaken, SeenStep, compare
from reports.results.records import Cell

ValueDifference: TypeAlias = Literal["", "missing", "extra", "other"]

MOST_ROWS = 60
INSTANTS = ("watermark", "ran with", "event time, min", "event time, max", "event time, avg")
"""Labels of lines whose values are times."""
_OF_A_BATCH = ("kind", "ran with", "dropped")
"""The facts of a micro-batch that the table shows; its state is that after the step."""


@dataclass(frozen=True)
class LineValue:
    """A value of a line: a row, a watermark, a number."""

    text: str
    difference: ValueDifference = ""
    """``missing``: expected, not observed; ``extra``: observed, not expected; ``other``: not the expected value."""
    full: str = ""
    """With the date and zone of its times, if the text leaves them out."""


@dataclass(frozen=True)
class Line:
    label: str
    values: tuple[LineValue, ...]

    @property
    def differs(self) -> bool:
        return any(value.difference for value in self.values)

    def marked(self) -> Self:
        return replace(self, values=tuple(replace(value, difference="other") for value in self.values))


def text_line(label: str, text: str) -> Line:
    return Line(label, (LineValue(text, full=_with_date(text) if label in INSTANTS else ""),))


def given(action: Action) -> Iterator[str]:
    """Yield what a step gives the query, a line each."""
    match action:
        case Add(streams=streams):
            yield from _arriving(streams)
        case Backlog(entries=entries):
            for number, entry in enumerate(entries, 1):
                yield from (f"{number}. {line}" for line in _arriving(entry))
        case Advance(ms=ms):
            yield f"the clock goes on by {ms / 1000:g} s"
        case Restart(change=change):
            yield from (f"{key} = {value}" for key, value in (change.conf or {}).items())
            if change.output_mode:
                yield f"output mode {change.output_mode}"
            if change.trigger:
                yield f"trigger {change.trigger}"
            if change.query:
                yield "a different query"


def expected_after(step: ExpectedStep) -> Iterator[Line]:
    said = step.expectation
    if "watermark" in step.checked:
        yield text_line("watermark", _instant(said.watermark))
    if "dropped" in step.checked:
        yield text_line("dropped", _dropped(said.dropped))
    if "state" in step.checked:
        yield text_line("state", _count(said.state))
    if "event_time" in step.checked and said.event_time is not None:
        for key, value in said.event_time:
            if value is not None:
                yield text_line(f"event time, {key}", _instant(value))
    if "progress" in step.checked:
        for path, value in (said.progress or {}).items():
            yield text_line(path, json.dumps(value))
    if "plan" in step.checked:
        for pattern in said.plan or ():
            yield text_line("plan has", f"/{pattern}/")


def expected_batch(entry: ExpectedBatch) -> Iterator[Line]:
    if entry.kind is not None:
        yield text_line("kind", entry.kind)
    if "watermark" in entry.model_fields_set:
        yield text_line("ran with", "none" if entry.watermark is None else _instant(entry.watermark))
    if "dropped" in entry.model_fields_set:
        yield text_line("dropped", _dropped(entry.dropped))
    if entry.state is not None:
        yield text_line("state", _count(entry.state))


def expected_and_observed_rows(
    wanted: Sequence[WrittenRow], observed: Sequence[Sequence[object]], schema: OutputSchema
) -> tuple[Line, Line]:
    """Return both lines of rows, with the rows that the other lacks marked."""
    keys = Counter(schema.comparable(tuple(row)) for row in observed)
    left: list[LineValue] = []
    for row in wanted:
        try:
            values = schema.expected_row(row)
        except NotARow as problem:
            left.append(LineValue(f"{_text(row)} ({problem.problem})", "missing"))
            continue
        key = schema.comparable(values)
        as_expected = keys[key] > 0
        keys[key] -= as_expected
        left.append(_row(values, schema, "" if as_expected else "missing"))
    right: list[LineValue] = []
    for emitted in observed:
        key = schema.comparable(tuple(emitted))
        extra = keys[key] > 0
        keys[key] -= extra
        right.append(_row(emitted, schema, "extra" if extra else ""))
    return _rows_line(left), _rows_line(right)


def _row(row: Sequence[object], schema: OutputSchema, difference: ValueDifference = "") -> LineValue:
    text, full = _text(schema.as_written(tuple(row))), _text(row)
    return LineValue(text, difference, "" if text == full else full)


def _rows_line(values: list[LineValue]) -> Line:
    if not values:
        return text_line("rows", "none")
    # The order of rows means nothing; sorted, equal rows of two sides are next to each other.
    ordered = sorted(values, key=lambda value: (value.difference == "", value.text))
    more = len(ordered) - MOST_ROWS
    return Line("rows", (*ordered[:MOST_ROWS], *([LineValue(f"… and {more} more")] if more > 0 else [])))


def _arriving(arrival: Arrival) -> Iterator[str]:
    for stream, placed in arrival.items():
        parts = [" · ".join(f"[{_text(row)}]" for row in rows[:MOST_ROWS]) or "no rows" for rows in placed.partitions]
        yield f"{stream}: {' ∥ '.join(parts)}"


def _text(row: Sequence[object] | Mapping[str, object]) -> str:
    if isinstance(row, Mapping):
        return ", ".join(f"{key}: {cell(value)}" for key, value in row.items())
    return ", ".join(cell(value) for value in row)


def _dropped(count: int | tuple[int, ...] | None) -> str:
    return "no such metric" if count is None else _count(count)


def _count(count: int | tuple[int, ...] | None) -> str:
    return ", ".join(map(str, count)) if isinstance(count, tuple) else str(count)


def _instant(value: object) -> str:
    try:
        return show(instant_ms(value) * 1000)
    except NotAValue:
        return str(value)


def _with_date(text: str) -> str:
    try:
        return show_in_full(instant_ms(text) * 1000)
    except NotAValue:
        return ""


SAME = (text_line("agrees", "same as the engine"),)
"""Shown instead of a prediction that equals the engine's answer."""

_LABELS: Mapping[str, str] = {"watermark it ran with": "ran with"}
"""Aspect of a finding → label of its line, if they are not the same."""


@dataclass(frozen=True)
class Block:
    """One micro-batch, or what holds after the step."""

    head: str
    no_data: bool
    sides: tuple[tuple[Line, ...], ...]
    """In the order of ``StepTable.sides``."""


@dataclass(frozen=True)
class StepRow:
    number: int
    name: str | None
    action: str
    """``add``, ``backlog``, ``restart: stop`` …"""
    given: tuple[str, ...]
    blocks: tuple[Block, ...]
    reached: bool
    first_violation: bool
    """Whether it is the first step that is not as expected."""

    @property
    def differs(self) -> bool:
        return any(line.differs for block in self.blocks for side in block.sides for line in side)


@dataclass(frozen=True)
class StepTable:
    sides: tuple[str, ...]
    steps: tuple[StepRow, ...]


def step_table(case: Case, version: SparkVersion, engine: Cell, model: Observation | None = None) -> StepTable:
    """Put what is expected, observed and, if there is a prediction, predicted side by side."""
    of_both = (("Engine", engine.observation), ("Model", model))
    answers = {name: observation for name, observation in of_both if observation is not None}
    accounts = [{step.seen.number: step for step in account(case, version, answer)} for answer in answers.values()]
    violation = next((finding.place.step for finding in engine.findings if finding.place.step is not None), None)
    steps = []
    for step in case.steps:
        wanted = _wanted(case, version, step.number)
        shown = [_answer(case, version, known, step.number, wanted) for known in accounts]
        action = step.action
        steps.append(
            StepRow(
                number=step.number,
                name=step.name,
                action=f"restart: {action.how}" if isinstance(action, Restart) else type(action).__name__.lower(),
                given=tuple(given(action)),
                blocks=tuple(_blocks(wanted, shown, case)),
                reached=any(answer.step is not None for answer in shown),
                first_violation=step.number == violation,
            )
        )
    return StepTable(("Expected", *answers), tuple(steps))


def observed_only(observation: Observation) -> StepTable:
    """Return what an engine showed, step by step, for a case that is not available: nothing is known of what was given or expected."""
    steps = []
    for step in account_without_case(observation):
        blocks = _blocks(_Wanted(), [_Answer(step, ())], None)
        shown = tuple(replace(block, sides=block.sides[1:]) for block in blocks)
        steps.append(StepRow(step.seen.number, None, "", (), shown, reached=True, first_violation=False))
    return StepTable(("Engine",), tuple(steps))


@dataclass(frozen=True)
class _Wanted:
    step: ExpectedStep | None = None
    batches: tuple[ExpectedBatch, ...] = ()
    rows: tuple[WrittenRow, ...] | None = None
    after: tuple[Line, ...] = ()


def _wanted(case: Case, version: SparkVersion, number: int) -> _Wanted:
    of_version = expected(case, version)
    if isinstance(of_version, NotApplicable):
        return _Wanted(after=(text_line("nothing", "the case does not apply to this version"),))
    if isinstance(of_version, Unsupported):
        refusal = text_line("error", f"{_as_text(of_version.error)}, since the feature is unsupported")
        return _Wanted(after=(refusal,)) if number == 1 else _Wanted()
    step = of_version.of(number)
    if step is None:
        return _Wanted(after=(text_line("nothing", "the case has ended"),))
    if step.expectation.error is not None:
        return _Wanted(step, after=(text_line("error", _as_text(step.expectation.error)),))
    batches = step.expectation.batches or () if "batches" in step.checked else ()
    rows = step.expectation.rows if "rows" in step.checked and not (batches and step.rows_from_batches) else None
    return _Wanted(step, batches, rows, tuple(expected_after(step)))


def _as_text(error: ExpectedError) -> str:
    return str(ErrorExpectedAs(classes=error.classes, message=error.message, stage=error.stage))


@dataclass(frozen=True)
class _Answer:
    """What one side answered in a step."""

    step: StepAccount | None
    """None if the answer ended before the step."""
    findings: tuple[Finding, ...]

    @property
    def batches(self) -> tuple[BatchAccount, ...]:
        return self.step.batches if self.step is not None else ()

    @property
    def schema(self) -> OutputSchema:
        return self.step.schema if self.step is not None else OutputSchema.of(())

    def lines(self, facts: Mapping[str, str], wanted: Sequence[Line], batch: int | None) -> tuple[Line, ...]:
        """Return the facts as lines; those that a finding is about are marked.

        ``wanted``: what is expected there; ``batch``: the id of the micro-batch, None after the step.
        """
        labels = {line.label for line in wanted} - {"rows", "error"}
        wrong = {
            _LABELS.get(finding.aspect, finding.aspect)
            for finding in self.findings
            if batch is None or batch in finding.place.batches
        }
        lines = (text_line(label, text) for label, text in facts.items())
        return tuple(line.marked() if line.label in labels & wrong else line for line in lines)


def _answer(
    case: Case, version: SparkVersion, steps: Mapping[int, StepAccount], number: int, wanted: _Wanted
) -> _Answer:
    step = steps.get(number)
    findings: list[Finding] = []
    if step is not None and step.seen.error is None and wanted.step is not None and not wanted.step.ends_the_case:
        before = tuple(batch for at in range(1, number) for batch in steps[at].seen.batches)
        with suppress(PlanNotTaken):  # a model has no plan, which is compared last
            compared = compare(SeenStep(case, version, step.schema, wanted.step, step.seen, before))
            findings.extend(finding for finding in compared if not isinstance(finding, str))
    return _Answer(step, tuple(findings))


def _blocks(wanted: _Wanted, shown: Sequence[_Answer], case: Case | None) -> Iterator[Block]:
    counts = [len(answer.batches) for answer in shown]
    # If one micro-batch ran, the rows of the whole step are its rows.
    single = wanted.rows is not None and not wanted.batches and counts == [1] * len(counts)
    entries: Sequence[ExpectedBatch] = (ExpectedBatch(rows=wanted.rows),) if single else wanted.batches
    for at in range(max([len(entries), *counts])):
        yield _batch_block(at, entries[at] if at < len(entries) else None, shown)
    expected_side = list(wanted.after)
    sides: list[tuple[Line, ...]] = []
    for answer in shown:
        lines = answer.lines(answer.step.facts, wanted.after, None) if answer.step is not None else ()
        if answer.step is not None and wanted.rows is not None and not single:
            complete = case is not None and case.output_mode_in(answer.step.seen.number) == "complete"
            batches = answer.batches[-1:] if complete else answer.batches
            rows = [row for batch in batches for row in batch.seen.rows]
            wanted_rows, seen_rows = expected_and_observed_rows(wanted.rows, rows, answer.schema)
            lines = (seen_rows, *lines)
            if not sides:  # the marks of the expected side are those against the engine
                expected_side.insert(0, wanted_rows)
        sides.append(lines)
    steps = [answer.step for answer in shown]
    if len(shown) == 2 and steps[0] is not None and steps[1] is not None:
        schemas = steps[0].schema, steps[1].schema
        if steps_equivalent(steps[0].seen, steps[1].seen, schemas):
            sides[1] = SAME
    yield Block("after the step", False, (tuple(expected_side), *sides))


def _batch_block(at: int, entry: ExpectedBatch | None, shown: Sequence[_Answer]) -> Block:
    batches = [answer.batches[at] if at < len(answer.batches) else None for answer in shown]
    ran = next((batch.seen for batch in batches if batch is not None), None)
    kind = ran.kind if ran is not None else entry.kind if entry is not None else None
    wanted = list(expected_batch(entry)) if entry is not None else []
    expected_side = list(wanted)
    sides: list[tuple[Line, ...]] = []
    for answer, batch in zip(shown, batches, strict=True):
        if batch is None:
            missing = Line("did not run", (LineValue("no such micro-batch", "missing"),))
            sides.append((missing,) if entry is not None else ())
            continue
        facts = {label: batch.facts[label] for label in _OF_A_BATCH if label in batch.facts}
        if entry is not None and entry.rows is not None:
            wanted_rows, seen_rows = expected_and_observed_rows(entry.rows, batch.seen.rows, answer.schema)
            if not sides:
                expected_side.append(wanted_rows)
        else:
            seen_rows = _rows_line([_row(row, answer.schema) for row in batch.seen.rows])
        sides.append((*answer.lines(facts, wanted, batch.seen.id), seen_rows))
    if ran is None and entry is not None and entry.rows is not None:
        expected_side.append(_rows_line([LineValue(_text(row)) for row in entry.rows]))
    if len(shown) == 2 and batches[0] is not None and batches[1] is not None:
        schemas = shown[0].schema, shown[1].schema
        if batches_equivalent(batches[0].seen, batches[1].seen, schemas):
            sides[1] = SAME
    head = "not run" if ran is None else f"micro-batch {ran.id}"
    return Block(head, kind == "no-data", (tuple(expected_side), *sides))
