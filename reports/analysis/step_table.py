"""The steps of a case side by side: what is expected, what the engine showed, what a model predicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from conformance.core.case import Case, ExpectedBatch, ExpectedError, Row
from conformance.core.observation import BatchSeen, Observation, StepSeen
from conformance.core.versions import SparkVersion
from conformance.judging.divergence import batches_equivalent, steps_equivalent
from conformance.judging.expected import ExpectedStep, NotApplicable, Unsupported, expected
from conformance.judging.finding import ErrorExpectedAs, Finding
from conformance.judging.rows import OutputSchema
from conformance.judging.step_comparison import Note, PlanNotTaken, SeenStep, compare
from reports.analysis.step_lines import (
    Line,
    LineValue,
    action_name,
    expected_after,
    expected_and_observed_rows,
    expected_batch,
    expected_rows,
    given,
    observed_after,
    observed_batch,
    observed_rows,
    text_line,
)
from reports.results.records import Cell

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
    """One step."""

    number: int
    name: str | None
    action: str
    """``add``, ``backlog`` …"""
    given: tuple[str, ...]
    """What arrives, a line each."""
    blocks: tuple[Block, ...]
    reached: bool
    first_violation: bool
    """Whether it is the first step that is not as expected."""

    @property
    def differs(self) -> bool:
        return any(line.differs for block in self.blocks for side in block.sides for line in side)


@dataclass(frozen=True)
class StepTable:
    """All steps of a case on one version."""

    sides: tuple[str, ...]
    steps: tuple[StepRow, ...]


def step_table(case: Case, version: SparkVersion, found: Cell, model: Observation | None = None) -> StepTable:
    """Expected, observed and, if there is a prediction, predicted, step by step."""
    sides = {"Engine": found.observation, "Model": model}
    answers = {
        name: _Answer(case, version, observation) for name, observation in sides.items() if observation is not None
    }
    violation = next((one.place.step for one in found.findings if one.place.step is not None), None)
    steps = []
    for step in case.steps:
        wanted = _wanted(case, version, step.number)
        shown = [answer.step(step.number, wanted) for answer in answers.values()]
        steps.append(
            StepRow(
                number=step.number,
                name=step.name,
                action=action_name(step.action),
                given=tuple(given(step.action)),
                blocks=tuple(_blocks(wanted, shown, case)),
                reached=any(one.seen is not None for one in shown),
                first_violation=step.number == violation,
            )
        )
    return StepTable(("Expected", *answers), tuple(steps))


def observed_only(observation: Observation) -> StepTable:
    """What an engine showed, step by step, for a case that is not available: nothing is known of what was given or expected."""
    return StepTable(
        ("Engine",),
        tuple(
            StepRow(
                number=step.number,
                name=None,
                action="",
                given=(),
                blocks=tuple(
                    replace(block, sides=block.sides[1:])
                    for block in _blocks(
                        _Wanted(), [_ShownStep(step, OutputSchema.of(observation.columns_of(step)), ())], None
                    )
                ),
                reached=True,
                first_violation=False,
            )
            for step in observation.steps
        ),
    )


@dataclass(frozen=True)
class _Wanted:
    """What is expected of one step."""

    step: ExpectedStep | None = None
    batches: tuple[ExpectedBatch, ...] = ()
    rows: tuple[Row, ...] | None = None
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
class _ShownStep:
    """One step of one answer."""

    seen: StepSeen | None
    """None if the answer ended before it."""
    schema: OutputSchema
    findings: tuple[Finding, ...]
    """What is not as expected in it."""

    @property
    def batches(self) -> tuple[BatchSeen, ...]:
        return self.seen.batches if self.seen is not None else ()

    def marked(self, lines: Sequence[Line], expected_side: Sequence[Line], batch: int | None) -> tuple[Line, ...]:
        """The lines, those that a finding is about marked; rows are marked one by one already.

        Args:
            expected_side: what is expected there.
            batch: the id of the micro-batch; None after the step.
        """
        labels = {line.label for line in expected_side} - {"rows", "error"}
        wrong = {
            _LABELS.get(finding.aspect, finding.aspect)
            for finding in self.findings
            if batch is None or batch in finding.place.batches
        }
        return tuple(line.marked() if line.label in labels & wrong else line for line in lines)


class _Answer:
    """An engine's or a model's answer to the case."""

    def __init__(self, case: Case, version: SparkVersion, observation: Observation) -> None:
        self._case, self._version = case, version
        self._steps = {step.number: step for step in observation.steps}
        self._observation = observation

    def step(self, number: int, wanted: _Wanted) -> _ShownStep:
        seen = self._steps.get(number)
        schema = OutputSchema.of(self._observation.columns_of(seen) if seen is not None else ())
        if seen is None or seen.error is not None or wanted.step is None or wanted.step.ends_the_case:
            return _ShownStep(seen, schema, ())
        before = tuple(batch for at in range(1, number) for batch in self._steps[at].batches)
        found: list[Finding] = []
        try:
            compared = compare(SeenStep(self._case, self._version, schema, wanted.step, seen, before))
            found.extend(one for one in compared if not isinstance(one, Note))
        except PlanNotTaken:
            pass  # a model has no plan, which is compared last
        return _ShownStep(seen, schema, tuple(found))


def _blocks(wanted: _Wanted, shown: Sequence[_ShownStep], case: Case | None) -> Iterator[Block]:
    counts = [len(each.batches) for each in shown]
    # If one micro-batch ran, the rows of the whole step are its rows.
    single = wanted.rows is not None and not wanted.batches and counts == [1] * len(counts)
    entries: Sequence[ExpectedBatch] = (ExpectedBatch(rows=wanted.rows),) if single else wanted.batches
    for at in range(max([len(entries), *counts])):
        yield _batch_block(at, entries[at] if at < len(entries) else None, shown)
    expected_side = list(wanted.after)
    sides: list[tuple[Line, ...]] = []
    for each in shown:
        lines = each.marked(list(observed_after(each.seen)), wanted.after, None) if each.seen is not None else ()
        if each.seen is not None and wanted.rows is not None and not single:
            complete = case is not None and case.output_mode_in(each.seen.number) == "complete"
            batches = each.batches[-1:] if complete else each.batches
            wanted_rows, seen_rows = expected_and_observed_rows(
                wanted.rows, [row for batch in batches for row in batch.rows], each.schema
            )
            lines = (seen_rows, *lines)
            if not sides:  # the marks of the expected side are those against the engine
                expected_side.insert(0, wanted_rows)
        sides.append(lines)
    steps = [each.seen for each in shown]
    if len(shown) == 2 and steps[0] is not None and steps[1] is not None:
        schemas = shown[0].schema, shown[1].schema
        if steps_equivalent(steps[0], steps[1], schemas, error_classes=False):
            sides[1] = SAME
    yield _block("after the step", False, [tuple(expected_side), *sides])


def _batch_block(at: int, entry: ExpectedBatch | None, shown: Sequence[_ShownStep]) -> Block:
    batches = [each.batches[at] if at < len(each.batches) else None for each in shown]
    ran = next((batch for batch in batches if batch is not None), None)
    kind = ran.kind if ran is not None else entry.kind if entry is not None else None
    wanted = list(expected_batch(entry)) if entry is not None else []
    expected_side = list(wanted)
    sides: list[tuple[Line, ...]] = []
    for each, batch in zip(shown, batches, strict=True):
        if batch is None:
            missing = Line("did not run", (LineValue("no such micro-batch", "missing"),))
            sides.append((missing,) if entry is not None else ())
            continue
        lines = each.marked(list(observed_batch(batch)), wanted, batch.id)
        if entry is not None and entry.rows is not None:
            wanted_rows, seen_rows = expected_and_observed_rows(entry.rows, batch.rows, each.schema)
            if not sides:
                expected_side.append(wanted_rows)
        else:
            seen_rows = observed_rows(batch.rows, each.schema)
        sides.append((*lines, seen_rows))
    if ran is None and entry is not None and entry.rows is not None:
        expected_side.append(expected_rows(entry.rows))
    if len(shown) == 2 and batches[0] is not None and batches[1] is not None:
        schemas = shown[0].schema, shown[1].schema
        if batches_equivalent(batches[0], batches[1], schemas):
            sides[1] = SAME
    head = "not run" if ran is None else f"micro-batch {ran.id}"
    return _block(head, kind == "no-data", [tuple(expected_side), *sides])


def _block(head: str, no_data: bool, sides: Sequence[Sequence[Line]]) -> Block:
    return Block(head, no_data, tuple(tuple(line.in_full() for line in side) for side in sides))
