"""What the rules of an engine consist of: a watermark policy for each input, throttling, how inputs are combined, and what is late.

Times of throttles are in the unit of event times. Their source: ``WatermarkEmissionPolicy`` and ``WindowDefinition`` of Hazelcast
Jet 0.5 and 0.6. Throttles of 0.5 decide whether to emit, those of 0.6 also what: by frame, 0.5 emits the watermark that entered a
new frame and 0.6 the border of that frame. What is not above the last emitted watermark is ignored by 0.6 and ends a job of 0.5
(``replay.NotIncreasing``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self, TypeAlias

from conformance.policies.trace import MIN, ClockUnit


class InvalidParameter(ValueError):
    def __init__(self, policy: str, parameter: str, value: object, allowed: str) -> None:
        super().__init__(f"{parameter} of {policy} is {value}: it must be {allowed}")


@dataclass(frozen=True)
class PolicyParameter:
    """A parameter of a policy or throttle. The case reader and the JSON Schema are built from it."""

    meaning: str
    kind: Literal["count", "positive", "whole", "share"] = "count"
    """0, 1, 2, … · 1, 2, 3, … · any integer · greater than 0 and at most 1."""
    words: tuple[str, ...] = ()
    """The allowed words of a parameter that is no number."""
    default: Any = None
    required: bool = True

    def check(self, policy: str, name: str, value: Any) -> None:
        """Raise `InvalidParameter` if the value is not of the parameter's kind."""
        least = {"count": 0, "positive": 1}.get(self.kind)
        if self.kind == "share" and not 0 < value <= 1:
            raise InvalidParameter(policy, name, value, "above 0 and at most 1")
        if least is not None and not self.words and value < least:
            raise InvalidParameter(policy, name, value, f"at least {least}")


class WatermarkPolicy(Protocol):
    """Computes the watermark of one input. A frozen value: each method returns the policy after the call.

    ``now`` is the clock, in the unit that the policy documents. A policy overrides only the methods that affect it.
    """

    @property
    def watermark(self) -> int:
        """The current watermark; ``MIN`` if there is none yet."""
        return MIN

    def idle(self, now: int) -> bool:  # noqa: ARG002
        return False

    def started(self, now: int) -> Self:  # noqa: ARG002
        return self

    def event(self, timestamp: int, now: int) -> Self:  # noqa: ARG002
        return self

    def poll(self, now: int) -> Self:  # noqa: ARG002
        """The engine has polled the input and found nothing."""
        return self

    def boundary(self, now: int) -> Self:  # noqa: ARG002
        """A batch has ended: see ``trace.BatchBoundary``."""
        return self


def wrapped(number: int) -> int:
    """The number after 64-bit overflow, as Java's ``+`` and ``-`` compute it."""
    return (number - MIN) % 2**64 + MIN


class Throttle(Protocol):
    def emit(self, current: int, last: int) -> int | None:
        """The watermark to emit; None if none is due. ``last``: the last emitted one; ``MIN`` before the first."""


@dataclass(frozen=True)
class SuppressDuplicates(Throttle):
    """``suppressDuplicates`` (0.5), ``noThrottling`` (0.6): every new watermark."""

    def emit(self, current: int, last: int) -> int | None:
        return current if current > last else None


@dataclass(frozen=True)
class MinStep(Throttle):
    """``emitByMinStep``: a watermark at least ``step`` above the last emitted one.

    The sum of the two may overflow 64 bits; every watermark is above it then.
    """

    step: int

    def emit(self, current: int, last: int) -> int | None:
        return current if current >= wrapped(last + self.step) else None


@dataclass(frozen=True)
class Frames:
    """``WindowDefinition``: equal intervals of event time."""

    length: int
    offset: int = 0
    """Borders are at multiples of the length plus the offset, which is less than the length."""

    def __post_init__(self) -> None:
        if not 0 <= self.offset < self.length:
            raise InvalidParameter("frames", "offset", self.offset, f"from 0 to {self.length - 1}")

    def floor(self, timestamp: int) -> int:
        """The highest border at or below the timestamp; ``MIN`` if it is out of range."""
        # Near MIN, subtracting the offset would overflow; adding a whole frame first does not change the remainder.
        inside = timestamp if timestamp >= MIN + self.offset else timestamp + self.length
        return max(MIN, timestamp - (inside - self.offset) % self.length)


@dataclass(frozen=True)
class ByFrame(Throttle):
    """``emitByFrame`` of 0.5: a watermark that has entered a new frame."""

    frames: Frames

    def emit(self, current: int, last: int) -> int | None:
        return current if self.frames.floor(current) > last else None


@dataclass(frozen=True)
class FrameBorder(Throttle):
    """``emitByFrame`` of 0.6: the border of the frame that the watermark has entered."""

    frames: Frames

    def emit(self, current: int, last: int) -> int | None:
        border = self.frames.floor(current)
        return border if border > last else None


@dataclass(frozen=True)
class InputWatermark:
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
        """Combine the last emitted watermark of each input; the watermark ``before`` is the lower bound of the result."""


@dataclass(frozen=True)
class Lowest(Coalescing):
    """The lowest of all inputs, including those that have emitted nothing.

    Sources: Hazelcast Jet 0.5 (the lowest of a processor's queues), Beam (the lowest of all partitions).
    """

    def combined(self, inputs: Sequence[InputWatermark], before: int) -> int:
        return max(before, min(input.watermark for input in inputs))


@dataclass(frozen=True)
class LowestOfActive(Coalescing):
    """The lowest of the inputs that are not idle.

    If all inputs are idle, Hazelcast Jet 0.6 forwards the highest watermark so far (``EventTimeMapper``), and Flink keeps
    the watermark (``CombinedWatermarkStatus``).
    """

    when_all_idle: Literal["highest", "unchanged"]

    def combined(self, inputs: Sequence[InputWatermark], before: int) -> int:
        active = [input.watermark for input in inputs if not input.idle]
        if active:
            return max(before, min(active))
        return max(before, *(input.watermark for input in inputs)) if self.when_all_idle == "highest" else before


class Lateness(Protocol):
    """Which events are dropped, and when a window is complete. A window is identified by its exclusive end."""

    def late(self, at: int, window: int | None, own: int, downstream: int) -> bool:
        """Whether an event at a time is dropped.

        ``window``: the end of its window; None without windows. ``own``: the watermark of its own input, after the event.
        ``downstream``: the combined watermark of all inputs.
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
    """``limiting-lag-and-lull``: a key of ``engines.POLICIES``."""
    engine: str
    policy: WatermarkPolicy
    """The policy of each input, in its initial state."""
    lateness: Lateness
    coalescing: Coalescing = field(default_factory=Lowest)
    throttle: Throttle = field(default_factory=SuppressDuplicates)
    clock_unit: ClockUnit = "ms"
    """The unit in which the policy reads the clock."""
    one_source: bool = False
    """Whether the inputs are partitions of one source, all polled by each call and throttled as one, not each before they are combined."""
    one_task: bool = False
    """Whether all inputs share one policy."""
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(f'{name} {value}' for name, value in self.parameters.items())})"


JetRelease: TypeAlias = Literal["jet-0.5", "jet-0.6"]


@dataclass(frozen=True)
class ThrottleDefinition:
    meaning: str
    make: Callable[[Mapping[str, Any], JetRelease], Throttle]
    parameters: Mapping[str, PolicyParameter] = field(default_factory=dict)


def _by_frame(given: Mapping[str, Any], release: JetRelease) -> Throttle:
    frames = Frames(given["frame"], given.get("offset", 0))
    return ByFrame(frames) if release == "jet-0.5" else FrameBorder(frames)


THROTTLES: Mapping[str, ThrottleDefinition] = {
    "suppress-duplicates": ThrottleDefinition("Every new watermark.", lambda _given, _release: SuppressDuplicates()),
    "emit-by-min-step": ThrottleDefinition(
        "A watermark at least one step above the last emitted one.",
        lambda given, _release: MinStep(given["step"]),
        {"step": PolicyParameter("the minimum progress, in the unit of event times", "positive")},
    ),
    "emit-by-frame": ThrottleDefinition(
        "At most one watermark per frame: the one that entered it (0.5), or the border of the frame (0.6).",
        _by_frame,
        {
            "frame": PolicyParameter("the length of a frame, in the unit of event times", "positive"),
            "offset": PolicyParameter("where frames begin, in the unit of event times", default=0, required=False),
        },
    ),
}
