"""What a case expects of one Spark version: its steps, overlaid with the ``differs`` entry of that version.

The rules are in ``docs/case-language/``: ``expectations.md`` and ``versions-that-differ.md``.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from conformance.core.case import Case, Differs, Expectation, ExpectationChange, ExpectedBatch, ExpectedError, Step
from conformance.core.versions import SparkVersion, VersionRange

FIELDS = {str(field.alias): name for name, field in Expectation.model_fields.items()}
"""Key of ``expect`` → its field."""


@dataclass(frozen=True)
class NotApplicable:
    """The version is outside the case's ``spark`` range: nothing is expected of it."""

    spark: VersionRange


MISSING_METHOD = ExpectedError.model_construct(classes=("AttributeError",))
"""What an ``unsupported`` entry without ``error`` expects: Python's error for a method that does not exist."""


@dataclass(frozen=True)
class Unsupported:
    """The case must fail at analysis or start on this version, with the error that says that the feature is missing."""

    reason: str
    entry: Differs

    @property
    def error(self) -> ExpectedError:
        return self.entry.error or MISSING_METHOD


@dataclass(frozen=True)
class ExpectedStep:
    """What one step must show. Only keys in ``checked`` are compared."""

    step: Step
    expectation: Expectation
    checked: frozenset[str]
    """Names of fields of ``Expectation``. ``error`` is always included: if it is None, any error fails."""
    rows_from_batches: bool = False
    """Whether every entry of ``batches`` has rows and the rows of the step are taken from them."""
    changed: frozenset[str] = frozenset()
    """The keys that a ``differs`` entry set here."""

    @property
    def ends_the_case(self) -> bool:
        return self.expectation.error is not None


@dataclass(frozen=True)
class Steps:
    """What each step must show, up to the one that ends the case."""

    steps: tuple[ExpectedStep, ...]
    """A step after the last of them must only not fail."""
    differs: Differs | None = None

    def of(self, number: int) -> ExpectedStep | None:
        """The expectation of a step by its number; None if the step must only not fail."""
        return self.steps[number - 1] if 1 <= number <= len(self.steps) else None


Expected: TypeAlias = NotApplicable | Unsupported | Steps


def expected(case: Case, version: SparkVersion) -> Expected:
    if case.spark is not None and version not in case.spark:
        return NotApplicable(case.spark)
    if (entry := case.differs_on(version)) is None:
        return as_newest(case)
    if entry.unsupported is not None:
        return Unsupported(entry.unsupported, entry)
    if entry.expect is not None:
        # Only the given keys, since the first step starts the query and has its own rows.
        given = _given(entry.expect)
        return Steps(until_the_end([ExpectedStep(case.steps[0], entry.expect, given, changed=given)]), differs=entry)
    steps = (
        overlaid(_written(step, case), entry.steps[step.number], case)
        if step.number in entry.steps
        else _written(step, case)
        for step in case.steps
    )
    return Steps(until_the_end(steps), differs=entry)


def as_newest(case: Case) -> Steps:
    """What the case expects of a version that no ``differs`` entry covers."""
    return Steps(until_the_end(_written(step, case) for step in case.steps))


def expects_nothing_yet(case: Case) -> bool:
    """Whether no step has an ``expect`` and no key says what is right: a case to start from, as ``conformance case new`` writes it."""
    claims = case.behaviour or case.differs or case.mirrors or case.spark or "strength" in case.model_fields_set
    return not claims and all(step.expect is None for step in case.steps)


def until_the_end(steps: Iterable[ExpectedStep]) -> tuple[ExpectedStep, ...]:
    """The steps up to the first that expects an error and nothing else: later steps are for other versions.

    In every other step, any error fails.
    """
    settled = []
    for step in steps:
        settled.append(replace(step, checked=frozenset({"error"}) if step.ends_the_case else step.checked | {"error"}))
        if step.ends_the_case:
            break
    return tuple(settled)


def _written(step: Step, case: Case) -> ExpectedStep:
    """The step as written; its rows are those of ``batches`` if only these have rows."""
    expectation = step.expect or Expectation()
    of_step = ExpectedStep(step, expectation, _given(expectation) | {"rows"})
    if expectation.batches is not None and "rows" not in expectation.model_fields_set:
        of_step = _with_rows_of_batches(of_step, expectation.batches, case)
    return of_step


def overlaid(written: ExpectedStep, change: ExpectationChange, case: Case) -> ExpectedStep:
    """Overlay the step with the change: a key in the change replaces the same key of the step.

    Replacing ``rows`` (``dropped``, ``state``) removes the same key of batches that are not replaced. Replacing ``batches`` that all
    have rows (drops, state) replaces those of the step.
    """
    removed = frozenset(FIELDS[key] for key in change.unchecked)
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
        for key in ("dropped", "state"):
            if batches is not None and key not in given and _all_give(batches, key):
                changed = replace(changed, checked=changed.checked - {key})
    else:
        for key in ("rows", "dropped", "state"):  # a step and its ``batches`` can both have them
            if key in given | removed:
                changed = _without_in_batches(changed, key)
    if "batches" in removed:
        changed = replace(changed, rows_from_batches=False)
    if "error" in removed:
        changed = replace(changed, expectation=changed.expectation.model_copy(update={"error": None}))
    return changed


def _given(expectation: Expectation, keys: frozenset[str] | set[str] | None = None) -> frozenset[str]:
    written = expectation.model_fields_set if keys is None else keys
    # An explicit null is an expectation of `dropped`; for other keys it means that the key is absent.
    return frozenset(key for key in written if key == "dropped" or getattr(expectation, key) is not None)


def _with_rows_of_batches(step: ExpectedStep, batches: tuple[ExpectedBatch, ...], case: Case) -> ExpectedStep:
    """The step with the rows of its batches; in complete mode those of the last. A batch without rows adds none."""
    counted = batches[-1:] if case.output_mode_in(step.step.number) == "complete" else batches
    rows = tuple(row for batch in counted for row in batch.rows or ())
    expectation = step.expectation.model_copy(update={"rows": rows})
    return replace(step, expectation=expectation, rows_from_batches=_all_give(batches, "rows"))


def _without_in_batches(step: ExpectedStep, key: str) -> ExpectedStep:
    if (batches := step.expectation.batches) is None:
        return step
    kept = tuple(
        ExpectedBatch(**{name: getattr(batch, name) for name in batch.model_fields_set - {key}}) for batch in batches
    )
    expectation = step.expectation.model_copy(update={"batches": kept})
    return replace(step, expectation=expectation, rows_from_batches=step.rows_from_batches and key != "rows")


def _all_give(batches: tuple[ExpectedBatch, ...], key: str) -> bool:
    return all(key in batch.model_fields_set for batch in batches)
