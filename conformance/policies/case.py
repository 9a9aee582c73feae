"""A policy case: a trace, the rules to replay it under, the expected result of each entry, and the check of both.

Such a case says nothing about Spark and is never sent to an engine: its target is this package. See
``docs/case-language.md``, "Cases on watermark policies".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from conformance.core.case import Frozen, Mirror, Strength
from conformance.policies.catalogue import rules_for
from conformance.policies.engine_rules import EngineRules
from conformance.policies.policy import MIN
from conformance.policies.replay import Replay, ReplayStep, replay
from conformance.policies.trace import Trace, TraceEntry

Json: TypeAlias = Any

TARGET = "model"
"""The name of the target of these cases, next to ``spark-3.5.9``."""


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
    """Ends of the windows that the entry completes."""
    idle: tuple[str, ...] = ()
    """Inputs that do not hold back the watermark."""


class PolicyStep(Frozen):
    number: int
    """From 1."""
    entry: TraceEntry
    name: str | None = None
    expect: PolicyExpectation | None = None


class PolicyCase(Frozen):
    """A valid, complete policy case."""

    id: str
    path: Path
    digest: str
    """As in ``Case``."""
    lines: Mapping[str, int]
    """Key path → line in the file, from 1: ``title``, ``trace.3``, ``trace.3.expect.late``."""

    title: str
    policy: str
    given: Mapping[str, Json]
    """Parameters of the policy."""
    throttle: tuple[str, Mapping[str, Json]] | None = None
    trace: Trace
    steps: tuple[PolicyStep, ...]
    """One per entry of the trace."""
    strength: Strength = "documented"
    links: tuple[str, ...] = ()
    why: str | None = None
    mirrors: tuple[Mirror, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The folder of the case, ``policies``; empty if it is not in a folder."""
        return self.id.rpartition("/")[0]

    @property
    def behaviour(self) -> tuple[str, ...]:
        """Empty: behaviours belong to Spark."""
        return ()

    def rules(self) -> EngineRules:
        return rules_for(self.policy, self.given, self.throttle)


@dataclass(frozen=True)
class PolicyMismatch:
    """An expectation of a policy case that the replay does not meet."""

    step: int
    """From 1."""
    key: str
    """``late``."""
    expected: Any
    actual: Any
    """In the notation of a case."""
    line: int
    """The line of the expectation in the file, from 1."""

    def __str__(self) -> str:
        return f"step {self.step}: expected {self.key} {_shown(self.expected)}, but it is {_shown(self.actual)}"


def check(case: PolicyCase) -> tuple[PolicyMismatch, ...]:
    """Every expectation that the replay of the case does not meet, step by step."""
    return tuple(_mismatches(case, replay(case.trace, case.rules())))


def _mismatches(case: PolicyCase, replayed: Replay) -> Iterator[PolicyMismatch]:
    for step, result in zip(case.steps, replayed.steps, strict=True):
        if step.expect is None:
            continue
        for key, actual in as_expectation(result).items():
            if key not in step.expect.model_fields_set:
                continue
            expected = getattr(step.expect, key)
            if key == "watermark" and not isinstance(expected, dict):
                (actual,) = actual.values()
            if expected != actual:
                place = f"trace.{step.number}"
                line = case.lines.get(f"{place}.expect.{key}", case.lines[place])
                yield PolicyMismatch(step.number, key, expected, actual, line)


def as_expectation(step: ReplayStep) -> dict[str, Any]:
    """The result of an entry, with the keys and in the notation of an expectation."""
    return {
        "watermark": {name: _or_none(watermark) for name, watermark in step.watermarks.items()},
        "emitted": step.emitted,
        "downstream": _or_none(step.downstream),
        "late": step.late,
        "closed": step.closed,
        "idle": step.idle,
    }


def _or_none(watermark: int) -> int | None:
    return None if watermark == MIN else watermark


def _shown(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case tuple():
            return f"[{', '.join(map(str, value))}]"
        case dict():
            return f"{{{', '.join(f'{name}: {_shown(one)}' for name, one in value.items())}}}"
    return str(value)
