"""How the watermarks of several inputs become the one that operators behind them work with. It never goes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from conformance.policies.int64 import MIN


@dataclass(frozen=True)
class Sent:
    """What one input has sent."""

    watermark: int
    """``MIN`` where none."""
    idle: bool = False


class Coalescing(Protocol):
    @property
    def initial(self) -> int:
        """The watermark before any input has sent one."""
        return MIN

    def together(self, inputs: Sequence[Sent], before: int) -> int:
        """
        Args:
            inputs: what each has sent last.
            before: the watermark so far, below which it does not fall.
        """


@dataclass(frozen=True)
class Lowest(Coalescing):
    """The lowest of all inputs, one that has sent nothing included.

    Sources: Hazelcast Jet 0.5 (the lowest over the queues of a processor), Beam (the lowest over partitions).
    """

    def together(self, inputs: Sequence[Sent], before: int) -> int:
        return max(before, min(one.watermark for one in inputs))


@dataclass(frozen=True)
class LowestOfActive(Coalescing):
    """The lowest of the inputs that are not idle.

    Where all are idle, ``top`` is forwarded by Hazelcast Jet 0.6 (``EventTimeMapper``: the highest watermark there ever was,
    since nobody is left to wait for), and the watermark stays in Flink (``CombinedWatermarkStatus``).
    """

    when_all_idle: Literal["top", "stays"]

    def together(self, inputs: Sequence[Sent], before: int) -> int:
        active = [one.watermark for one in inputs if not one.idle]
        if active:
            return max(before, min(active))
        return max(before, *(one.watermark for one in inputs)) if self.when_all_idle == "top" else before


@dataclass(frozen=True)
class SparkGlobal(Coalescing):
    """Spark's ``WatermarkTracker``: by ``multipleWatermarkPolicy`` the lowest or the highest of a query's watermarks.

    The watermark starts at the epoch, below which it does not fall: so an input that has none yet counts as the epoch.
    """

    policy: Literal["min", "max"] = "min"

    @property
    def initial(self) -> int:
        return 0

    def together(self, inputs: Sequence[Sent], before: int) -> int:
        choose = min if self.policy == "min" else max
        return max(before, choose(one.watermark for one in inputs))
