"""How far behind the newest event time rows arrive, in one pass over them, and so how many of them each delay drops.

Spark's rule: after each micro-batch, the watermark is the highest event time so far, in ms, minus the delay, of several inputs the lowest
(`EventTimeWatermarkExec` and `WatermarkTracker`, SPARK-18124, SPARK-22017). The next micro-batch drops what ends at or before it: a row
by its time, a row of windows by the end of its last window, a row of a session by its time and the gap (`WatermarkSupport`,
`watermarkExpression`). So a row is dropped by each delay up to its lateness, the newest time of the micro-batches before minus that end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

TimedRow: TypeAlias = tuple[int, str, int]
"""The micro-batch of a row, its stream and its event time in µs."""
EndOf: TypeAlias = Callable[[int], int]
"""The end of the last window that holds a time, in µs."""

_MINUTE: Final = 60_000
_DAY: Final = 1440 * _MINUTE
_AHEAD: Final = 30 * _MINUTE
_JUMP: Final = 10
"""How many times later than all others an outlier is at least."""
_FEW: Final = 0.05
"""The largest share of the rows that are outliers."""


@dataclass(frozen=True)
class Lateness:
    rows: int
    late: Mapping[int, int]
    """Lateness in ms, rounded down as in `_step`, → rows that are so late. Its size is bounded, whatever the number of rows."""
    ahead_ms: int = 0
    """How far the newest row is ahead of all others."""

    def dropped_with(self, delay_ms: int) -> int:
        """Count the rows that a delay drops; exact for whole seconds below a day, and whole minutes below 100 days."""
        return sum(rows for late, rows in self.late.items() if late >= delay_ms)

    def delay_for(self, share: float) -> int:
        """Return the shortest delay in ms that keeps this share of the rows, rounded as by `whole`."""
        may_drop, dropped = int(self.rows * (1 - share) + 1e-9), 0
        for late in sorted(self.late, reverse=True):
            dropped += self.late[late]
            if dropped > may_drop:
                return shortest_above(late)
        return 0

    def outliers(self) -> tuple[int, int, int] | None:
        """Return the number of rows that are far later than all others, the delay that keeps the others, and the one that keeps all."""
        later, ordered = 0, sorted(self.late, reverse=True)
        for late, before in pairwise([*ordered, 0]):
            later += self.late[late]
            if later > max(1, self.rows * _FEW):
                return None
            if late >= _AHEAD and late > _JUMP * max(before, _MINUTE):
                return later, shortest_above(before) if before else 0, shortest_above(ordered[0])
        return None


def lateness_of(rows: Iterable[TimedRow], streams: Collection[str], end_of: EndOf) -> Lateness:
    """Measure rows in the order of their micro-batches, in constant memory.

    Args:
        streams: the streams with a watermark; none is late before each of them brought a row.
        end_of: the end of the last window that holds a time, both in µs; the time itself without windows.
    """
    newest: dict[str, int] = {}
    count, batch, late = 0, None, Counter[int]()
    first = second = -(1 << 63)
    passed: int | None = None
    for at, stream, time in rows:
        count += 1
        if at != batch:
            batch = at
            passed = min(newest.values()) * 1000 if len(newest) == len(streams) else None
        if time // 1000 > newest.get(stream, -(1 << 63)):
            newest[stream] = time // 1000
        if time > first:
            first, second = time, first
        elif time > second:
            second = time
        if passed is not None and (behind := (passed - end_of(time)) // 1000) >= 0:
            late[behind // _step(behind) * _step(behind)] += 1
    return Lateness(count, late, (first - second) // 1000 if count > 1 else 0)


def shortest_above(late_ms: int) -> int:
    """Return the shortest delay, rounded as by `whole`, that keeps rows so late."""
    return whole(late_ms // _step(late_ms) * _step(late_ms) + _step(late_ms))


def whole(delay_ms: int) -> int:
    """Round a delay up to whole seconds up to 90, else to whole minutes."""
    unit = 1000 if delay_ms <= 90_000 else _MINUTE
    return -(-delay_ms // unit) * unit


def _step(late_ms: int) -> int:
    return 1 if late_ms < _MINUTE else 1000 if late_ms < _DAY else _MINUTE if late_ms < 100 * _DAY else _DAY
