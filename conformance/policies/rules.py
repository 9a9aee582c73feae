"""The rules of an engine: a policy for each input, and what the engine makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.policies.coalescing import Coalescing, Lowest
from conformance.policies.lateness import Lateness
from conformance.policies.policy import Policy
from conformance.policies.throttling import SuppressDuplicates, Throttle
from conformance.policies.trace import ClockUnit


@dataclass(frozen=True)
class Rules:
    """Everything that it takes to read a trace as an engine would."""

    name: str
    """``limiting-lag-and-lull``: what ``known`` and the command line call it."""
    engine: str
    """``Hazelcast Jet 0.5``."""
    policy: Policy
    """Of each input, before it has seen anything."""
    lateness: Lateness
    coalescing: Coalescing = field(default_factory=Lowest)
    throttle: Throttle = field(default_factory=SuppressDuplicates)
    clock_unit: ClockUnit = "ms"
    """In which the policy reads the clock."""
    one_source: bool = False
    """Whether the inputs are partitions of one source: any call looks at all of them, and they are throttled as one.

    Else each input is throttled by itself, before all are joined.
    """
    one_task: bool = False
    """Whether all inputs share one policy."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """As a case gives them, to show."""

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(f'{name} {value}' for name, value in self.parameters.items())})"
