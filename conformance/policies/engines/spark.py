"""Spark: the maximum event time of each micro-batch minus the delay, and the quantile that was once proposed instead.

All times are in milliseconds. Source: ``EventTimeWatermarkExec`` and ``WatermarkTracker`` of Apache Spark (SPARK-18124).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from typing import Literal

from conformance.policies.engine_rules import Coalescing, InputWatermark, Lateness
from conformance.policies.policy import MIN, InvalidParameter, Policy, at_least


@dataclass(frozen=True)
class MaxMinusDelay(Policy):
    """One ``withWatermark`` of a query, updated at the end of each micro-batch.

    The watermark never decreases, and a micro-batch without rows does not move it.
    """

    delay: int
    """Milliseconds."""
    watermark: int = MIN
    """``MIN`` until a micro-batch with rows has ended; combined with other inputs it counts as the epoch."""
    highest: int | None = None
    """Maximum event time of the current micro-batch."""

    def __post_init__(self) -> None:
        at_least("spark", "delay", self.delay, 0)

    def event(self, timestamp: int, now: int) -> MaxMinusDelay:  # noqa: ARG002
        return replace(self, highest=timestamp if self.highest is None else max(self.highest, timestamp))

    def poll(self, now: int) -> MaxMinusDelay:
        return self.boundary(now)

    def boundary(self, now: int) -> MaxMinusDelay:  # noqa: ARG002
        if self.highest is None:
            return self
        return replace(self, watermark=max(self.watermark, self.highest - self.delay), highest=None)


@dataclass(frozen=True)
class Quantile(Policy):
    """A quantile of the event times of a micro-batch minus a delay; never decreases.

    Proposed along with Spark's first watermark (SPARK-18124) but never implemented. Computed here the way Spark would have to:
    over the rows of a micro-batch, when it ends. The quantile is the nearest rank: the lowest event time such that at least
    the share ``quantile`` of the rows is at or below it. A share of 1 is the maximum, Spark's own policy; with a smaller
    share a few rows from the far future do not move the watermark.
    """

    quantile: Decimal
    """Greater than 0, at most 1."""
    delay: int = 0
    """Milliseconds."""
    watermark: int = MIN
    seen: tuple[int, ...] = ()
    """Event times of the current micro-batch, in order of arrival."""

    def __post_init__(self) -> None:
        if not 0 < self.quantile <= 1:
            raise InvalidParameter("quantile", "quantile", self.quantile, "above 0 and at most 1")
        at_least("quantile", "delay", self.delay, 0)

    def event(self, timestamp: int, now: int) -> Quantile:  # noqa: ARG002
        return replace(self, seen=(*self.seen, timestamp))

    def poll(self, now: int) -> Quantile:
        return self.boundary(now)

    def boundary(self, now: int) -> Quantile:  # noqa: ARG002
        if not self.seen:
            return self
        rank = int((self.quantile * len(self.seen)).to_integral_value(ROUND_CEILING))
        return replace(self, watermark=max(self.watermark, sorted(self.seen)[rank - 1] - self.delay), seen=())


@dataclass(frozen=True)
class SparkCoalescing(Coalescing):
    """``WatermarkTracker``: the lowest or highest of a query's watermarks, by ``multipleWatermarkPolicy``.

    The watermark starts at the epoch and never decreases, so an input without a watermark counts as the epoch.
    """

    policy: Literal["min", "max"] = "min"

    @property
    def initial(self) -> int:
        return 0

    def combined(self, inputs: Sequence[InputWatermark], before: int) -> int:
        choose = min if self.policy == "min" else max
        return max(before, choose(one.watermark for one in inputs))


@dataclass(frozen=True)
class SparkLateness(Lateness):
    """Drops an event if the end of its window, or its own time without windows, is at or below the watermark.

    The watermark only moves at the end of a micro-batch, so rows of one micro-batch never make each other late.
    Source: ``WatermarkSupport``.
    """

    def late(self, at: int, window: int | None, own: int, downstream: int) -> bool:  # noqa: ARG002
        return (at if window is None else window) <= downstream
