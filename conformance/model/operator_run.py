"""What a stateful operator is given for one micro-batch, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from conformance.model.boundary import instant_of
from conformance.model.columns import Column, Row, Value
from conformance.model.rules import Rules
from conformance.model.story import Judged

OutputMode: TypeAlias = Literal["append", "update", "complete"]
State: TypeAlias = Any
"""Of an operator; never changed in place."""


@dataclass(frozen=True)
class Turn:
    """The circumstances of one operator in one micro-batch; watermarks in ms."""

    late_ms: int
    eviction_ms: int
    mode: OutputMode
    silent: frozenset[str]
    """Streams that have nothing new."""
    rules: Rules

    @property
    def evicting_ms(self) -> int:
        """The watermark that state goes by."""
        return self.eviction_ms if self.rules.eviction_watermark == "own batch" else self.late_ms


@dataclass(frozen=True)
class Outcome:
    """What an operator made of its rows."""

    rows: Sequence[Row]
    state: State
    held: int
    late: tuple[Judged, ...] = ()
    dropped: int = 0
    evicted: tuple[Judged, ...] = ()
    updated: int = 0
    removed: int = 0
    duplicates: int = 0
    shown: tuple[Judged, ...] = ()
    """What is held, for people."""


def judged(
    row: Row | Mapping[int, Value], columns: Sequence[Column], time: Column | None, watermark_ms: int, rows: int = 1
) -> Judged:
    """A row for the story: its values by name, and the time it was judged by."""
    what = tuple((one.name, one.type, row[one.id]) for one in columns if one.id in row)
    instant = None if time is None else instant_of(row[time.id], time)
    return Judged(what, instant, watermark_ms, rows)
