"""What a case expects of one Spark version: its steps with the ``differs`` entry of that version laid over them.

The rules are those of ``docs/case-language.md``, «Expectations» and «Versions that differ».
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from conformance.core.case import Case, Differs, Expectation, ExpectationChange, ExpectedBatch, Row, Step
from conformance.core.versions import SparkVersion, VersionRange

NULL_MEANS_SOMETHING = frozenset({"dropped"})
"""Keys whose explicit ``null`` is an expectation; for the others it is the same as leaving them out."""

IN_BATCHES = ("rows", "dropped")
"""Keys that a step and its ``batches`` both may say, so that replacing one of them reaches into the other."""


@dataclass(frozen=True)
class NotApplicable:
    """The version is outside the case's ``spark`` range: nothing is expected of it."""

    spark: VersionRange


@dataclass(frozen=True)
class Unsupported:
    """The case must fail at analysis or start on this version."""

    reason: str
    link: str | None
    entry: Differs


@dataclass(frozen=True)
class ExpectedStep:
    """What one step must show. A key that is not in ``checked`` is not compared, whatever its value."""

    step: Step
    expectation: Expectation
    checked: frozenset[str]
    """Names of fields of ``Expectation``. ``error`` is always among them: where it is None, any error fails."""
    rows_from_batches: bool = False
    """Whether every entry of ``batches`` gives its rows and the step takes its own from them."""
    changed: frozenset[str] = frozenset()
    """The keys that a ``differs`` entry gave here."""

    @property
    def ends_the_case(self) -> bool:
        return self.expectation.error is not None


@dataclass(frozen=True)
class Steps:
    """What each step must show, up to the one that ends the case."""

    steps: tuple[ExpectedStep, ...]
    """In order, from step 1. A step after the last of these is only checked for not failing."""
    differs: Differs | None = None
    """The entry this version falls into."""

    def of(self, number: int) -> ExpectedStep | None:
        """The expectation of a step by its number, None where nothing but the absence of errors is expected of it."""
        return self.steps[number - 1] if 1 <= number <= len(self.steps) else None


Expected: TypeAlias = NotApplicable | Unsupported | Steps


def expected(case: Case, version: SparkVersion) -> Expected:
    """What the case expects of this version."""
    if case.spark is not None and version not in case.spark:
        return NotApplicable(case.spark)
    entry = case.differs_on(version)
    if entry is None:
        return as_newest(case)
    if entry.unsupported is not None:
        return Unsupported(entry.unsupported, entry.link, entry)
    if entry.expect is not None:
        return Steps(until_the_end([_of_the_start(case.steps[0], entry.expect)]), differs=entry)
    steps = (
        overlaid(_written(step, case), entry.steps[step.number], case)
        if step.number in entry.steps
        else _written(step, case)
        for step in case.steps
    )
    return Steps(until_the_end(steps), differs=entry)


def as_newest(case: Case) -> Steps:
    """What the case expects of a version that no ``differs`` entry speaks of."""
    return Steps(until_the_end(_written(step, case) for step in case.steps))


def until_the_end(steps: Iterable[ExpectedStep]) -> tuple[ExpectedStep, ...]:
    """The steps up to the first that expects an error: the case ends there, steps after it are for other versions.

    Where an error is expected nothing else of the step is checked; everywhere else, any error fails.
    """
    settled = []
    for step in steps:
        settled.append(replace(step, checked=frozenset({"error"}) if step.ends_the_case else step.checked | {"error"}))
        if step.ends_the_case:
            break
    return tuple(settled)


def _of_the_start(step: Step, expectation: Expectation) -> ExpectedStep:
    """``differs.expect``: only the keys given, for the first step starts the query and has its own rows."""
    return ExpectedStep(step, expectation, _given(expectation), changed=_given(expectation))


def _written(step: Step, case: Case) -> ExpectedStep:
    """The step as the case says it, its rows taken from ``batches`` where only those say them."""
    expectation = step.expect or Expectation()
    of_step = ExpectedStep(step, expectation, _given(expectation) | {"rows"})
    if expectation.batches is not None and "rows" not in expectation.model_fields_set:
        of_step = _with_rows_of_batches(of_step, expectation.batches, case)
    return of_step


def overlaid(written: ExpectedStep, change: ExpectationChange, case: Case) -> ExpectedStep:
    """Lay the change over the step: a key that the change gives wins over everything that the step said about it.

    Replaced ``rows`` (``dropped``) take the ``rows`` (``dropped``) out of batches that were not replaced, and replaced
    ``batches`` that all give their rows (drops) take the place of the step's.
    """
    removed = frozenset(_field(key) for key in change.unchecked)
    given = change.model_fields_set & Expectation.model_fields.keys()
    expectation = written.expectation.model_copy(update={key: getattr(change, key) for key in given})
    changed = replace(
        written,
        expectation=expectation,
        checked=(written.checked | _given(expectation, given)) - removed,
        changed=frozenset(given | removed),
    )
    if "batches" in given:
        batches = expectation.batches
        if batches is not None and "rows" not in given | removed and _all_give(batches, "rows"):
            changed = _with_rows_of_batches(changed, batches, case)
        else:
            changed = replace(changed, rows_from_batches=False)
        if batches is not None and "dropped" not in given and _all_give(batches, "dropped"):
            changed = replace(changed, checked=changed.checked - {"dropped"})
    else:
        for key in IN_BATCHES:
            if key in given | removed:
                changed = _without_in_batches(changed, key)
    if "batches" in removed:
        changed = replace(changed, rows_from_batches=False)
    if "error" in removed:
        changed = replace(changed, expectation=changed.expectation.model_copy(update={"error": None}))
    return changed


def _given(expectation: Expectation, keys: frozenset[str] | set[str] | None = None) -> frozenset[str]:
    """The fields that were written and say something."""
    written = expectation.model_fields_set if keys is None else keys
    return frozenset(key for key in written if key in NULL_MEANS_SOMETHING or getattr(expectation, key) is not None)


def _with_rows_of_batches(step: ExpectedStep, batches: tuple[ExpectedBatch, ...], case: Case) -> ExpectedStep:
    """A step takes the rows of its batches; in complete mode those of the last. A batch that gives none adds none."""
    counted = batches[-1:] if case.output_mode == "complete" else batches
    rows: tuple[Row, ...] = tuple(row for batch in counted for row in batch.rows or ())
    return replace(
        step,
        expectation=step.expectation.model_copy(update={"rows": rows}),
        rows_from_batches=_all_give(batches, "rows"),
    )


def _without_in_batches(step: ExpectedStep, key: str) -> ExpectedStep:
    batches = step.expectation.batches
    if batches is None:
        return step
    kept = tuple(
        ExpectedBatch(**{name: getattr(batch, name) for name in batch.model_fields_set - {key}}) for batch in batches
    )
    of_batches = step.rows_from_batches and key != "rows"
    return replace(
        step, expectation=step.expectation.model_copy(update={"batches": kept}), rows_from_batches=of_batches
    )


def _all_give(batches: tuple[ExpectedBatch, ...], key: str) -> bool:
    return all(key in batch.model_fields_set for batch in batches)


def _field(key: str) -> str:
    """The field of ``Expectation`` that a key of the YAML is: ``eventTime`` → ``event_time``."""
    return next(
        (name for name, field in Expectation.model_fields.items() if key in (name, field.alias)),
        key,
    )
