"""The watermark policy of one input, its parameters, the 64-bit integers that policies compute with, and when an engine emits a watermark.

Times of throttles are in the unit of event times. Their source: ``WatermarkEmissionPolicy`` and ``WindowDefinition`` of Hazelcast
Jet 0.5 and 0.6. Throttles of 0.5 decide whether to emit, those of 0.6 also what: by frame, 0.5 emits the watermark that entered a
new frame and 0.6 the border of that frame. What is not above the last emitted watermark is ignored by 0.6 and ends a job of 0.5
(``replay.NotIncreasing``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self, TypeAlias

MIN = -(2**63)
"""``Long.MIN_VALUE``: in most engines, a watermark that has not been computed yet."""
MAX = 2**63 - 1
"""``Long.MAX_VALUE``: the watermark of an input that has ended."""

ParameterKind: TypeAlias = Literal["count", "positive", "whole", "share"]
"""0, 1, 2, … · 1, 2, 3, … · any integer · greater than 0 and at most 1."""


@dataclass(frozen=True)
class PolicyParameter:
    """A parameter of a policy or throttle. The case reader and the JSON Schema are built from it."""

    meaning: str
    """With its unit."""
    kind: ParameterKind = "count"
    words: tuple[str, ...] = ()
    """The allowed words, if the value is not a number."""
    default: Any = None
    required: bool = True


class InvalidParameter(ValueError):
    """A parameter value that a policy does not accept."""

    def __init__(self, policy: str, parameter: str, value: object, allowed: str) -> None:
        super().__init__(f"{parameter} of {policy} is {value}: it must be {allowed}")


class Policy(Protocol):
    """Computes the watermark of one input. A frozen value: each method returns the policy after the call.

    ``now`` is the clock, in the unit that the policy documents. A policy overrides only the methods that affect it.
    """

    @property
    def watermark(self) -> int:
        """The current watermark; ``MIN`` if there is none yet."""
        return MIN

    def idle(self, now: int) -> bool:  # noqa: ARG002
        """Whether the input counts as idle and no longer holds back the watermark."""
        return False

    def started(self, now: int) -> Self:  # noqa: ARG002
        """The input has been opened."""
        return self

    def event(self, timestamp: int, now: int) -> Self:  # noqa: ARG002
        """An event has arrived."""
        return self

    def poll(self, now: int) -> Self:  # noqa: ARG002
        """The engine has polled the input and found nothing."""
        return self

    def boundary(self, now: int) -> Self:  # noqa: ARG002
        """A batch has ended: see ``trace.Boundary``."""
        return self


def at_least(policy: str, parameter: str, value: int, least: int) -> None:
    """
    Raises:
        InvalidParameter: the value is less than ``least``.
    """
    if value < least:
        raise InvalidParameter(policy, parameter, value, f"at least {least}")


def wrapped(number: int) -> int:
    """The number after 64-bit overflow, as Java's ``+`` and ``-`` compute it."""
    return (number - MIN) % 2**64 + MIN


def clamped(number: int) -> int:
    """The nearest 64-bit integer."""
    return max(MIN, min(MAX, number))


JetRelease: TypeAlias = Literal["jet-0.5", "jet-0.6"]


class Throttle(Protocol):
    def emit(self, current: int, last: int) -> int | None:
        """
        Args:
            current: the current watermark.
            last: the last emitted watermark; ``MIN`` before the first.

        Returns:
            The watermark to emit; None if none is due.
        """


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

    def __post_init__(self) -> None:
        at_least("emit-by-min-step", "step", self.step, 1)

    def emit(self, current: int, last: int) -> int | None:
        return current if current >= wrapped(last + self.step) else None


@dataclass(frozen=True)
class Frames:
    """``WindowDefinition``: equal intervals of event time."""

    length: int
    offset: int = 0
    """From 0 to the length, exclusive: borders are at multiples of the length plus the offset."""

    def __post_init__(self) -> None:
        at_least("frames", "frame", self.length, 1)
        if not 0 <= self.offset < self.length:
            raise InvalidParameter("frames", "offset", self.offset, f"from 0 to {self.length - 1}")

    def floor(self, timestamp: int) -> int:
        """The highest border at or below the timestamp; ``MIN`` if it is out of range."""
        # Near MIN, subtracting the offset would overflow; adding a whole frame first does not change the remainder.
        inside = timestamp if timestamp >= MIN + self.offset else timestamp + self.length
        return clamped(timestamp - (inside - self.offset) % self.length)


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
class ThrottleDefinition:
    """A throttle that a case can name."""

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
