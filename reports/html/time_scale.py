"""From event times to heights: as far apart as they are, except that a gap without anything in it takes little room.

Cases set a row of 12:05 beside a watermark of 1970 and a row of the year 3000; drawn to scale nothing could be read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

LEAST, MOST = 0.5, 2.5
"""Of the middle gap: how small and how large any gap is drawn."""


@dataclass(frozen=True)
class Break:
    """A gap that is drawn shorter than it is."""

    below: int
    above: int


@dataclass(frozen=True)
class TimeScale:
    """Instants, in microseconds, and their heights above the lowest, in units of the middle gap."""

    instants: tuple[int, ...]
    heights: tuple[float, ...]
    breaks: tuple[Break, ...]

    @classmethod
    def of(cls, instants: Iterable[int]) -> TimeScale:
        """A scale on which each of the instants has a place."""
        known = sorted(set(instants))
        gaps = [b - a for a, b in pairwise(known)]
        if not gaps:
            return cls(tuple(known), tuple(0.0 for _ in known), ())
        middle = median(gaps)
        heights, breaks = [0.0], []
        for at, gap in enumerate(gaps):
            heights.append(heights[-1] + min(max(gap / middle, LEAST), MOST))
            if gap / middle > MOST:
                breaks.append(Break(known[at], known[at + 1]))
        return cls(tuple(known), tuple(heights), tuple(breaks))

    @property
    def height(self) -> float:
        return self.heights[-1] if self.heights else 0.0

    def at(self, instant: int) -> float:
        """The height of an instant; of one between two known ones in proportion, outside them that of the nearest."""
        if not self.instants or instant <= self.instants[0]:
            return 0.0
        if instant >= self.instants[-1]:
            return self.height
        above = bisect_left(self.instants, instant)
        low, high = self.instants[above - 1], self.instants[above]
        share = (instant - low) / (high - low)
        return self.heights[above - 1] + share * (self.heights[above] - self.heights[above - 1])
