"""Session windows: consecutive rows of a key that are at most one gap apart share one. Sources: SPARK-34893, SPARK-36465."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from conformance.core.intervals import NotAnInterval, parse_interval
from conformance.model.aggregation import Contribution, contribution, output
from conformance.model.columns import Row, Value, with_origin_of
from conformance.model.errors import Unpredictable
from conformance.model.expressions import NamedExpression, evaluate
from conformance.model.operators import (
    OperatorContext,
    OperatorResult,
    compared_row,
    event_time_among,
    is_evicted,
    is_late,
)
from conformance.model.plan import Aggregate
from conformance.model.rules import Rules


@dataclass(frozen=True)
class Session:
    """From the first row to one gap after the last one, in µs, with the arguments of its rows."""

    start: int
    end: int
    contributions: tuple[Contribution, ...]


Sessions = Mapping[tuple[Value, ...], tuple[Session, ...]]
"""Key without the session → its sessions in order."""


def session_rows(rows: Sequence[Row], session: NamedExpression, rules: Rules) -> list[Row]:
    """Each row with its own session; rows with a null event time or without a positive gap are omitted."""
    found = []
    time, gap = session.expression.args
    for row in rows:
        instant, length = evaluate(time, row), _gap_us(evaluate(gap, row))
        if instant is not None and length is not None and length > 0:
            end = rules.session_end_us(instant, length)
            found.append(with_origin_of(row, {**row, session.column.id: (instant, end)}))
    return found


def aggregate_sessions(
    node: Aggregate, rows: Sequence[Row], state: Sessions, context: OperatorContext
) -> OperatorResult:
    """One micro-batch of an aggregation with a session window; its rows come from ``session_rows``."""
    rules = context.rules
    session = node.session
    if session is None:
        raise AssertionError("an aggregation without sessions")
    others = [key for key in node.keys if key is not session]
    if not others:
        raise rules.refusal("session without another key")
    time = event_time_among([key.column for key in node.keys], rules)
    late = [row for row in rows if time is not None and is_late(row[time.id], time, context.late_ms, rules)]
    sessions = dict(state)
    touched: dict[tuple[Value, ...], None] = {}
    for row in rows:
        if row not in late:
            key = tuple(row[one.column.id] for one in others)
            start, end = row[session.column.id]
            sessions[key] = (*sessions.get(key, ()), Session(start, end, (contribution(node, row),)))
            touched[key] = None
    sessions |= {key: merged(sessions[key], rules) for key in touched}
    over = [
        (key, one)
        for key, of_key in sessions.items()
        for one in of_key
        if context.mode in rules.evicts_in
        and time is not None
        and is_evicted((one.start, one.end), time, context.evicting_ms, rules)
    ]
    kept = {key: tuple(one for one in of_key if (key, one) not in over) for key, of_key in sessions.items()}
    kept = {key: of_key for key, of_key in kept.items() if of_key}
    everything = [(key, one) for key, of_key in sessions.items() for one in of_key]
    columns = [one.column for one in node.keys]

    def as_row(key: tuple[Value, ...], one: Session) -> Row:
        return {
            **dict(zip((other.column.id for other in others), key, strict=True)),
            session.column.id: (one.start, one.end),
        }

    emitted = everything if context.mode == "complete" else over
    return OperatorResult(
        rows=[output(node, as_row(key, one), one.contributions) for key, one in emitted],
        state=kept,
        state_rows=sum(len(of_key) for of_key in kept.values()),
        late=tuple(compared_row(row, columns, time, context.late_ms) for row in late),
        dropped=_counted(late, node, rules),
        evicted=tuple(compared_row(as_row(key, one), columns, time, context.evicting_ms) for key, one in over),
        updated=len(touched),
        removed=len(over),
        shown=tuple(
            compared_row(
                {**output(node, as_row(key, one), one.contributions), **as_row(key, one)},
                (*columns, *(one for one in node.columns if one not in columns)),
                time,
                context.evicting_ms,
            )
            for key, of_key in kept.items()
            for one in of_key
        ),
    )


def _counted(late: Sequence[Row], node: Aggregate, rules: Rules) -> int:
    """The number of late rows in the metric."""
    if not rules.session_drops_are_counted:
        return 0
    if rules.session_counts_late == "rows":
        return len(late)
    return len({tuple(row[key.column.id] for key in node.keys) for row in late})


def merged(sessions: Sequence[Session], rules: Rules) -> tuple[Session, ...]:
    """The sessions of one key, with overlapping or touching ones merged."""
    found: list[Session] = []
    for one in sorted(sessions, key=lambda session: session.start):
        last = found[-1] if found else None
        if last is not None and (one.start < last.end or (rules.sessions_touching_merge and one.start == last.end)):
            found[-1] = Session(last.start, max(last.end, one.end), (*last.contributions, *one.contributions))
        else:
            found.append(one)
    return tuple(found)


def _gap_us(gap: Value) -> int | None:
    if gap is None:
        return None
    try:
        interval = parse_interval(gap)
    except NotAnInterval:
        return None
    if interval.months:
        raise Unpredictable("a gap of months")
    return interval.delay_us
