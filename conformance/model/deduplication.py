"""``dropDuplicates`` and ``dropDuplicatesWithinWatermark``. Sources: "Streaming Deduplication" of the guide, SPARK-19497, SPARK-42931."""

from collections.abc import Mapping, Sequence

from conformance.model.columns import Attribute, Row, Value
from conformance.model.errors import Unpredictable
from conformance.model.lateness import compared_row, event_time_among, is_evicted, is_late
from conformance.model.operators import OperatorContext, OperatorResult
from conformance.model.plan import Deduplicate

Keys = Mapping[tuple[Value, ...], int | None]
"""Key → its expiry in µs; None if it is evicted by its own event time, or never."""


def deduplicate(
    node: Deduplicate, rows: Sequence[Row], state: Keys, context: OperatorContext, visible: frozenset[int]
) -> OperatorResult:
    """One micro-batch. Of the columns only the visible ones are left in the plan; a pruned event time filters nothing."""
    rules = context.rules
    time = _event_time(node, context, visible)
    known = dict(state)
    if node.within_watermark and rules.within_forgets == "before the rows":
        known = {key: expires for key, expires in known.items() if not _is_over({}, expires, None, context)}
    late, fresh, duplicates = [], [], 0
    taken = set()
    first: dict[tuple[Value, ...], Row] = {}
    for row in rows:
        key = tuple(row[column.id] for column in node.keys)
        if time is not None and is_late(row[time.id], time, context.late_ms, rules):
            late.append(row)
        elif node.has_no_order and first.setdefault(key, row) != row and key in taken:
            raise Unpredictable("which of several rows of one key a deduplication takes")
        elif key in known and rules.deduplication_remembers:
            duplicates += 1
            if node.within_watermark and rules.duplicates_prolong:
                known[key] = _expires(row, time, context)
        else:
            known[key] = _expires(row, time, context) if node.within_watermark else None
            fresh.append(row)
            taken.add(key)
    in_key = None if node.within_watermark else event_time_among(node.keys, rules)

    def shown(key: tuple[Value, ...]) -> Row:
        return dict(zip((column.id for column in node.keys), key, strict=True))

    over = {key: None for key, expires in known.items() if _is_over(shown(key), expires, in_key, context)}
    kept = {key: expires for key, expires in known.items() if key not in over}
    return OperatorResult(
        rows=fresh,
        state=kept,
        state_rows=len(kept),
        late=tuple(compared_row(row, node.columns, time, context.late_ms) for row in late),
        dropped=len(late),
        evicted=tuple(compared_row(shown(key), node.keys, in_key, context.evicting_ms) for key in over),
        updated=len(fresh),
        removed=len(over),
        duplicates=duplicates,
        shown=tuple(compared_row(shown(key), node.keys, in_key, context.evicting_ms) for key in kept),
    )


def _event_time(node: Deduplicate, context: OperatorContext, visible: frozenset[int]) -> Attribute | None:
    rules, columns = context.rules, node.child.columns
    left = [column for column in columns if column.id in visible]
    if not node.within_watermark:
        return event_time_among(columns if rules.pruned_event_time_is_filtered else left, rules)
    missing = "deduplication within the watermark without its event time"
    if missing in rules.refusals and not any(column.is_event_time for column in left):
        raise rules.refusal(missing)
    return event_time_among(columns, rules)


def _expires(row: Row, time: Attribute | None, context: OperatorContext) -> int:
    if time is None or time.delay_ms is None:
        raise AssertionError("dropDuplicatesWithinWatermark without event time is refused")
    time_us = row[time.id] or 0  # Spark reads a null as the long in its place, which is 0
    if not isinstance(time_us, int):
        raise Unpredictable("dropDuplicatesWithinWatermark of a window event time")
    return context.rules.within_expires_us(time_us, time.delay_ms)


def _is_over(key: Row, expires: int | None, column: Attribute | None, context: OperatorContext) -> bool:
    if expires is not None:
        return context.rules.within_is_expired(expires, context.evicting_ms)
    return column is not None and is_evicted(key[column.id], column, context.evicting_ms, context.rules)
