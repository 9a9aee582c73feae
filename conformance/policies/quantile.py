"""A quantile of the event times as watermark: proposed beside Spark's first watermark (SPARK-18124), never built.

Milliseconds. Read here as Spark would have had to do it: over the rows of a micro-batch, when it has ended. The quantile is by
nearest rank: the lowest event time of the micro-batch to which at least the share ``quantile`` of its rows is equal or below.
A share of 1 is the maximum, and so Spark's own policy; a lower one lets a few rows from the far future pass unheeded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal

from conformance.policies.int64 import MIN
from conformance.policies.policy import NotAPolicy, Policy, at_least


@dataclass(frozen=True)
class Quantile(Policy):
    """The quantile of a micro-batch minus a delay; never goes back."""

    quantile: Decimal
    """Above 0, at most 1."""
    delay: int = 0
    """Milliseconds."""
    watermark: int = MIN
    seen: tuple[int, ...] = ()
    """Event times of the micro-batch that is being read, in order of arrival."""

    def __post_init__(self) -> None:
        if not 0 < self.quantile <= 1:
            raise NotAPolicy("quantile", "quantile", self.quantile, "above 0 and at most 1")
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
