"""Event times against watermarks: what is late and what is over."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.model.columns import WINDOW_MADE, Column, Value
from conformance.model.parsing import refused
from conformance.model.rules import Rules


def event_time_among(columns: Sequence[Column], rules: Rules) -> Column | None:
    """The column an operator goes by: the first that carries a watermark; None where none does.

    Raises:
        Refused: there are several, where that is an error (SPARK-42376).
    """
    tagged = [one for one in columns if one.is_event_time]
    if len({one.id for one in tagged}) > 1 and "two event times" in rules.refusals:
        raise refused(rules, "two event times", ", ".join(one.name for one in tagged))
    return tagged[0] if tagged else None


def is_late(time: Value, column: Column, watermark_ms: int, rules: Rules) -> bool:
    """Whether a value of an event-time column, an instant or a window, is late at a watermark."""
    if time is None:
        return rules.null_is_late
    return rules.is_late(rules.late_time_of_window(time) if _is_window(column) else time, watermark_ms)


def is_over(time: Value, column: Column, watermark_ms: int, rules: Rules) -> bool:
    """Whether state with this event time goes at a watermark."""
    if time is None:
        return rules.null_is_over
    return rules.is_over(rules.over_time_of_window(time) if _is_window(column) else time, watermark_ms)


def instant_of(time: Value, column: Column) -> int | None:
    """The instant, in µs, by which a person would say what time this is: the end of a window."""
    if time is None:
        return None
    instant: int = time[1] if _is_window(column) else time
    return instant


def _is_window(column: Column) -> bool:
    return column.made_by == WINDOW_MADE or column.type.name == "struct"
