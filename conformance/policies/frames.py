"""Hazelcast Jet's frames: equal stretches of event time. A frame goes by its end, the first timestamp behind it.

Source: ``WindowDefinition`` (``floorFrameTs``, ``higherFrameTs``) of Hazelcast Jet 0.5.
"""

from __future__ import annotations

from dataclasses import dataclass

from conformance.policies.int64 import MIN, clamped
from conformance.policies.policy import NotAPolicy, at_least


@dataclass(frozen=True)
class Frames:
    length: int
    """In the unit of event times."""
    offset: int = 0
    """From 0 up to the length: borders are at multiples of the length plus this."""

    def __post_init__(self) -> None:
        at_least("frames", "frame", self.length, 1)
        if not 0 <= self.offset < self.length:
            raise NotAPolicy("frames", "offset", self.offset, f"from 0 to {self.length - 1}")

    def floor(self, timestamp: int) -> int:
        """The highest border that is not above the timestamp; ``MIN`` where that is out of range."""
        # Near MIN the offset is not subtracted, for that would run over; a whole frame first changes no remainder.
        inside = timestamp if timestamp >= MIN + self.offset else timestamp + self.length
        return clamped(timestamp - (inside - self.offset) % self.length)

    def higher(self, timestamp: int) -> int:
        """The lowest border above the timestamp; ``MAX`` where that is out of range."""
        following = clamped(timestamp + self.length)
        return following if following != timestamp + self.length else self.floor(following)
