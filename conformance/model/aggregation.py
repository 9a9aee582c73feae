"""Aggregation: which groups receive rows, are emitted and are evicted; time windows and session windows.

Rows of a key that are at most one gap apart share a session. Sources: SPARK-18124, SPARK-34893 and SPARK-36465 (sessions), "Output
Modes" and "Types of time windows" of the guide.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from conformance.core.intervals import DAY_US, NotAnInterval, parse_interval
from conformance.model.catalyst.spark_plan import constant_of, is_empty
from conformance.model.columns import Row, Value, origins, with_origin_of
from conformance.model.errors import Unpredictable
from conformance.model.expressions import Expression, NamedExpression, evaluate, replaced
from conformance.model.functions import AGGREGATES, BY_ORDER, Operands
from conformance.model.lateness import compared_row, event_time_among, is_evicted, is_late, late_and_fresh
from conformance.model.operators import OperatorContext, OperatorResult
from conformance.model.plan import Aggregate, StreamSource, beneath
from conformance.model.rules import Rules
from conformance.model.time_zones import check_same_offset

Key = tuple[Value, ...]
Contribution = tuple[Operands, ...]
"""The arguments of every aggregate function of the query for one row."""
Groups = Mapping[Key, tuple[Contribution, ...]]


def aggregate(node: Aggregate, rows: Sequence[Row], state: Groups, context: OperatorContext) -> OperatorResult:
    """One micro-batch of an aggregation without session windows; its rows have the key columns."""
    rules = context.rules
    if node.from_distinct and rules.silent_distinct_vanishes and is_empty(node.child, context.silent):
        raise Unpredictable("a SQL DISTINCT over a stream without new rows")
    key_columns = tuple(key.column for key in node.keys)
    judges = context.mode != "complete" or rules.drops_in_complete_mode
    time = event_time_among(key_columns, rules) if judges else None
    if context.mode == "append" and time is None:
        raise rules.refusal("append without event time in the operator")
    arrived = _grouped(node, rows)
    as_rows = {key: dict(zip((column.id for column in key_columns), key, strict=True)) for key in (*arrived, *state)}
    late: dict[Key, list[Row]] = {
        key: []
        for key in arrived
        if time is not None and _drops(context) and is_late(as_rows[key][time.id], time, context.late_ms, rules)
    }
    for row in rows if late else ():
        late.get(_key(node, row), []).append(row)
    taken = {key: contributions for key, contributions in arrived.items() if key not in late}
    groups = {**state, **{key: (*state.get(key, ()), *contributions) for key, contributions in taken.items()}}
    evicts = context.mode in rules.evicts_in
    evicting = time if time is not None else (event_time_among(key_columns, rules) if evicts else None)
    over = {
        key: None
        for key in groups
        if evicts
        and evicting is not None
        and is_evicted(as_rows[key][evicting.id], evicting, context.evicting_ms, rules)
    }
    kept = {key: contributions for key, contributions in groups.items() if key not in over}
    context.effort.add(sum(map(len, groups.values())))
    emitted = _emitted(context, groups, changed=list(taken), over=list(over))
    everything = tuple({column.id: column for column in (*key_columns, *node.columns)}.values())
    return OperatorResult(
        rows=[output(node, _shown_keys(node, key, context), groups[key]) for key in emitted],
        state=kept,
        state_rows=len(kept),
        late=tuple(
            compared_row(as_rows[key], key_columns, time, context.late_ms, len(arrived[key]), origins(late_rows))
            for key, late_rows in late.items()
        ),
        dropped=len(late) if rules.aggregation_counts_late == "groups" else sum(len(arrived[key]) for key in late),
        evicted=tuple(compared_row(as_rows[key], key_columns, evicting, context.evicting_ms) for key in over),
        updated=len(taken),
        removed=len(over),
        shown=tuple(
            compared_row(
                {**output(node, as_rows[key], kept[key]), **as_rows[key]}, everything, evicting, context.evicting_ms
            )
            for key in kept
        ),
    )


def check_functions(node: Aggregate, rules: Rules) -> None:
    """Raises ``Unpredictable`` for a function of rows in an order that is not that of their arrival, and for one that may be NaN."""
    names = {call.name for call in _calls(node)}
    if names & {"stddev", "variance"} and "NULL as the variance of one value" not in rules.features:
        raise Unpredictable("the variance of one value, which is NaN on this version")
    functions = BY_ORDER & names
    if functions and (node.session is not None or not isinstance(beneath(node.child), StreamSource)):
        raise Unpredictable(f"the order of rows for {min(functions)}")


def _drops(context: OperatorContext) -> bool:
    if context.mode == "complete":
        return context.rules.drops_in_complete_mode
    return context.mode != "update" or context.rules.drops_in_update_mode


def _emitted(context: OperatorContext, groups: Groups, changed: list[Key], over: list[Key]) -> list[Key]:
    rules = context.rules
    match context.mode:
        case "complete":
            return list(groups) if rules.complete_emits == "all groups" else changed
        case "update":
            return changed if rules.update_emits == "changed groups" else list(groups)
        case _:
            return over if rules.append_emits == "evicted groups" else changed


def _grouped(node: Aggregate, rows: Sequence[Row]) -> dict[Key, tuple[Contribution, ...]]:
    """The rows of a micro-batch by their keys. Without keys there is one group, even without rows."""
    groups: dict[Key, list[Contribution]] = {} if node.keys else {(): []}
    for row in rows:
        groups.setdefault(_key(node, row), []).append(contribution(node, row))
    return {key: tuple(contributions) for key, contributions in groups.items()}


def _key(node: Aggregate, row: Row) -> Key:
    return tuple(row[key.column.id] for key in node.keys)


def contribution(node: Aggregate, row: Row) -> Contribution:
    """The arguments of the aggregate functions for a row."""
    return tuple(tuple(evaluate(arg, row) for arg in call.args) for call in _calls(node))


def output(node: Aggregate, key: Row, contributions: Sequence[Contribution]) -> Row:
    results = {
        call: Expression(
            "literal", call.type, value=AGGREGATES[call.name].value([arguments[place] for arguments in contributions])
        )
        for place, call in enumerate(_calls(node))
    }
    return {output.column.id: evaluate(replaced(output.expression, results.get), key) for output in node.outputs}


def _calls(node: Aggregate) -> tuple[Expression, ...]:
    """The distinct aggregate calls, in order."""
    return tuple(dict.fromkeys(call for output in node.outputs for call in output.expression.aggregates))


def _shown_keys(node: Aggregate, key: Key, context: OperatorContext) -> Row:
    """The columns of the key, as the plan of this micro-batch has them (SPARK-47840)."""
    row = {named.column.id: value for named, value in zip(node.keys, key, strict=True)}
    present = {named.column.id: _constant(named.expression, node, context) for named in node.keys}
    constants = {id: value for id, value in present.items() if value is not None}
    return {**row, **constants} if constants and context.rules.constant_keys == "of the present plan" else row


def _constant(expression: Expression, node: Aggregate, context: OperatorContext) -> Value:
    """The value of a key that is a constant in the plan of this micro-batch; None otherwise."""
    if expression.kind == "column":
        constant = constant_of(expression.value, node.child, context.silent, context.rules)
        return None if constant is None else evaluate(constant, {})
    if expression.kind == "window" and expression.value[0] == expression.value[1]:
        time = _constant(expression.args[0], node, context)
        size, slide, start = expression.value
        return None if time is None else next(windows_of(time, size, slide, start, context.rules))
    return None


def windows_of(time_us: int, size: int, slide: int, start: int, rules: Rules) -> Iterator[tuple[int, int]]:
    """The start and end of the windows that contain an instant, the earliest first.

    All in µs; ``slide`` is the distance between two starts, ``start`` their offset from the epoch.
    """
    latest = _latest_start(time_us, slide, start, rules)
    if rules.window_holds_its_end and latest == time_us:
        latest -= slide
    starts = [latest - slide * back for back in range(-(-size // slide))]
    # On a version that rounds incorrectly, a tumbling window may not contain its row; sliding windows that do not are discarded.
    sliding = size != slide
    for first in reversed(starts):
        if not sliding or _holds((first, first + size), time_us, rules):
            yield first, first + size


def _latest_start(time_us: int, slide: int, start: int, rules: Rules) -> int:
    # Java's remainder has the sign of the dividend (SPARK-39347).
    dividend = time_us - start + slide
    if dividend >= 0 or rules.window_before_origin == "contains its rows":
        return time_us - (time_us - start) % slide
    return time_us + abs(dividend) % slide


def _holds(window: tuple[int, int], time_us: int, rules: Rules) -> bool:
    if rules.window_holds_its_end:
        return window[0] < time_us <= window[1]
    return window[0] <= time_us < window[1]


@dataclass(frozen=True)
class Session:
    """From the first row to one gap after the last one, in µs, with the arguments of its rows."""

    start: int
    end: int
    contributions: tuple[Contribution, ...]


Sessions = Mapping[Key, tuple[Session, ...]]
"""Key without the session → its sessions in order."""


def session_rows(rows: Sequence[Row], session: NamedExpression, rules: Rules) -> list[Row]:
    """Each row with its own session; rows with a null event time or without a positive gap are omitted."""
    with_session = []
    time, gap = session.expression.args
    for row in rows:
        instant, length = evaluate(time, row), _gap_us(evaluate(gap, row))
        if instant is not None and length is not None and length > 0:
            end = rules.session_end_us(instant, length)
            if length >= DAY_US:
                check_same_offset(session.expression.value, instant, end)
            with_session.append(with_origin_of(row, {**row, session.column.id: (instant, end)}))
    return with_session


def aggregate_sessions(
    node: Aggregate, window: NamedExpression, rows: Sequence[Row], state: Sessions, context: OperatorContext
) -> OperatorResult:
    """One micro-batch of an aggregation with a session window; its rows come from ``session_rows``."""
    rules = context.rules
    others = [key.column.id for key in node.keys if key is not window]
    if not others:
        raise rules.refusal("session without another key")
    columns = [key.column for key in node.keys]
    time = event_time_among(columns, rules)
    late, fresh = late_and_fresh(rows, time, context)
    arrived: dict[Key, list[Session]] = {}
    for row in fresh:
        start, end = row[window.column.id]
        session = Session(start, end, (contribution(node, row),))
        arrived.setdefault(tuple(row[id] for id in others), []).append(session)
    sessions = {**state, **{key: merged([*state.get(key, ()), *new], rules) for key, new in arrived.items()}}
    everything = [(key, session) for key, of_key in sessions.items() for session in of_key]
    context.effort.add(sum(len(session.contributions) for _, session in everything))
    over = [
        (key, session)
        for key, session in everything
        if context.mode in rules.evicts_in
        and time is not None
        and is_evicted((session.start, session.end), time, context.evicting_ms, rules)
    ]
    gone = {id(session) for _, session in over}
    kept = {key: tuple(session for session in of_key if id(session) not in gone) for key, of_key in sessions.items()}
    kept = {key: of_key for key, of_key in kept.items() if of_key}

    def as_row(key: Key, session: Session) -> Row:
        return {**dict(zip(others, key, strict=True)), window.column.id: (session.start, session.end)}

    emitted = everything if context.mode == "complete" else over
    return OperatorResult(
        rows=[output(node, as_row(key, session), session.contributions) for key, session in emitted],
        state=kept,
        state_rows=sum(len(of_key) for of_key in kept.values()),
        late=tuple(compared_row(row, columns, time, context.late_ms) for row in late),
        dropped=_counted(late, node, rules),
        evicted=tuple(compared_row(as_row(key, session), columns, time, context.evicting_ms) for key, session in over),
        updated=len(arrived),
        removed=len(over),
        shown=tuple(
            compared_row(
                {**output(node, as_row(key, session), session.contributions), **as_row(key, session)},
                (*columns, *(column for column in node.columns if column not in columns)),
                time,
                context.evicting_ms,
            )
            for key, of_key in kept.items()
            for session in of_key
        ),
    )


def _counted(late: Sequence[Row], node: Aggregate, rules: Rules) -> int:
    """The number of late rows in the metric."""
    if not rules.session_drops_are_counted:
        return 0
    if rules.session_counts_late == "rows":
        return len(late)
    return len({_key(node, row) for row in late})


def merged(sessions: Sequence[Session], rules: Rules) -> tuple[Session, ...]:
    """The sessions of one key, with overlapping or touching ones merged."""
    touching = rules.sessions_touching_merge
    apart: list[Session] = []
    for session in sorted(sessions, key=attrgetter("start")):
        last = apart[-1] if apart else None
        if last and (session.start < last.end or (touching and session.start == last.end)):
            contributions = last.contributions + session.contributions
            apart[-1] = Session(last.start, max(last.end, session.end), contributions)
        else:
            apart.append(session)
    return tuple(apart)


def _gap_us(gap: Value) -> int | None:
    try:
        interval = parse_interval(gap or "")
    except NotAnInterval:
        return None
    if interval.months:
        raise Unpredictable("a gap of months")
    return interval.delay_us
