"""A policy case: a trace, the rules to replay it under, the expected result of each entry, and the check of both.

Such a case says nothing about Spark and is never sent to an engine: its target is this package. See
``docs/case-language/policy-cases.md``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.core.case import AnyCase, Frozen
from conformance.core.data import Json
from conformance.policies.engines import rules_for
from conformance.policies.replay import as_expectation, replay
from conformance.policies.rules import EngineRules
from conformance.policies.trace import Trace, TraceEntry

TARGET = "model"
"""The name of the target of these cases, next to ``spark-3.5.9``."""

FAILURE = "failure"
"""The key of a mismatch that is the end of the engine."""


class PolicyExpectation(Frozen):
    """The expected result of an entry. Only the keys in ``model_fields_set`` are checked."""

    watermark: int | Mapping[str, int | None] | None = None
    """Of the input's policy, or of each input by name; None means no watermark yet."""
    emitted: int | None = None
    """The watermark sent to downstream operators; None means none."""
    downstream: int | None = None
    """The watermark of downstream operators; None means no watermark yet."""
    late: bool | None = None
    closed: tuple[int, ...] = ()
    idle: tuple[str, ...] = ()


class PolicyStep(Frozen):
    number: int
    entry: TraceEntry
    name: str | None = None
    expect: PolicyExpectation | None = None


class PolicyCase(AnyCase):
    policy: str
    given: Mapping[str, Json]
    throttle: tuple[str, Mapping[str, Json]] | None = None
    trace: Trace
    steps: tuple[PolicyStep, ...]

    @property
    def behaviour(self) -> tuple[str, ...]:
        """Empty: behaviours belong to Spark."""
        return ()

    @property
    def rules(self) -> EngineRules:
        return rules_for(self.policy, self.given, self.throttle)


@dataclass(frozen=True)
class PolicyMismatch:
    """An expectation of a policy case that the replay does not meet."""

    step: int
    key: str
    expected: Any
    actual: Any
    line: int

    def __str__(self) -> str:
        if self.key == FAILURE:
            return f"step {self.step}: the engine fails: {self.actual}"
        return f"step {self.step}: expected {self.key} {_shown(self.expected)}, but it is {_shown(self.actual)}"


def check(case: PolicyCase) -> tuple[PolicyMismatch, ...]:
    """Every expectation that the replay of the case does not meet."""
    replayed = replay(case.trace, case.rules)
    return mismatches(case, [*map(as_expectation, replayed.steps)], replayed.failure)


def mismatches(
    case: PolicyCase, answers: Sequence[Mapping[str, Json]], failure: str | None
) -> tuple[PolicyMismatch, ...]:
    """Every expectation that the answers do not meet, one for each entry up to a ``failure``. What an engine does not decide is no key."""
    wrong = []
    for step, result in zip(case.steps, answers, strict=False):
        checked = step.expect.model_fields_set if step.expect is not None else ()
        for key, actual in result.items():
            if key not in checked:
                continue
            expected = getattr(step.expect, key)
            if key == "watermark" and not isinstance(expected, dict):
                (actual,) = actual.values()
            if expected != actual:
                wrong.append(PolicyMismatch(step.number, key, expected, actual, _line(case, step, f"expect.{key}")))
    if len(answers) < len(case.steps):
        step = case.steps[len(answers)]
        wrong.append(PolicyMismatch(step.number, FAILURE, None, failure, _line(case, step, "expect")))
    return tuple(wrong)


def _line(case: PolicyCase, step: PolicyStep, key: str) -> int:
    place = f"trace.{step.number}"
    return case.lines.get(f"{place}.{key}", case.lines[place])


def _shown(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case tuple():
            return f"[{', '.join(map(str, value))}]"
        case dict():
            return f"{{{', '.join(f'{name}: {_shown(of_input)}' for name, of_input in value.items())}}}"
    return str(value)
