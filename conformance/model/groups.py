"""The rows of one group, as a function over pandas frames sees them. Source: `PandasGroupUtils`, ``harness/driver/state_functions.py``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from conformance.model.columns import Attribute, Row, Value
from conformance.model.errors import Unpredictable
from conformance.model.operators import OperatorContext, event_time_among, is_late
from conformance.model.progress import ComparedRow

GroupKey = tuple[Value, ...]
"""The values of the grouping columns."""

Emitted = Iterator[tuple[Value, ...]]
"""The rows that a function or a processor emits, values in the order of its columns."""

_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
_TIMESTAMPS = frozenset({"timestamp", "timestamp_ntz"})


@dataclass(frozen=True)
class Group:
    """The rows of a group in a micro-batch; none if it is called for a timeout or a timer."""

    keys: tuple[Attribute, ...]
    key: GroupKey
    columns: tuple[Attribute, ...]
    """Of the rows."""
    rows: tuple[Row, ...] = ()

    @property
    def key_text(self) -> str:
        """The first grouping column in Python's notation, ``None`` if it is null.

        Raises:
            Unpredictable: its type has another notation in pandas.
        """
        kind, value = self.keys[0].type.name, self.key[0]
        if kind == "string" or (kind in _WHOLE and value is not None):
            return str(value)
        raise Unpredictable(f"the text of a grouping column of type {self.keys[0].type}")

    @property
    def times_us(self) -> tuple[int | None, ...]:
        """The event time of each row: its first TIMESTAMP column.

        Raises:
            Unpredictable: there is no such column.
        """
        column = next((one for one in self.columns if one.type.name in _TIMESTAMPS), None)
        if column is None:
            raise Unpredictable("a function over groups without a TIMESTAMP column")
        return tuple(row[column.id] for row in self.rows)

    @property
    def latest_ms(self) -> int:
        """The latest event time in ms; 0 if all are null."""
        return max((time // 1000 for time in self.times_us if time is not None), default=0)


def grouped(rows: Iterable[Row], keys: Sequence[Attribute], columns: tuple[Attribute, ...]) -> Iterator[Group]:
    """The groups that have rows. Null is a key like any other."""
    found: dict[GroupKey, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key.id] for key in keys), []).append(row)
    return (Group(tuple(keys), key, columns, tuple(of_key)) for key, of_key in found.items())


def late_and_fresh(
    rows: Sequence[Row], columns: Sequence[Attribute], context: OperatorContext, uses_event_time: bool
) -> tuple[Attribute | None, list[Row], list[Row]]:
    """The event-time column of the input, the rows that are late for it, and the others.

    Args:
        rows: of the micro-batch.
        columns: of the input.
        context: watermarks and rules.
        uses_event_time: whether the timeout or the time mode of the operator is event time.

    Raises:
        Refused: there are several event-time columns.
    """
    rules = context.rules
    time = event_time_among(columns, rules)
    drops = {"by event time only": uses_event_time, "always": True, "never": False}[rules.functions_drop_late_rows]
    if time is None or not drops:
        return time, [], list(rows)
    late = [row for row in rows if is_late(row[time.id], time, context.late_ms, rules)]
    return time, late, [row for row in rows if row not in late]


def compared_group(keys: Sequence[Attribute], key: GroupKey, at_ms: int | None, watermark_ms: int) -> ComparedRow:
    """A group with its timeout or timer, for display."""
    what = tuple((one.name, one.type, value) for one, value in zip(keys, key, strict=True))
    return ComparedRow(what, None if at_ms is None else at_ms * 1000, watermark_ms)
