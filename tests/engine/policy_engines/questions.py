"""What an engine is asked, a trace under a policy, and what it answers; the model answers the same question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.core.data import Json
from conformance.policies.engines import rules_for
from conformance.policies.replay import Replay, as_expectation
from conformance.policies.rules import EngineRules
from conformance.policies.trace import BatchBoundary, ClockReading, Event, IdlePoll, Trace, TraceEntry


@dataclass(frozen=True)
class PolicyQuestion:
    policy: str
    """A key of ``engines.POLICIES``."""
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
            "parameters": {
                name: value if isinstance(value, int | str) else str(value) for name, value in parameters.items()
            },
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
    """One per entry, up to a failure: a part of the keys of ``PolicyExpectation``, each with its value."""
    failure: str | None = None
    """What ended the engine at the entry after the last step."""


def answer_of(replayed: Replay) -> PolicyAnswer:
    """The model's answer, which has every key."""
    return PolicyAnswer(tuple(as_expectation(step) for step in replayed.steps), replayed.failure)


def _entry(entry: TraceEntry) -> dict[str, Json]:
    match entry:
        case Event(at, name):
            return {"event": at, "input": name}
        case ClockReading(reading):
            return {"clock": reading}
        case IdlePoll(name):
            return {"idle": name}
        case BatchBoundary():
            return {"batch": True}
