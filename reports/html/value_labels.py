"""Where the values of emitted windows are written, so that none covers another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

CHARACTER, LINE = 7.0, 13.0
"""The room of a character and of a line, in pixels; text of 12 pixels is smaller."""


@dataclass(frozen=True)
class ValueLabel:
    """A text that ends at ``x``, on the baseline ``y + 4``."""

    x: float
    y: float
    text: str

    @property
    def left(self) -> float:
        return self.x - width_of(self.text)


def width_of(text: str) -> float:
    """The greatest width of the text."""
    return CHARACTER * len(text)


def placed(
    wanted: Iterable[tuple[ValueLabel, float, float]], marks: Sequence[tuple[float, float]], top: float, bottom: float
) -> tuple[ValueLabel, ...]:
    """The labels, moved up or down where one would cover another, and where possible none on a mark.

    Args:
        wanted: labels where they would stand best, each with the upper and lower end of what it labels.
        marks: x and y of what should stay visible.
        top: no label stands above; y grows downwards.
        bottom: no label stands below.
    """
    found: list[ValueLabel] = []
    for label, above, below in wanted:
        free = [y for y in _heights(label.y, top, bottom) if not any(_covers(label, y, other) for other in found)]
        visible = [y for y in free if not any(_marks(label, y, mark) for mark in marks)]
        own = [y for y in visible if above <= y <= below]
        y = next(iter(own or visible or free), label.y)
        found.append(ValueLabel(label.x, y, label.text))
    return tuple(found)


def _heights(best: float, top: float, bottom: float) -> list[float]:
    """The nearest first."""
    steps = int((bottom - top) / LINE * 2) + 2
    around = (best + sign * LINE * at / 2 for at in range(steps) for sign in ((1, -1) if at else (1,)))
    return [y for y in around if top <= y <= bottom]


def _covers(label: ValueLabel, y: float, other: ValueLabel) -> bool:
    return abs(y - other.y) < LINE and label.left < other.x and other.left < label.x


def _marks(label: ValueLabel, y: float, mark: tuple[float, float]) -> bool:
    return abs(y - mark[1]) < LINE / 2 + 4 and label.left - 5 < mark[0] < label.x + 5
