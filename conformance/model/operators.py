"""What a stateful operator gets and returns in one micro-batch, and how it compares event times with watermarks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, TypeAlias

from conformance.model.columns import WINDOW_MADE, Attribute, Origin, Row, Value, origins
from conformance.model.errors import Unpredictable
from conformance.model.progress import ComparedRow, OperatorEffects
from conformance.model.rules import Rules

MOST_ROWS = 500_000
"""The rows of an operator in one micro-batch up to which the model predicts: a case of a few lines can ask for any number."""

OutputMode: TypeAlias = Literal["append", "update", "complete"]
State: TypeAlias = Any
"""The state of an operator; immutable."""


def bounded(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows that an operator makes.

    Raises:
        Unpredictable: they are more than ``MOST_ROWS``.
    """
    left = iter(rows)
    yield from islice(left, MOST_ROWS)
    if next(left, None) is not None:
        raise Unpredictable(f"a micro-batch in which an operator makes more than {MOST_ROWS:,} rows")


@dataclass(frozen=True)
class OperatorContext:
    """The input of a stateful operator in a micro-batch besides rows and state; watermarks in ms."""

    late_ms: int
    eviction_ms: int
    mode: OutputMode
    silent: frozenset[str]
    """Streams without new rows."""
    rules: Rules

    @property
    def evicting_ms(self) -> int:
        """The watermark by which state is evicted."""
        return self.eviction_ms if self.rules.eviction_watermark == "own batch" else self.late_ms


@dataclass(frozen=True, kw_only=True)
class OperatorResult(OperatorEffects):
    """The result of a stateful operator in a micro-batch."""

    rows: Sequence[Row]
    state: State


def compared_row(
    row: Row | Mapping[int, Value],
    columns: Sequence[Attribute],
    time: Attribute | None,
    watermark_ms: int,
    rows: int = 1,
    of: tuple[Origin, ...] = (),
) -> ComparedRow:
    """A row with its values by name, and the time that was compared with a watermark; ``of`` says what it was made of."""
    what = tuple((one.name, one.type, row[one.id]) for one in columns if one.id in row)
    instant = None if time is None else row[time.id]
    if time is not None and instant is not None and _is_window(time):
        instant = instant[1]
    return ComparedRow(what, instant, watermark_ms, rows, of or origins([row]))


def event_time_among(columns: Sequence[Attribute], rules: Rules) -> Attribute | None:
    """The event-time column of an operator: the first one with a watermark; None if there is none.

    Raises:
        Refused: there are several, on versions that refuse that (SPARK-42376).
    """
    tagged = [one for one in columns if one.is_event_time]
    if len({one.id for one in tagged}) > 1 and "two event times" in rules.refusals:
        raise rules.refusal("two event times", ", ".join(one.name for one in tagged))
    return tagged[0] if tagged else None


def is_late(time: Value, column: Attribute, watermark_ms: int, rules: Rules) -> bool:
    """Whether an event time, an instant or a window, is late."""
    if time is None:
        return rules.null_is_late
    return rules.is_late(rules.late_time_of_window(time) if _is_window(column) else time, watermark_ms)


def is_evicted(time: Value, column: Attribute, watermark_ms: int, rules: Rules) -> bool:
    """Whether state with this event time is evicted."""
    if time is None:
        return rules.null_is_over
    return rules.is_over(rules.over_time_of_window(time) if _is_window(column) else time, watermark_ms)


def _is_window(column: Attribute) -> bool:
    return column.made_by == WINDOW_MADE or column.type.name == "struct"
