"""Which events come too late, and when a window is complete. Each engine compares other things.

``own`` is the watermark of the event's input as its policy has it, after the event; ``downstream`` is what all inputs have
made of theirs together. A window goes by its end, which is not part of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Lateness(Protocol):
    def late(self, at: int, window: int | None, own: int, downstream: int) -> bool:
        """Whether an event is dropped.

        Args:
            at: its event time.
            window: the end of its window; None where events are in none.
            own: the watermark of its input.
            downstream: the watermark of the operators.
        """

    def complete(self, window: int, downstream: int) -> bool:
        """Whether a window comes out, or takes no more events, at this watermark."""
        return window <= downstream


@dataclass(frozen=True)
class SparkLateness(Lateness):
    """Dropped where the end of the window, or else the event's own time, is not above the watermark (``WatermarkSupport``).

    The watermark is that of the micro-batch before, since it moves when a micro-batch has ended: rows of one micro-batch do
    not make each other late.
    """

    def late(self, at: int, window: int | None, own: int, downstream: int) -> bool:  # noqa: ARG002
        return (at if window is None else window) <= downstream


@dataclass(frozen=True)
class BelowOwnWatermark(Lateness):
    """Hazelcast Jet 0.5: dropped on insertion (``InsertWatermarksP``) where below its own input's watermark, windows or not."""

    def late(self, at: int, window: int | None, own: int, downstream: int) -> bool:  # noqa: ARG002
        return at < own


@dataclass(frozen=True)
class OnlyByWindow(Lateness):
    """Dropped only where its window is complete; without windows nothing is late.

    Sources: Hazelcast Jet 0.6 (``SlidingWindowP``: a frame before the next to come out), Kafka Streams
    (``KStreamWindowAggregate``: a window's end not above stream time minus the grace).
    """

    def late(self, at: int, window: int | None, own: int, downstream: int) -> bool:  # noqa: ARG002
        return window is not None and window <= downstream


@dataclass(frozen=True)
class FlinkLateness(Lateness):
    """Late where not above the watermark; in a window, where the last millisecond of the window is not (``WindowOperator``).

    A window fires once the watermark has reached its last millisecond. No lateness is allowed, which is Flink's default.
    """

    def late(self, at: int, window: int | None, own: int, downstream: int) -> bool:  # noqa: ARG002
        return (at if window is None else window - 1) <= downstream

    def complete(self, window: int, downstream: int) -> bool:
        return window - 1 <= downstream


@dataclass(frozen=True)
class BeamLateness(Lateness):
    """Behind the watermark; in a window, dropped where the watermark is behind the window's last millisecond.

    Source: ``LateDataDroppingDoFnRunner`` of Apache Beam, with no allowed lateness, which is its default.
    """

    def late(self, at: int, window: int | None, own: int, downstream: int) -> bool:  # noqa: ARG002
        return at < downstream if window is None else window - 1 < downstream
