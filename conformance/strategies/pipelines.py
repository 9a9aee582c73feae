"""Pipelines by family: every operation of the case language, alone and combined, with its effect on columns and event time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from typing import Any

from hypothesis import strategies as st

from conformance.core.data import Json
from conformance.core.errors import WrongUsage
from conformance.core.versions import StateStore
from conformance.strategies.draft import (
    NAMES,
    ColumnKind,
    Draft,
    Length,
    Scale,
    delay_lengths,
    length,
    names_of,
    scales,
    sources,
    spans,
)

FAMILIES: Mapping[str, str] = {
    "windows": "windowed aggregations, tumbling and sliding, and those by event time or key alone",
    "sessions": "session windows with fixed gaps and with gaps that depend on the row",
    "deduplication": "dropDuplicates, dropDuplicatesWithinWatermark, distinct",
    "joins": "joins of two streams of every kind, by key, by time and by window",
    "chains": "stateful operators on top of stateful operators",
    "unions": "unions of streams with watermarks, and operators on top of them",
    "event-times": "stateless queries: propagation of the event time and the watermark",
    "sql": "the same in SQL: DISTINCT, GROUP BY, LIMIT, joins and unions of two views; orderBy and limit",
    "recovery": "queries of the other families with restarts, crashes, damaged checkpoints and changes",
    "kills": "the same with the engine process killed during a micro-batch",
    "state-functions": "applyInPandasWithState and transformWithState",
}

DEFAULT = tuple(name for name in FAMILIES if name not in ("kills", "state-functions"))
"""The default families; the others need one process per case, or pandas in the engine."""


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """The families with these names, the default ones if there are none; WrongUsage if a name is unknown."""
    for name in names:
        if name not in FAMILIES:
            near = get_close_matches(name, FAMILIES, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise WrongUsage(f"unknown family {name!r}.{hint} The families are {', '.join(FAMILIES)}")
    return tuple(names) or DEFAULT


CONSTANTS = ("tag", "side")
"""Columns with the same value in every row of a stream."""
JOINS = ("inner", "leftOuter", "rightOuter", "fullOuter", "leftSemi")


def chance(draw: st.DrawFn, one_in: int) -> bool:
    """True once in ``one_in`` draws on average; shrinks to False."""
    return draw(_dice(one_in)) == one_in - 1


@cache
def _dice(faces: int) -> st.SearchStrategy[int]:
    """Cached, since creating a strategy takes longer than drawing from it."""
    return st.integers(0, faces - 1)


def watermarked(draw: st.DrawFn, draft: Draft, delay: Length | None = None) -> Draft:
    """``withWatermark`` on the only stream of the draft; the delay is drawn unless given."""
    (name,) = draft.streams
    stream = draft.streams[name]
    delay = delay or draw(delay_lengths(draft.scale))
    marked = replace(stream, delay_us=delay.us)
    return draft.then({"withWatermark": [stream.time, delay.text]}, event_time=stream.time, streams={name: marked})


def stateless(draw: st.DrawFn, draft: Draft) -> Draft:
    kind = draw(st.sampled_from(("where", "where", "select", "withColumn", "drop", "alias", "dropna")))
    match kind:
        case "where":
            return filtered(draw, draft)
        case "select":
            kept = [name for name in draft.columns if not chance(draw, 5 if name == draft.event_time else 3)]
            kept = draw(st.permutations(kept or list(draft.columns)))
            return draft.with_columns({"select": list(kept)}, {name: draft.columns[name] for name in kept})
        case "withColumn":
            return extended(draw, draft)
        case "drop":
            spare = [name for name in draft.columns if name != draft.event_time or chance(draw, 8)]
            if len(draft.columns) < 2 or not spare:
                return draft
            gone = draw(st.sampled_from(spare))
            left = {name: kind for name, kind in draft.columns.items() if name != gone}
            return draft.with_columns({"drop": [gone]}, left)
        case "dropna":
            subset = [name for name in draft.columns if chance(draw, 2)] or list(draft.columns)[:1]
            checks: list[Json] = [{"how": "any"}, {"how": "all"}, {"thresh": len(subset)}]
            return draft.then({"dropna": {**draw(st.sampled_from(checks)), "subset": subset}})
        case _:
            return draft.then({"alias": draw(st.sampled_from(("a", "b")))})


def filtered(draw: st.DrawFn, draft: Draft) -> Draft:
    strings, numbers, times = draft.of_kind("string"), draft.of_kind("int", "bigint"), draft.of_kind("timestamp")
    conditions = [
        *(f"{name} <> 'b'" for name in strings),
        *(f"{name} IS NOT NULL" for name in (*strings, *times)),
        *(f"{name} > 1" for name in numbers),
        *(f"{name} IS NULL OR {name} < 3" for name in numbers),
        *(f"{name} < TIMESTAMP '1970-01-01 12:10:00'" for name in times),
        "false",
    ]
    return draft.then({"where": draw(st.sampled_from(conditions))})


def extended(draw: st.DrawFn, draft: Draft) -> Draft:
    """``withColumn``: a constant, a function of a column, or a copy of the event time."""
    strings, numbers, times = draft.of_kind("string"), draft.of_kind("int", "bigint"), draft.of_kind("timestamp")
    expressions: list[tuple[str, str, ColumnKind]] = [
        ("tag", "'x'", "string"),
        *(("upper_key", f"upper({name})", "string") for name in strings),
        *(("twice", f"{name} * 2", "int") for name in numbers),
        *(("copy", name, "timestamp") for name in times),
        *(("later", f"{name} + INTERVAL 5 SECONDS", "timestamp") for name in times),
    ]
    name, expression, kind = draw(st.sampled_from(expressions))
    return draft.with_columns({"withColumn": [name, expression]}, {**draft.columns, name: kind})


def window_of(draw: st.DrawFn, time: str, draft: Draft) -> tuple[str, Length]:
    """``window(…)`` over a column (tumbling, sliding or with an offset), and its size."""
    size = draw(spans(draft.scale))
    count = size.us // draft.scale.us
    form = draw(st.sampled_from(("tumbling", "tumbling", "tumbling", "sliding", "shifted")))
    if form == "sliding" and count and count % 2 == 0:
        return f"window({time}, '{size.text}', '{length(count // 2, draft.scale).text}')", size
    if form == "shifted" and count > 1:
        return f"window({time}, '{size.text}', '{size.text}', '{length(1, draft.scale).text}')", size
    return f"window({time}, '{size.text}')", size


def aggregates(draw: st.DrawFn, draft: Draft) -> dict[str, tuple[str, ColumnKind]]:
    numbers, strings = draft.of_kind("int", "bigint"), draft.of_kind("string")
    calls: list[dict[str, tuple[str, ColumnKind]]] = [{"n": ("count(*)", "bigint")}]
    calls += [{"total": (f"sum({name})", "bigint")} for name in numbers]
    calls += [{"highest": (f"max({name})", draft.columns[name])} for name in (*numbers, *strings)]
    calls += [{"n": ("count(*)", "bigint"), "lowest": (f"min({name})", draft.columns[name])} for name in numbers]
    return draw(st.sampled_from(calls))


def grouped(
    draw: st.DrawFn,
    draft: Draft,
    keys: Mapping[str, tuple[str, ColumnKind]],
    *,
    over: str | None,
    size: Length | None = None,
) -> Draft:
    """``groupBy`` (by name → expression and kind) and ``agg``; ``over``: the key with the event time, ``size``: of its windows."""
    computed = aggregates(draw, draft)
    columns = {name: kind for name, (_, kind) in (*keys.items(), *computed.items())}
    operation = {
        "groupBy": [expression for expression, _ in keys.values()],
        "agg": [f"{expression} AS {name}" for name, (expression, _) in computed.items()],
    }
    return draft.then(
        operation,
        columns=columns,
        event_time=over if draft.event_time is not None else None,
        modes=_modes(draft, over),
        spans=(*draft.spans, size) if size is not None else draft.spans,
    )


def _modes(draft: Draft, over: str | None) -> frozenset[str]:
    """The output modes of an aggregation; a second one only works in append mode."""
    if any("groupBy" in operation or "join" in operation for operation in draft.operations):
        return frozenset({"append"})
    if over is None or draft.event_time is None:
        return frozenset({"update", "complete"})
    return frozenset({"append", "complete"} if over == "session_window" else {"append", "update", "complete"})


def some_keys(draw: st.DrawFn, draft: Draft) -> dict[str, tuple[str, ColumnKind]]:
    """Columns to group by besides the time: usually one or none."""
    strings = draft.of_kind("string")
    if not strings or chance(draw, 3):
        return {}
    # A constant column identifies the source of a row; plans fold it if only one source has rows.
    constants = [name for name in strings if name in CONSTANTS]
    name = draw(st.sampled_from((*strings, *constants, *constants)))
    return {name: (name, "string")}


def windowed(draw: st.DrawFn, draft: Draft) -> Draft:
    """An aggregation by window, by the event time itself, or by key only."""
    time = time_of(draft)
    form = draw(st.sampled_from(("window", "window", "window", "window", "raw", "key alone")))
    if time is None or form == "key alone":
        keys = some_keys(draw, draft) or {name: (name, draft.columns[name]) for name in list(draft.columns)[:1]}
        over = next((name for name in keys if name == draft.event_time), None)
        return grouped(draw, draft, keys, over=over)
    if form == "raw":
        return grouped(draw, draft, {time: (time, draft.columns[time]), **some_keys(draw, draft)}, over=time)
    expression, size = window_of(draw, time, draft)
    others = {name: key for name, key in some_keys(draw, draft).items() if name != "window"}
    return grouped(draw, draft, {"window": (expression, "window"), **others}, over="window", size=size)


def in_sessions(draw: st.DrawFn, draft: Draft) -> Draft:
    time = time_of(draft)
    if time is None or draft.columns[time] != "timestamp":
        return windowed(draw, draft)
    gap = draw(spans(draft.scale))
    strings = draft.of_kind("string")
    text = f"'{gap.text}'"
    if strings and chance(draw, 4):
        text = f"CASE WHEN {strings[0]} = 'a' THEN '{gap.text}' ELSE '{length(1, draft.scale).text}' END"
    keys: dict[str, tuple[str, ColumnKind]] = {"session_window": (f"session_window({time}, {text})", "window")}
    if strings and not chance(draw, 12):
        # Spark rejects sessions without another key.
        keys[strings[0]] = (strings[0], "string")
    return grouped(draw, draft, keys, over="session_window", size=gap)


def time_of(draft: Draft) -> str | None:
    """The event-time column, or another time column if there is none."""
    if draft.event_time is not None:
        return draft.event_time
    return next(iter(draft.of_kind("timestamp", "window")), None)


def deduplicated(draw: st.DrawFn, draft: Draft) -> Draft:
    keys = draft.of_kind("string", "int") or list(draft.columns)[:1]
    key = draw(st.sampled_from(keys))
    time = time_of(draft)
    forms: list[Json] = [
        {"dropDuplicates": [key]},
        {"dropDuplicates": []},
        {"distinct": True},
        {"distinct": True},
        {"dropDuplicatesWithinWatermark": [key]},
        {"dropDuplicatesWithinWatermark": [key]},
    ]
    if time is not None and time != key:
        forms += [{"dropDuplicates": [key, time]}] * 3 + [{"dropDuplicates": [time]}]
    return draft.then(draw(st.sampled_from(forms)))


def joined(draw: st.DrawFn, left: Draft, right: Draft) -> Draft:
    """A join of two drafts without common column names: by key, by key and time, by time only, or by window."""
    how = draw(st.sampled_from((*JOINS, "inner", "leftOuter")))
    by_key = _equal(left, right, "string")
    mine, other = left.event_time, right.event_time
    conditions: list[tuple[str, tuple[Length, ...]]] = [(by_key, ())] if by_key else []
    if mine and other and left.columns[mine] == right.columns[other]:
        conditions += [(_and(by_key, f"{mine} = {other}"), ())] * 2
        if left.columns[mine] == "timestamp":
            conditions += [_interval(draw, mine, other, by_key, left) for _ in range(3)]
    times = _equal(left, right, "window") or _equal(left, right, "timestamp")
    if not conditions and times:
        conditions = [(times, ())]
    elif not conditions:
        conditions = [("true", ())]
    condition, lengths = draw(st.sampled_from(conditions))
    numbers = [name for side in (left, right) for name in side.of_kind("int", "bigint")]
    if numbers and chance(draw, 4):
        # A condition on one side only: rows that fail it match nothing.
        condition = _and(condition, f"{draw(st.sampled_from(numbers))} > 1")
    both = left.merged(right)
    columns = left.columns if how == "leftSemi" else {**left.columns, **right.columns}
    return left.then(
        {"join": list(right.operations), "on": condition, "how": how},
        **{**both, "columns": columns, "modes": frozenset({"append"}), "spans": (*both["spans"], *lengths)},
        event_time=left.event_time or (right.event_time if how != "leftSemi" else None),
    )


def _interval(draw: st.DrawFn, mine: str, other: str, by_key: str, draft: Draft) -> tuple[str, tuple[Length, ...]]:
    """A condition with a lower or upper bound, or both, on mine time relative to the other; inclusive or exclusive."""
    size = draw(spans(draft.scale))
    interval = f"INTERVAL {size.text.upper()}"
    least = draw(st.sampled_from((">=", ">")))
    most = draw(st.sampled_from(("<=", "<")))
    ranges = (
        f"{other} {least} {mine} AND {other} {most} {mine} + {interval}",
        f"{other} {least} {mine} AND {other} {most} {mine} + {interval}",
        f"{mine} {least} {other} - {interval} AND {mine} {most} {other} + {interval}",
        f"{other} {least} {mine}",
        f"{other} {most} {mine} + {interval}",
    )
    return _and(by_key, draw(st.sampled_from(ranges))), (size,)


def _equal(left: Draft, right: Draft, *kinds: ColumnKind) -> str:
    mine, theirs = left.of_kind(*kinds), right.of_kind(*kinds)
    return f"{mine[0]} = {theirs[0]}" if mine and theirs else ""


def _and(*conditions: str) -> str:
    return " AND ".join(condition for condition in conditions if condition)


def united(left: Draft, right: Draft) -> Draft | None:
    if list(left.columns.values()) != list(right.columns.values()):
        return None
    same_place = list(left.columns).index(left.event_time) if left.event_time else -1
    there = list(right.columns).index(right.event_time) if right.event_time else -1
    both = left.merged(right)
    return left.then(
        {"union": list(right.operations)}, **both, event_time=left.event_time if same_place == there else None
    )


def selected(draft: Draft, names: Sequence[str]) -> Draft:
    return draft.with_columns({"select": list(names)}, {name: draft.columns[name] for name in names})


ROCKSDB = StateStore.named("rocksdb").conf
"""Required by ``transformWithState``."""


def _sources(draw: st.DrawFn, count: int, scale: Scale, *, plain: bool = False) -> list[Draft]:
    """Several streams, often with the same delay, since plans may merge identical inputs."""
    delay = draw(delay_lengths(scale)) if chance(draw, 2) else None
    return [_source(draw, number, scale, plain=plain, delay=delay) for number in range(count)]


def _source(draw: st.DrawFn, number: int, scale: Scale, *, plain: bool = False, delay: Length | None = None) -> Draft:
    """A stream, usually with a watermark, sometimes with stateless operations before or after it."""
    draft: Draft = draw(sources(NAMES[number], scale))
    if not plain and chance(draw, 8):
        draft = filtered(draw, draft)
    if not chance(draw, 12):
        draft = watermarked(draw, draft, delay)
    if not plain and chance(draw, 4):
        draft = stateless(draw, draft)
    return draft


def _finished(draw: st.DrawFn, draft: Draft) -> Draft:
    """Sometimes a final stateless operation, or a selection of columns, which makes plans prune the others."""
    if chance(draw, 4):
        return stateless(draw, draft)
    if chance(draw, 4):
        some = [name for name in draft.columns if chance(draw, 2)] or list(draft.columns)[:1]
        return selected(draft, some)
    return draft


def _windows(draw: st.DrawFn, scale: Scale) -> Draft:
    draft = _source(draw, 0, scale)
    if chance(draw, 6):
        draft = _with_constant(draft, "tag", "'x'")
    return _finished(draw, windowed(draw, draft))


def _sessions(draw: st.DrawFn, scale: Scale) -> Draft:
    return _finished(draw, in_sessions(draw, _source(draw, 0, scale)))


def _deduplication(draw: st.DrawFn, scale: Scale) -> Draft:
    draft = deduplicated(draw, _source(draw, 0, scale))
    keys = draft.operations[-1].get("dropDuplicates")
    return selected(draft, keys) if keys and chance(draw, 4) else _finished(draw, draft)


def _joins(draw: st.DrawFn, scale: Scale) -> Draft:
    sides = _sources(draw, 2, scale)
    if chance(draw, 6):
        sides = [*map(_with_constant, sides, CONSTANTS, ("'tag'", "'side'"))]
    return _finished(draw, joined(draw, *sides))


def _unions(draw: st.DrawFn, scale: Scale) -> Draft:
    branches = _sources(draw, 2, scale, plain=True)
    if chance(draw, 2):
        branches = [*map(_with_constant, branches, ("side", "side"), ("'l'", "'r'"))]
    columns = [
        [time, key, *(name for name in branch.columns if name == "side")]
        for branch, (time, key, _) in zip(branches, map(names_of, NAMES[:2]), strict=True)
    ]
    both = united(*branches) or united(*map(selected, branches, columns))
    assert both is not None, "every stream has a time and a key"
    above: Callable[[st.DrawFn, Draft], Draft] = draw(
        st.sampled_from((windowed, windowed, deduplicated, in_sessions, stateless))
    )
    return _finished(draw, above(draw, both))


def _with_constant(branch: Draft, name: str, value: str) -> Draft:
    return branch.with_columns({"withColumn": [name, value]}, {**branch.columns, name: "string"})


def _event_times(draw: st.DrawFn, scale: Scale) -> Draft:
    if chance(draw, 4):
        return _watermark_on_a_window(draw, scale)
    draft = _source(draw, 0, scale)
    for _ in range(draw(st.integers(0, 2))):
        draft = stateless(draw, draft)
    return draft


def _watermark_on_a_window(draw: st.DrawFn, scale: Scale) -> Draft:
    """A watermark on a window column, which Spark allows."""
    plain: Draft = draw(sources(NAMES[0], scale))
    (stream,) = plain.streams.values()
    expression, size = window_of(draw, stream.time, plain)
    others = {name: kind for name, kind in plain.columns.items() if name != stream.time}
    draft = plain.then({"select": [expression, *others]}, columns={"window": "window", **others}, spans=(size,))
    delay = draw(delay_lengths(scale))
    streams = {name: replace(stream, delay_us=delay.us) for name, stream in plain.streams.items()}
    marked = draft.then({"withWatermark": ["window", delay.text]}, event_time="window", streams=streams)
    return windowed(draw, marked) if chance(draw, 3) else marked


def _chains(draw: st.DrawFn, scale: Scale) -> Draft:
    forms = ("window of window", "window time", "deduplicated first", "above a join", "two joins", "two aggregations")
    match form := draw(st.sampled_from((*forms, "above"))):
        case "window of window" | "window time":
            below = windowed(draw, _source(draw, 0, scale, plain=True))
            if below.event_time != "window":
                return below
            if form == "window time":
                others = {name: kind for name, kind in below.columns.items() if name != "window"}
                select = {"select": ["window_time(window) AS at", *others]}
                below = below.with_columns(select, {"at": "timestamp", **others}, event_time="at")
            if form == "window of window" and chance(draw, 3):
                return _window_of_window_in_sql(draw, below)
            return _finished(draw, windowed(draw, _renamed(below)))
        case "deduplicated first":
            draft = deduplicated(draw, _source(draw, 0, scale, plain=True))
            return _finished(draw, windowed(draw, draft) if chance(draw, 2) else in_sessions(draw, draft))
        case "above a join":
            both = _one_time(draw, joined(draw, *_sources(draw, 2, scale, plain=True)))
            above = draw(st.sampled_from((windowed, deduplicated, in_sessions)))
            return _finished(draw, above(draw, both))
        case "two joins":
            first, two, three = _sources(draw, 3, scale, plain=True)
            return joined(draw, _one_time(draw, joined(draw, first, two)), three)
        case "two aggregations":
            sides = [windowed(draw, source) for source in _sources(draw, 2, scale, plain=True)]
            return joined(draw, _renamed(sides[0], "left_"), _renamed(sides[1], "right_"))
        case _:
            below = windowed(draw, _source(draw, 0, scale, plain=True))
            return _finished(draw, deduplicated(draw, below))


def _window_of_window_in_sql(draw: st.DrawFn, draft: Draft) -> Draft:
    """Nested windows in one SQL statement, with a filter."""
    expression, size = window_of(draw, "window", draft)
    inner = f"SELECT {expression} AS outer_window, count(*) AS outer_n FROM view GROUP BY {expression}"
    least = draw(st.sampled_from((0, 1)))
    return draft.then(
        {"sql": f"SELECT * FROM ({inner}) WHERE outer_n > {least}", "as": "view"},
        columns={"outer_window": "window", "outer_n": "bigint"},
        event_time="outer_window",
        modes=frozenset({"append"}),
        spans=(*draft.spans, size),
    )


def _renamed(draft: Draft, prefix: str = "first_") -> Draft:
    """The draft with every column renamed, so that the names of the next operation do not clash."""
    names = {name: name if prefix == "first_" and name == "window" else f"{prefix}{name}" for name in draft.columns}
    return draft.then(
        {"select": [name if name == new else f"{name} AS {new}" for name, new in names.items()]},
        columns={names[name]: kind for name, kind in draft.columns.items()},
        event_time=names[draft.event_time] if draft.event_time is not None else None,
    )


def _one_time(draw: st.DrawFn, draft: Draft) -> Draft:
    """A joined draft reduced to one event time; occasionally unchanged."""
    times = {stream.time for stream in draft.streams.values()}
    if chance(draw, 6) or len(times & set(draft.columns)) < 2:
        return draft
    kept = draw(st.sampled_from(sorted(times & set(draft.columns))))
    names = [name for name in draft.columns if name == kept or name not in times]
    left = selected(draft, names)
    marked = any(stream.time == kept and stream.delay_us is not None for stream in draft.streams.values())
    return left.then({"select": names}, event_time=kept if marked else None) if kept != left.event_time else left


_JOINS_IN_SQL = {
    "inner": "JOIN",
    "leftOuter": "LEFT OUTER JOIN",
    "rightOuter": "RIGHT OUTER JOIN",
    "fullOuter": "FULL OUTER JOIN",
    "leftSemi": "LEFT SEMI JOIN",
}


def _over_two_views(draw: st.DrawFn, scale: Scale) -> Draft:
    left, right = _sources(draw, 2, scale, plain=True)
    both = (united(left, right) if chance(draw, 2) else None) or joined(draw, left, right)
    *before, last = both.operations
    if "union" in last:
        statement = "SELECT * FROM view UNION ALL SELECT * FROM other"
    else:
        statement = f"SELECT * FROM view {_JOINS_IN_SQL[last['how']]} other ON {last['on']}"
    views = {"other": list(right.operations)}
    return replace(both, operations=(*before, {"sql": statement, "as": "view", "views": views}))


def _first_rows(draw: st.DrawFn, scale: Scale) -> Draft:
    """A limit of a stream, or of a sorted result in complete mode."""
    draft = _source(draw, 0, scale, plain=True)
    rows = draw(st.integers(1, 3))
    if chance(draw, 2):
        return draft.then({"limit": rows})
    result = windowed(draw, draft)
    orders = [f"{name} {draw(st.sampled_from(('ASC', 'DESC')))}" for name in result.columns]
    return result.then({"orderBy": orders}, modes=frozenset({"complete"})).then({"limit": rows})


def _sql(draw: st.DrawFn, scale: Scale) -> Draft:
    if chance(draw, 4):
        return _over_two_views(draw, scale)
    if chance(draw, 4):
        return _first_rows(draw, scale)
    draft = _source(draw, 0, scale, plain=True)
    time = time_of(draft) or next(iter(draft.columns))
    strings = draft.of_kind("string") or [time]
    expression, size = window_of(draw, time, draft)
    statement, columns = draw(
        st.sampled_from(
            (
                (f"SELECT DISTINCT {strings[0]} FROM view", {strings[0]: "string"}),
                (f"SELECT DISTINCT {strings[0]}, {time} FROM view", {strings[0]: "string", time: "timestamp"}),
                ("SELECT DISTINCT * FROM view", draft.columns),
                (
                    f"SELECT {expression} AS window, count(*) AS n FROM view GROUP BY {expression}",
                    {"window": "window", "n": "bigint"},
                ),
                (
                    f"SELECT {strings[0]}, count(*) AS n FROM view GROUP BY {strings[0]}",
                    {strings[0]: "string", "n": "bigint"},
                ),
                ("SELECT * FROM view LIMIT 2", draft.columns),
            )
        )
    )
    over = "window" if "window(" in statement else draft.event_time if draft.event_time in columns else None
    return draft.then(
        {"sql": statement, "as": "view"},
        columns=columns,
        event_time=over,
        modes=draft.modes
        if "LIMIT" in statement
        else frozenset({"append", "update", "complete"} if over else {"update", "complete"}),
        spans=(*draft.spans, size),
    )


def _state_functions(draw: st.DrawFn, scale: Scale) -> Draft:
    draft = _source(draw, 0, scale, plain=True)
    keys = draft.of_kind("string")
    mode = draw(st.sampled_from(("append", "append", "update")))
    functions = (("count_until_watermark", "EventTimeTimeout"), ("count_rows", "NoTimeout"))
    function, timeout = draw(st.sampled_from(functions))
    pandas = {"by": keys, "with": function, "outputMode": mode, "timeout": timeout}
    processors = (("count_until_watermark", "EventTime"), ("number_rows", "EventTime"), ("number_rows", "None"))
    processor, time_mode = draw(st.sampled_from(processors))
    stateful: dict[str, Any] = {"by": keys, "with": processor, "outputMode": mode, "timeMode": time_mode}
    if draw(st.booleans()):
        return draft.then({"transformWithState": stateful}, columns={"key": "string"}, event_time=None, conf=ROCKSDB)
    return draft.then({"applyInPandasWithState": pandas}, columns={"key": "string"}, event_time=None)


def _any(draw: st.DrawFn, scale: Scale) -> Draft:
    return draw(st.sampled_from((_windows, _sessions, _deduplication, _joins, _chains, _unions, _sql)))(draw, scale)


BUILDERS: Mapping[str, Callable[[st.DrawFn, Scale], Draft]] = {
    "windows": _windows,
    "sessions": _sessions,
    "deduplication": _deduplication,
    "joins": _joins,
    "chains": _chains,
    "unions": _unions,
    "event-times": _event_times,
    "sql": _sql,
    "recovery": _any,
    "kills": _any,
    "state-functions": _state_functions,
}


@st.composite
def drafts(draw: st.DrawFn, family: str) -> Draft:
    return BUILDERS[family](draw, draw(scales()))


def pipelines(families: Sequence[str] = ()) -> st.SearchStrategy[list[Json]]:
    """Pipelines, structured like the YAML, over the streams of ``schemas``.

    Args:
        families: of ``FAMILIES``; empty means the default ones.

    Raises:
        WrongUsage: one of the names is unknown.
    """
    return st.sampled_from(chosen(families)).flatmap(drafts).map(lambda draft: list(draft.operations))
