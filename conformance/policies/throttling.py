"""When a watermark that a policy has is emitted, and which: what spares an engine a watermark per event.

Hazelcast Jet's emission policies, in the unit of event times. Source: ``WatermarkEmissionPolicy`` of Hazelcast Jet 0.5, whose
throttles only say whether to emit, and of 0.6, whose throttles say what: by frame, 0.5 emits the watermark that entered a new
frame and 0.6 the border of that frame. No throttle ever emits less than, or the same as, what was emitted last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from conformance.policies.frames import Frames
from conformance.policies.policy import at_least


class Throttle(Protocol):
    def emit(self, current: int, last: int) -> int | None:
        """
        Args:
            current: the watermark there is.
            last: the watermark emitted last; ``int64.MIN`` before the first.

        Returns:
            The watermark to emit; None where none is due.
        """


@dataclass(frozen=True)
class SuppressDuplicates(Throttle):
    """``suppressDuplicates`` of 0.5, ``noThrottling`` of 0.6: every watermark that is new."""

    def emit(self, current: int, last: int) -> int | None:
        return current if current > last else None


@dataclass(frozen=True)
class MinStep(Throttle):
    """``emitByMinStep``, in both releases: a watermark at least so much above the one emitted last."""

    step: int

    def __post_init__(self) -> None:
        at_least("emit-by-min-step", "step", self.step, 1)

    def emit(self, current: int, last: int) -> int | None:
        return current if current >= last + self.step else None


@dataclass(frozen=True)
class ByFrame(Throttle):
    """``emitByFrame`` of 0.5: a watermark that has entered a frame behind the one emitted last."""

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
