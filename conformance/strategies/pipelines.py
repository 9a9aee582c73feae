"""Pipelines by family: every operation of the case language, alone and combined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from conformance.strategies import operations as of
from conformance.strategies.delays import Length, Scale, delay_lengths, scales
from conformance.strategies.draft import Draft, Json
from conformance.strategies.families import chosen
from conformance.strategies.schemas import NAMES, names_of, sources

ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
"""Required by ``transformWithState``."""


def _sources(draw: st.DrawFn, count: int, scale: Scale, *, plain: bool = False) -> list[Draft]:
    """Several streams, often with the same delay, since plans may merge identical inputs."""
    delay = draw(delay_lengths(scale)) if of.chance(draw, 2) else None
    return [_source(draw, number, scale, plain=plain, delay=delay) for number in range(count)]


def _source(draw: st.DrawFn, number: int, scale: Scale, *, plain: bool = False, delay: Length | None = None) -> Draft:
    """A stream, usually with a watermark, sometimes with stateless operations before or after it."""
    draft: Draft = draw(sources(NAMES[number], scale))
    if not plain and of.chance(draw, 8):
        draft = of.filtered(draw, draft)
    if not of.chance(draw, 12):
        draft = of.watermarked(draw, draft, delay)
    if not plain and of.chance(draw, 4):
        draft = of.stateless(draw, draft)
    return draft


def _finished(draw: st.DrawFn, draft: Draft) -> Draft:
    """Sometimes a final stateless operation, or a selection of columns, which makes plans prune the others."""
    if of.chance(draw, 4):
        return of.stateless(draw, draft)
    if of.chance(draw, 4):
        some = [name for name in draft.columns if of.chance(draw, 2)] or list(draft.columns)[:1]
        return of.selected(draft, some)
    return draft


def _windows(draw: st.DrawFn, scale: Scale) -> Draft:
    draft = _source(draw, 0, scale)
    if of.chance(draw, 6):
        draft = _with_constant(draft, "tag", "'x'")
    return _finished(draw, of.windowed(draw, draft))


def _sessions(draw: st.DrawFn, scale: Scale) -> Draft:
    return _finished(draw, of.in_sessions(draw, _source(draw, 0, scale)))


def _deduplication(draw: st.DrawFn, scale: Scale) -> Draft:
    draft = of.deduplicated(draw, _source(draw, 0, scale))
    keys = draft.operations[-1].get("dropDuplicates")
    if keys and of.chance(draw, 4):
        return of.selected(draft, keys)
    return _finished(draw, draft)


def _joins(draw: st.DrawFn, scale: Scale) -> Draft:
    sides = _sources(draw, 2, scale)
    if of.chance(draw, 6):
        sides = [_with_constant(side, name, f"'{name}'") for side, name in zip(sides, ("tag", "side"), strict=True)]
    return _finished(draw, of.joined(draw, *sides))


def _unions(draw: st.DrawFn, scale: Scale) -> Draft:
    branches = _sources(draw, 2, scale, plain=True)
    if of.chance(draw, 2):
        branches = [
            _with_constant(branch, "side", value) for branch, value in zip(branches, ("'l'", "'r'"), strict=True)
        ]
    columns = [
        [time, key, *(name for name in branch.columns if name == "side")]
        for branch, (time, key, _) in zip(branches, map(names_of, NAMES[:2]), strict=True)
    ]
    both = of.united(*branches) or of.united(
        *(of.selected(branch, names) for branch, names in zip(branches, columns, strict=True))
    )
    assert both is not None, "every stream has a time and a key"
    above: Callable[[st.DrawFn, Draft], Draft] = draw(
        st.sampled_from((of.windowed, of.windowed, of.deduplicated, of.in_sessions, of.stateless))
    )
    return _finished(draw, above(draw, both))


def _with_constant(branch: Draft, name: str, value: str) -> Draft:
    """The branch with a constant column."""
    return branch.with_columns({"withColumn": [name, value]}, {**branch.columns, name: "string"})


def _event_times(draw: st.DrawFn, scale: Scale) -> Draft:
    if of.chance(draw, 4):
        return _watermark_on_a_window(draw, scale)
    draft = _source(draw, 0, scale)
    for _ in range(draw(st.integers(0, 2))):
        draft = of.stateless(draw, draft)
    return draft


def _watermark_on_a_window(draw: st.DrawFn, scale: Scale) -> Draft:
    """A watermark on a window column, which Spark allows."""
    plain: Draft = draw(sources(NAMES[0], scale))
    (stream,) = plain.streams.values()
    expression, size = of.window_of(draw, stream.time, plain)
    draft = plain.then(
        {"select": [expression, *(name for name in plain.columns if name != stream.time)]},
        columns={"window": "window", **{name: kind for name, kind in plain.columns.items() if name != stream.time}},
        spans=(size,),
    )
    delay = draw(delay_lengths(scale))
    streams = {name: replace(one, delay_us=delay.us) for name, one in plain.streams.items()}
    marked = draft.then({"withWatermark": ["window", delay.text]}, event_time="window", streams=streams)
    return of.windowed(draw, marked) if of.chance(draw, 3) else marked


def _chains(draw: st.DrawFn, scale: Scale) -> Draft:
    form = draw(
        st.sampled_from(
            (
                "window of window",
                "window time",
                "deduplicated first",
                "above a join",
                "two joins",
                "two aggregations",
                "above",
            )
        )
    )
    match form:
        case "window of window" | "window time":
            below = of.windowed(draw, _source(draw, 0, scale, plain=True))
            if below.event_time != "window":
                return below
            if form == "window time":
                below = below.with_columns(
                    {"select": ["window_time(window) AS at", *(name for name in below.columns if name != "window")]},
                    {"at": "timestamp", **{name: kind for name, kind in below.columns.items() if name != "window"}},
                    event_time="at",
                )
            if form == "window of window" and of.chance(draw, 3):
                return _window_of_window_in_sql(draw, below)
            return _finished(draw, of.windowed(draw, _renamed(below)))
        case "deduplicated first":
            draft = of.deduplicated(draw, _source(draw, 0, scale, plain=True))
            return _finished(draw, of.windowed(draw, draft) if of.chance(draw, 2) else of.in_sessions(draw, draft))
        case "above a join":
            both = _one_time(draw, of.joined(draw, *_sources(draw, 2, scale, plain=True)))
            above = draw(st.sampled_from((of.windowed, of.deduplicated, of.in_sessions)))
            return _finished(draw, above(draw, both))
        case "two joins":
            one, two, three = _sources(draw, 3, scale, plain=True)
            return of.joined(draw, _one_time(draw, of.joined(draw, one, two)), three)
        case "two aggregations":
            sides = [of.windowed(draw, source) for source in _sources(draw, 2, scale, plain=True)]
            return of.joined(draw, _renamed(sides[0], "left_"), _renamed(sides[1], "right_"))
        case _:
            below = of.windowed(draw, _source(draw, 0, scale, plain=True))
            return _finished(draw, of.deduplicated(draw, below))


def _window_of_window_in_sql(draw: st.DrawFn, draft: Draft) -> Draft:
    """Nested windows in one SQL statement, with a filter."""
    expression, size = of.window_of(draw, "window", draft)
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
    if of.chance(draw, 6) or len(times & set(draft.columns)) < 2:
        return draft
    kept = draw(st.sampled_from(sorted(times & set(draft.columns))))
    names = [name for name in draft.columns if name == kept or name not in times]
    left = of.selected(draft, names)
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
    """A join or a union of two streams in SQL."""
    left, right = _sources(draw, 2, scale, plain=True)
    both = (of.united(left, right) if of.chance(draw, 2) else None) or of.joined(draw, left, right)
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
    if of.chance(draw, 2):
        return draft.then({"limit": rows})
    result = of.windowed(draw, draft)
    orders = [f"{name} {draw(st.sampled_from(('ASC', 'DESC')))}" for name in result.columns]
    return result.then({"orderBy": orders}, modes=frozenset({"complete"})).then({"limit": rows})


def _sql(draw: st.DrawFn, scale: Scale) -> Draft:
    if of.chance(draw, 4):
        return _over_two_views(draw, scale)
    if of.chance(draw, 4):
        return _first_rows(draw, scale)
    draft = _source(draw, 0, scale, plain=True)
    time = of.time_of(draft) or next(iter(draft.columns))
    strings = draft.of_kind("string") or [time]
    expression, size = of.window_of(draw, time, draft)
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
    function, timeout = draw(
        st.sampled_from((("count_until_watermark", "EventTimeTimeout"), ("count_rows", "NoTimeout")))
    )
    pandas = {"by": keys, "with": function, "outputMode": mode, "timeout": timeout}
    processor, time_mode = draw(
        st.sampled_from((("count_until_watermark", "EventTime"), ("number_rows", "EventTime"), ("number_rows", "None")))
    )
    stateful: dict[str, Any] = {"by": keys, "with": processor, "outputMode": mode, "timeMode": time_mode}
    if draw(st.booleans()):
        return draft.then({"transformWithState": stateful}, columns={"key": "string"}, event_time=None, conf=ROCKSDB)
    return draft.then({"applyInPandasWithState": pandas}, columns={"key": "string"}, event_time=None)


def _any(draw: st.DrawFn, scale: Scale) -> Draft:
    build = draw(st.sampled_from((_windows, _sessions, _deduplication, _joins, _chains, _unions, _sql)))
    return build(draw, scale)


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
"""Family → function that draws its pipelines."""


@st.composite
def drafts(draw: st.DrawFn, family: str) -> Draft:
    """Drafts of a family."""
    return BUILDERS[family](draw, draw(scales()))


def pipelines(families: Sequence[str] = ()) -> st.SearchStrategy[list[Json]]:
    """Pipelines, structured like the YAML, over the streams of ``schemas``.

    Args:
        families: of ``FAMILIES``; empty means the default ones.

    Raises:
        NoSuchFamily: one of the names is unknown.
    """
    return st.sampled_from(chosen(families)).flatmap(drafts).map(lambda draft: list(draft.operations))
