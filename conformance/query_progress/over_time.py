"""What a query did over its micro-batches, for pictures. Its size does not grow with their number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

Panel: TypeAlias = Literal["event time", "rows", "dropped", "state"]
_MOST: Final = 2_000


class Series(NamedTuple):
    panel: Panel
    """The picture to which it belongs."""
    label: str


WATERMARK: Final = Series("event time", "watermark")
NEWEST: Final = Series("event time", "newest event time")
OLDEST: Final = Series("event time", "oldest event time")
ROWS_OUT: Final = Series("rows", "rows out")
DROPPED: Final = Series("dropped", "rows dropped")


class Point(NamedTuple):
    batch: int
    clock: int | None
    """When it ran, or its rows arrived, in milliseconds; None if that is not known."""
    values: Mapping[Series, int]
    begins: bool = False
    """Whether a restart was before it."""


@dataclass
class OverTime:
    thinned: int = 1
    """How many micro-batches two points stand for, if more than one: there are at most `_MOST` points."""
    _points: list[Point] = field(default_factory=list)
    _last: list[Point] = field(default_factory=list)
    """Fewer micro-batches than two points stand for."""

    def add(self, batch: int, clock: int | None, values: Mapping[Series, int | None], *, begins: bool = False) -> None:
        known = {series: value for series, value in values.items() if value is not None}
        self._last.append(Point(batch, clock, known, begins and bool(self._points)))
        if len(self._last) >= self.thinned:
            self._points += _ends(self._last)
            self._last = []
        if len(self._points) >= _MOST:
            self.thinned = max(self.thinned * 2, 4)
            self._points = [point for at in range(0, _MOST, 4) for point in _ends(self._points[at : at + 4])]

    @property
    def points(self) -> list[Point]:
        return [*self._points, *_ends(self._last)]

    @property
    def series(self) -> list[Series]:
        first = (WATERMARK, NEWEST, OLDEST, ROWS_OUT)
        known = {series for point in self.points for series in point.values}
        return sorted(known, key=lambda series: (first.index(series) if series in first else len(first), series.label))


def _ends(points: Sequence[Point]) -> Sequence[Point]:
    """Return the first and the last of some points, with the lowest and the highest value of each series, the earlier first."""
    if len(points) <= 2:
        return points
    extremes: dict[Series, tuple[int, int]] = {}
    for series in {series for point in points for series in point.values}:
        values = [point.values[series] for point in points if series in point.values]
        low, high = min(values), max(values)
        extremes[series] = (low, high) if values.index(low) < values.index(high) else (high, low)
    first, last = ({series: pair[at] for series, pair in extremes.items()} for at in (0, 1))
    begins = any(point.begins for point in points)
    return [Point(points[0].batch, points[0].clock, first, begins), Point(points[-1].batch, points[-1].clock, last)]
