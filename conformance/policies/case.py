"""A policy case: a trace, the rules to replay it under, the expected result of each entry, and the check of both.

Such a case says nothing about Spark and is never sent to an engine: its target is this package. See
``docs/case-language/policy-cases.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformance.core.case import AnyCase, Frozen
from conformance.core.data import Json
from conformance.policies.replay import PolicyAnswer, PolicyQuestion, answer_of, replay
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
    def question(self) -> PolicyQuestion:
        return PolicyQuestion(self.policy, self.given, self.trace, self.throttle)


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
    return mismatches(case, answer_of(replay(case.trace, case.question.rules)))


def mismatches(case: PolicyCase, answer: PolicyAnswer) -> tuple[PolicyMismatch, ...]:
    """Every expectation that an answer does not meet. What the engine does not decide is not compared."""
    wrong = []
    for step, result in zip(case.steps, answer.steps, strict=False):
        checked = step.expect.model_fields_set if step.expect is not None else ()
        for key, actual in result.items():
            if key not in checked:
                continue
            expected = getattr(step.expect, key)
            if key == "watermark" and not isinstance(expected, dict):
                (actual,) = actual.values()
            if expected != actual:
                wrong.append(PolicyMismatch(step.number, key, expected, actual, _line(case, step, f"expect.{key}")))
    if len(answer.steps) < len(case.steps):
        step = case.steps[len(answer.steps)]
        wrong.append(PolicyMismatch(step.number, FAILURE, None, answer.failure, _line(case, step, "expect")))
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
