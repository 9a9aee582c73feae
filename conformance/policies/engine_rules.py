"""The rules of an engine: a policy for each input, how inputs are combined, what is late, and when watermarks are emitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from conformance.policies.policy import MIN, Policy, SuppressDuplicates, Throttle
from conformance.policies.trace import ClockUnit


@dataclass(frozen=True)
class InputWatermark:
    """What one input has emitted last."""

    watermark: int
    """``MIN`` if nothing."""
    idle: bool = False


class Coalescing(Protocol):
    """Combines the watermarks of all inputs into the one that downstream operators use. It never decreases."""

    @property
    def initial(self) -> int:
        """The watermark before any input has emitted one."""
        return MIN

    def combined(self, inputs: Sequence[InputWatermark], before: int) -> int:
        """
        Args:
            inputs: the last emitted watermark of each.
            before: the combined watermark so far, the lower bound of the result.
        """


@dataclass(frozen=True)
class Lowest(Coalescing):
    """The lowest of all inputs, including those that have emitted nothing.

    Sources: Hazelcast Jet 0.5 (the lowest of a processor's queues), Beam (the lowest of all partitions).
    """

    def combined(self, inputs: Sequence[InputWatermark], before: int) -> int:
        return max(before, min(one.watermark for one in inputs))


@dataclass(frozen=True)
class LowestOfActive(Coalescing):
    """The lowest of the inputs that are not idle.

    If all inputs are idle, Hazelcast Jet 0.6 forwards the highest watermark so far (``EventTimeMapper``), and Flink keeps
    the watermark (``CombinedWatermarkStatus``).
    """

    when_all_idle: Literal["highest", "unchanged"]

    def combined(self, inputs: Sequence[InputWatermark], before: int) -> int:
        active = [one.watermark for one in inputs if not one.idle]
        if active:
            return max(before, min(active))
        return max(before, *(one.watermark for one in inputs)) if self.when_all_idle == "highest" else before


class Lateness(Protocol):
    """Which events are dropped, and when a window is complete. A window is identified by its exclusive end."""

    def late(self, at: int, window: int | None, own: int, downstream: int) -> bool:
        """Whether an event is dropped.

        Args:
            at: its event time.
            window: the end of its window; None without windows.
            own: the watermark of its own input, after the event.
            downstream: the combined watermark of all inputs.
        """

    def complete(self, window: int, downstream: int) -> bool:
        """Whether a window is emitted, or accepts no more events, at this watermark."""
        return window <= downstream


@dataclass(frozen=True)
class LateByWindow(Lateness):
    """Drops an event only if its window is complete; without windows nothing is late.

    Sources: Hazelcast Jet 0.6 (``SlidingWindowP``: frames before the next one to be emitted), Kafka Streams
    (``KStreamWindowAggregate``: a window whose end is at or below stream time minus the grace).
    """

    def late(self, at: int, window: int | None, own: int, downstream: int) -> bool:  # noqa: ARG002
        return window is not None and window <= downstream


@dataclass(frozen=True)
class EngineRules:
    """Everything needed to replay a trace as an engine would."""

    name: str
    """``limiting-lag-and-lull``: a key of ``catalogue.POLICIES``."""
    engine: str
    """``Hazelcast Jet 0.5``."""
    policy: Policy
    """Of each input, in its initial state."""
    lateness: Lateness
    coalescing: Coalescing = field(default_factory=Lowest)
    throttle: Throttle = field(default_factory=SuppressDuplicates)
    clock_unit: ClockUnit = "ms"
    """The unit in which the policy reads the clock."""
    one_source: bool = False
    """Whether the inputs are partitions of one source: each call polls all of them, and they are throttled as one.

    If False, each input is throttled separately, before all are combined.
    """
    one_task: bool = False
    """Whether all inputs share one policy."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """As given in a case, for display."""

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(f'{name} {value}' for name, value in self.parameters.items())})"
