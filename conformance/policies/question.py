"""A trace to replay under a policy, and what an engine or the model answers: the seam between the model and real engines.

Both sides use the notation of a policy case: whole numbers, None for a watermark that is not there yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformance.core.data import Json
from conformance.policies.catalogue import rules_for
from conformance.policies.engine_rules import EngineRules
from conformance.policies.policy import MIN
from conformance.policies.replay import Replay, ReplayStep, replay
from conformance.policies.trace import Boundary, ClockReading, Event, IdlePoll, Trace, TraceEntry


@dataclass(frozen=True)
class PolicyQuestion:
    """What a trace does under a policy."""

    policy: str
    """A key of ``catalogue.POLICIES``."""
    given: Mapping[str, Json]
    """Parameters of the policy; missing ones get their defaults."""
    trace: Trace
    throttle: tuple[str, Mapping[str, Json]] | None = None
    """Name and parameters; None emits every new watermark."""

    @property
    def rules(self) -> EngineRules:
        return rules_for(self.policy, self.given, self.throttle)

    def record(self) -> dict[str, Json]:
        """As JSON, complete: every parameter, and the clock before the first entry. Times are in the unit of the trace."""
        parameters = self.rules.parameters
        return {
            "policy": self.policy,
            "parameters": {name: one if isinstance(one, int | str) else str(one) for name, one in parameters.items()},
            "throttle": None if self.throttle is None else {"name": self.throttle[0], **self.throttle[1]},
            "inputs": list(self.trace.inputs),
            "clockUnit": self.trace.clock_unit,
            "clock": self.trace.start,
            "window": self.trace.window,
            "entries": [_entry(entry) for entry in self.trace.entries],
        }


@dataclass(frozen=True)
class PolicyAnswer:
    """What came of each entry, as far as the engine decides it."""

    steps: tuple[Mapping[str, Json], ...]
    """One per entry, up to a failure: a part of the keys of ``case.PolicyExpectation``, each with its value."""
    failure: str | None = None
    """What ended the engine at the entry after the last step."""


@dataclass(frozen=True)
class Disagreement:
    """An entry of which the model and an engine say different things."""

    number: int
    """Of the entry, from 1."""
    key: str
    """``late``; ``failure`` if only one of them fails there."""
    model: Any
    engine: Any

    def __str__(self) -> str:
        return f"entry {self.number}: {self.key} is {self.model!r} in the model and {self.engine!r} in the engine"


def answer_of(replayed: Replay) -> PolicyAnswer:
    """The model's answer, which has every key."""
    return PolicyAnswer(tuple(as_expectation(step) for step in replayed.steps), replayed.failure)


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


def disagreements(question: PolicyQuestion, engine: PolicyAnswer) -> tuple[Disagreement, ...]:
    """Where the model and an engine differ, in what the engine decides; in order."""
    model = answer_of(replay(question.trace, question.rules))
    found = [
        Disagreement(number, key, of_the_model[key], value)
        for number, (of_the_model, of_the_engine) in enumerate(zip(model.steps, engine.steps, strict=False), 1)
        for key, value in of_the_engine.items()
        if of_the_model[key] != value
    ]
    if len(model.steps) != len(engine.steps):
        number = min(len(model.steps), len(engine.steps)) + 1
        found.append(Disagreement(number, "failure", model.failure, engine.failure))
    return tuple(found)


def _entry(entry: TraceEntry) -> dict[str, Json]:
    match entry:
        case Event(at, name):
            return {"event": at, "input": name}
        case ClockReading(reading):
            return {"clock": reading}
        case IdlePoll(name):
            return {"idle": name}
        case Boundary():
            return {"batch": True}


def _or_none(watermark: int) -> int | None:
    return None if watermark == MIN else watermark
