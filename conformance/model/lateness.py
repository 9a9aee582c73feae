"""Whether a row is late and whether state is evicted: an event time compared with a watermark.

The comparisons themselves, which differ by version, are rules.
"""

from collections.abc import Iterable, Mapping, Sequence

from conformance.model.columns import WINDOW_MADE, Attribute, Origin, Row, Value, origins
from conformance.model.operators import ComparedRow, OperatorContext
from conformance.model.rules import Rules


def event_time_among(columns: Sequence[Attribute], rules: Rules) -> Attribute | None:
    """The event-time column of an operator: the first one with a watermark, the only one since SPARK-42376; None if there is none."""
    tagged = [column for column in columns if column.is_event_time]
    if len({column.id for column in tagged}) > 1 and "two event times" in rules.refusals:
        raise rules.refusal("two event times", ", ".join(column.name for column in tagged))
    return tagged[0] if tagged else None


def is_late(time: Value, column: Attribute, watermark_ms: int, rules: Rules) -> bool:
    """Whether an event time, an instant or a window, is late."""
    if time is None:
        return rules.null_is_late
    return rules.is_late(rules.late_time_of_window(time) if is_window_column(column) else time, watermark_ms)


def late_and_fresh(
    rows: Iterable[Row], column: Attribute | None, context: OperatorContext
) -> tuple[list[Row], list[Row]]:
    """The rows that are late by an event-time column, and the others; without a column none is late."""
    late: list[Row] = []
    fresh: list[Row] = []
    for row in rows:
        is_fresh = column is None or not is_late(row[column.id], column, context.late_ms, context.rules)
        (fresh if is_fresh else late).append(row)
    return late, fresh


def is_evicted(time: Value, column: Attribute, watermark_ms: int, rules: Rules) -> bool:
    """Whether state with this event time is evicted."""
    if time is None:
        return rules.null_is_over
    return rules.is_over(rules.over_time_of_window(time) if is_window_column(column) else time, watermark_ms)


def is_window_column(column: Attribute) -> bool:
    return column.made_by == WINDOW_MADE or column.type.name == "struct"


def compared_row(
    row: Row | Mapping[int, Value],
    columns: Sequence[Attribute],
    time: Attribute | None,
    watermark_ms: int,
    rows: int = 1,
    made_of: tuple[Origin, ...] = (),
) -> ComparedRow:
    """A row with its values by name, and the time that was compared with a watermark."""
    what = tuple((column.name, column.type, row[column.id]) for column in columns if column.id in row)
    instant = None if time is None else row[time.id]
    if time is not None and instant is not None and is_window_column(time):
        instant = instant[1]
    return ComparedRow(what, instant, watermark_ms, rows, made_of or origins([row]))
