"""Mistakes in queries that need no engine: durations, syntax, functions and columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from conformance.core.case import sort_order
from conformance.language.node import Node, Scalar, child, entries_of, inside, items_of, text_of
from conformance.language.permission import refusals, sql_texts
from conformance.language.pipelines import nested_pipelines
from conformance.language.problem import Report, nearest
from conformance.language.query_columns import Columns, columns_of
from conformance.language.sql_expression import UNITS, readable, syntax_mistakes, unknown_functions
from conformance.language.streams import schemas

_PLAIN = re.compile(r"\s*(interval\s+)?[\w.+-]+(\s+[\w.+-]+)*\s*", re.IGNORECASE)
"""A duration of numbers and units, without quotes and colons."""
_LONGEST = 200
"""Characters of a duration that is checked."""
_WITH_ALIAS = ("select", "groupBy", "agg", "sql")


def check_queries(case: Node, report: Report) -> Mapping[int, Columns | None]:
    """Report mistakes in the query and in those of later restarts.

    Returns:
        Number of a query of the case, from 0 → the columns of its result, None if unknown.
    """
    streams = schemas(child(case, "streams"), report)
    steps = items_of(child(case, "steps"))
    found: dict[int, Columns | None] = {}
    queries: list[tuple[Node | None, Node | None]] = [(child(case, "query"), steps[0] if steps else None)]
    for one in steps:
        changed = child(child(child(one, "restart"), "change"), "query")
        if changed is not None:
            queries.append((changed, one))
    calls_code = any(_calls_code(query) for query, _ in queries)
    for number, (query, step) in enumerate(queries):
        refused = child(child(step, "expect"), "error") is not None
        if query is None or not report.is_valid(query):
            found[number] = None
            continue
        _check_views(query, report)
        if not refused:
            _check_texts(query, report, calls_code=calls_code)
            for duration in _durations(query):
                _check_duration(duration, report)
        found[number] = columns_of(query, streams, report, silent=refused)
    return found


def _check_views(query: Node, report: Report) -> None:
    """The views of one SQL query have different names, and the query reads each of ``views``."""
    for operation in items_of(query):
        for nested in nested_pipelines(operation):
            _check_views(nested, report)
        text, seen = child(operation, "sql"), {(text_of(child(operation, "as")) or "").lower(): "`as`"}
        for entry in entries_of(child(operation, "views")):
            name = str(entry.key.value)
            tokens = readable(text_of(text) or "")
            if name.lower() in seen:
                report.add(entry.key, f"duplicate view {name!r}: {seen[name.lower()]} has the same name")
            elif tokens and name.lower() not in {token.name for token in tokens}:
                report.add(entry.key, f"unused view {name!r}: the SQL query does not read it")
            seen.setdefault(name.lower(), f"{name!r} of `views`")


def _check_texts(query: Node, report: Report, *, calls_code: bool) -> None:
    for one in sql_texts(query):
        place = inside(query, one.path)
        if not isinstance(place, Scalar):
            continue
        key = next(part for part in reversed(one.path) if isinstance(part, str))
        # What needs permission may be of a kind that is not known here.
        unknown_kind = one.statement and any(refusals(one.text, one.views, statement=True))
        text = sort_order(one.text).expression if key == "orderBy" else one.text
        mistakes = list(syntax_mistakes(text, alias=key in _WITH_ALIAS, statement=one.statement, part=unknown_kind))
        # Code of the case's author may register functions.
        mistakes += [] if calls_code else unknown_functions(one.text)
        for mistake in mistakes:
            report.add(place.at(mistake.offset), mistake.message)
            report.mark_invalid(place)
        for offset, text in _window_durations(one.text):
            _check_duration_text(text, place, offset, report, negative=True)


def _window_durations(text: str) -> Iterator[tuple[int, str]]:
    """The durations in calls of ``window`` and ``session_window``, with the offsets of their text."""
    tokens = readable(text)
    for index, token in enumerate(tokens[:-1]):
        if token.name not in ("window", "session_window") or not tokens[index + 1].is_mark("("):
            continue
        for at in range(index + 2, len(tokens) - 1):
            if tokens[at].is_mark("(") or tokens[at].is_mark(")"):
                break
            if tokens[at].kind == "text" and tokens[at - 1].is_mark(",") and tokens[at + 1].text in (",", ")"):
                yield tokens[at].offset + 1, tokens[at].text[1:-1]


def _durations(query: Node) -> Iterator[Node]:
    for operation in items_of(query):
        marked = items_of(child(operation, "withWatermark"))
        yield from marked[1:2]
        for nested in nested_pipelines(operation):
            yield from _durations(nested)


def _check_duration(node: Node, report: Report) -> None:
    text = text_of(node)
    if text is not None and isinstance(node, Scalar):
        _check_duration_text(text, node, 0, report, negative=False)


def _check_duration_text(text: str, place: Scalar, offset: int, report: Report, *, negative: bool) -> None:
    """Report a duration that is certainly none; ``negative``: whether one below zero is left to Spark."""
    if len(text) > _LONGEST:
        return
    from conformance.core.intervals import (  # slow to import, for commands that read no case
        NotAnInterval,
        parse_interval,
    )

    try:
        if parse_interval(text).delay_us < 0 and not negative:
            report.add(
                place.at(offset), f"the delay {text!r} is negative: a watermark cannot be ahead of the event time"
            )
        return
    except NotAnInterval:
        if not _PLAIN.fullmatch(text):
            return
    for word in re.finditer(r"[A-Za-z]+", text):
        if word[0].lower() not in UNITS | {"interval", "to"}:
            near = nearest(word[0], UNITS)
            hint = f"did you mean {near!r}?" if near else "write a number and a unit, like '10 minutes'"
            report.add(place.at(offset + word.start()), f"unknown unit {word[0]!r} in {text!r}: {hint}")
            return
    if text.strip() and not re.search(r"\d\s*[A-Za-z]", text):
        report.add(place.at(offset), f"{text!r} is not a duration: write a number and a unit, like '10 minutes'")


def _calls_code(pipeline: Node | None) -> bool:
    return any(
        child(operation, "call") is not None or any(map(_calls_code, nested_pipelines(operation)))
        for operation in items_of(pipeline)
    )
