"""From event times to heights, proportional except that large gaps are shortened.

A case may have a row at 12:05, a watermark in 1970 and a row in the year 3000; to scale, nothing would be readable.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

LEAST, MOST = 0.5, 2.5
"""Smallest and largest gap that is drawn, relative to the median gap."""


@dataclass(frozen=True)
class ScaleBreak:
    """A gap that is shortened."""

    below: int
    above: int


@dataclass(frozen=True)
class TimeScale:
    """Instants, in microseconds, and their heights above the lowest, in units of the median gap."""

    instants: tuple[int, ...]
    heights: tuple[float, ...]
    breaks: tuple[ScaleBreak, ...]

    @classmethod
    def of(cls, instants: Iterable[int]) -> TimeScale:
        """A scale that contains each of the instants."""
        known = sorted(set(instants))
        gaps = [b - a for a, b in pairwise(known)]
        if not gaps:
            return cls(tuple(known), tuple(0.0 for _ in known), ())
        middle = median(gaps)
        heights, breaks = [0.0], []
        for at, gap in enumerate(gaps):
            heights.append(heights[-1] + min(max(gap / middle, LEAST), MOST))
            if gap / middle > MOST:
                breaks.append(ScaleBreak(known[at], known[at + 1]))
        return cls(tuple(known), tuple(heights), tuple(breaks))

    @property
    def height(self) -> float:
        return self.heights[-1] if self.heights else 0.0

    def at(self, instant: int) -> float:
        """The height of an instant, interpolated between known ones and clamped outside them."""
        if not self.instants or instant <= self.instants[0]:
            return 0.0
        if instant >= self.instants[-1]:
            return self.height
        above = bisect_left(self.instants, instant)
        low, high = self.instants[above - 1], self.instants[above]
        share = (instant - low) / (high - low)
        return self.heights[above - 1] + share * (self.heights[above] - self.heights[above - 1])
