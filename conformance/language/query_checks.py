"""Mistakes in queries that need no engine: durations, syntax, functions and columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import TypeAlias, assert_never

from conformance.core import operations
from conformance.core.operations import Operation, Pipeline, TransformWithState, read_pipeline, sort_order
from conformance.core.roles import Role
from conformance.core.spark_types import DataType, Schema
from conformance.core.wording import nearest, shortened, unknown
from conformance.language import source as nodes
from conformance.language import sql_expression
from conformance.language.permission import HIDDEN_COLUMN, refusals, sql_texts
from conformance.language.pipelines import kind_of, operations_in, parts_of, queries_of
from conformance.language.source import Items, Node, ProblemReport, Scalar, child, entries_of, items_of, text_of
from conformance.language.sql_expression import QueryColumn, Token, made_of, readable, split
from conformance.language.streams import schemas

Columns: TypeAlias = tuple[QueryColumn, ...]


@dataclass(frozen=True)
class _Frame:
    """What a pipeline has made so far."""

    columns: Columns | None
    """The columns in order; None if they are unknown."""
    qualifiers: frozenset[str] = frozenset()
    below: frozenset[str] = frozenset()
    """The names that it had before; a filter may still read them."""

    @property
    def types(self) -> Mapping[str, DataType | None]:
        """Name in lower case → type, of several columns with the same name that of the first."""
        return {column.name.lower(): column.type for column in reversed(self.columns or ()) if column.name}

    @property
    def names(self) -> list[str]:
        """The names of the columns as they are written, each once."""
        return list(dict.fromkeys(column.name for column in self.columns or () if column.name))

    def making(self, columns: Columns | None) -> _Frame:
        return _Frame(columns, self.qualifiers, self.below | frozenset(self.types))

    def beside(self, other: _Frame) -> _Frame:
        columns = _together(self.columns, other.columns)
        return _Frame(columns, self.qualifiers | other.qualifiers, self.below | other.below)


def _together(*made: Columns | None) -> Columns | None:
    """Return the columns of all parts; None if those of a part are unknown."""
    known = [columns for columns in made if columns is not None]
    return tuple(chain.from_iterable(known)) if len(known) == len(made) else None


@dataclass(frozen=True)
class _Follower:
    """Follows the columns of a query from its streams to its result, and reports names that do not exist."""

    streams: Mapping[str, Schema]
    report: ProblemReport
    silent: bool
    """Whether to report nothing, since the case expects the query to be refused."""

    def pipeline(self, node: Node | None, pipeline: Pipeline) -> _Frame:
        frame = _Frame(None)
        for written, operation in zip(items_of(node), pipeline.operations, strict=True):
            frame = self._operation(operation, {part.name: below for part, below in parts_of(written)}, frame)
        return frame

    def _operation(self, operation: Operation, parts: Mapping[str, Node], frame: _Frame) -> _Frame:
        match operation:
            case operations.From(stream=stream):
                schema = self.streams.get(stream)
                if schema is None or len(schema.fields) > _MOST_COLUMNS:
                    return _Frame(None)
                return _Frame(tuple(QueryColumn(field.name, field.type) for field in schema.fields))
            case operations.Alias(alias=alias):
                return replace(frame, qualifiers=frame.qualifiers | {alias.lower()})
            case operations.Select():
                return frame.making(self._made(items_of(parts["columns"]), frame))
            case operations.WithColumn(column=name):
                return self._with_column(name, parts["expression"], frame)
            case operations.Drop(columns=columns):
                gone = {name.lower() for name in columns}
                known = frame.columns
                return frame.making(known and tuple(column for column in known if column.name.lower() not in gone))
            case operations.GroupBy():
                made = (self._made(items_of(parts[name]), frame, with_aliases=False) for name in ("by", "agg"))
                return frame.making(_together(*made))
            case operations.Join(other=pipeline, how=how):
                joined = frame.beside(self.pipeline(parts["other"], pipeline))
                self._check(parts["on"], joined)
                return replace(joined, columns=frame.columns) if how == "leftSemi" else joined
            case operations.Union(other=pipeline):
                ours, theirs = frame.columns, self.pipeline(parts["other"], pipeline).columns
                if ours is None or theirs is None or len(ours) != len(theirs):
                    return replace(frame, columns=None)
                # Names are those of the first, types where both agree.
                pairs = zip(ours, theirs, strict=True)
                both = (left if left.type == right.type else QueryColumn(left.name) for left, right in pairs)
                return replace(frame, columns=tuple(both))
            case operations.Sql(as_=name):
                nested = zip(entries_of(parts.get("views")), operation.views.items(), strict=True)
                views = {view.lower(): self.pipeline(entry.value, pipeline) for entry, (view, pipeline) in nested}
                views[name.lower()] = frame
                return _Frame(self._statement(parts["statement"], views))
            case operations.PythonState():
                self._names(items_of(parts["by"]), frame)
                return _Frame(None)
            case operations.Call():
                return _Frame(None)
            case operations.KeepsColumns():
                self._read(operation, parts, frame)
                return frame
            case _:
                assert_never(operation)

    def _read(self, operation: operations.KeepsColumns, parts: Mapping[str, Node], frame: _Frame) -> None:
        """Check the columns and expressions of an operation that makes none."""
        for part, _ in operation.values():
            node = parts.get(part.name)
            match part.role:
                case Role.COLUMN:
                    self._names(nodes.each_of(node), frame)
                case Role.COLUMNS:
                    self._names(items_of(node), frame)
                case Role.EXPRESSION:
                    self._check(node, frame, frame.below)
                case Role.SORT_ORDERS:
                    for item in items_of(node):
                        self._check(item, frame, frame.below, text=sort_order(text_of(item) or "").expression)

    def _with_column(self, name: str, expression: Node, frame: _Frame) -> _Frame:
        self._check(expression, frame)
        made = made_of(readable(text_of(expression) or ""), frame.types)
        if frame.columns is None or made is None or len(made) != 1:
            return frame.making(None)
        added = QueryColumn(name, made[0].type)
        if name.lower() not in frame.types:
            return frame.making((*frame.columns, added))
        same = (column.name.lower() == name.lower() for column in frame.columns)
        return frame.making(tuple(added if it else column for it, column in zip(same, frame.columns, strict=True)))

    def _made(self, items: Iterable[Node], frame: _Frame, *, with_aliases: bool = True) -> Columns | None:
        """Return the columns that a list of expressions makes; since 3.4 one may read the aliases of those before it."""
        made: list[Columns | None] = []
        aliases: set[str] | None = set()
        types = frame.types
        for item in items:
            text = text_of(item) or ""
            self._check(item, frame, (aliases if with_aliases else None) or ())
            columns = frame.columns if text.strip() == "*" else made_of(readable(text), types)
            made.append(columns)
            # After an expression whose columns are not known, no alias is known.
            if columns is None:
                aliases = None
            elif aliases is not None:
                aliases.update(column.name.lower() for column in columns)
        return _together(*made)

    def _names(self, items: Iterable[Node], frame: _Frame) -> None:
        """Check columns that are given by name, where an expression is not allowed."""
        for item in items:
            if text_of(item) and len(readable(text_of(item) or "")) % 2 == 1:
                self._check(item, frame)

    def _check(self, node: Node | None, frame: _Frame, also: Iterable[str] = (), text: str | None = None) -> None:
        """Check an expression; ``text``: the expression, if it is only the beginning of the node's text."""
        if isinstance(node, Scalar) and isinstance(node.value, str) and self.report.is_valid(node):
            for reference in sql_expression.references(node.value if text is None else text):
                self._resolve(reference, frame, node.at(reference.offset), also)

    def _resolve(
        self, reference: sql_expression.Reference, frame: _Frame, place: nodes.SourceLocation, also: Iterable[str]
    ) -> None:
        # Spark names what has no name of its own, and a cast after its column.
        if self.silent or frame.columns is None or not all(column.name for column in frame.columns):
            return
        known = frame.types
        first, *rest = reference.parts
        if HIDDEN_COLUMN in reference.parts[:2]:
            return
        if first in known:
            struct = known[first]
            fields = [field.name for field in struct.fields] if struct else []
            if rest and fields and rest[0] not in {name.lower() for name in fields}:
                self.report.add(place, unknown("field", rest[0], fields, where=f" of {first!r}"))
        elif rest and first in frame.qualifiers and first not in also:
            if rest[0] not in known:
                self.report.add(place, unknown("column", rest[0], frame.names, where=f" of {first!r}"))
        elif first not in also:
            self.report.add(place, unknown("column", str(reference), frame.names))

    def _statement(self, node: Node | None, views: Mapping[str, _Frame]) -> Columns | None:
        """Return the columns of one SELECT … FROM a view, or views that are joined; None of any other statement."""
        tokens = readable(text_of(node) or "")
        if not isinstance(node, Scalar) or not _is_simple(tokens):
            return None
        begin = next(index for index, token in enumerate(tokens) if token.keyword == "from") + 1
        end = next((index for index in range(begin, len(tokens)) if tokens[index].keyword in _ENDS), len(tokens))
        frame = _relations(tokens[begin:end], views)
        if frame is None or frame.columns is None or not self.report.is_valid(node):
            return None
        # A window of GROUP BY is a column of the SELECT.
        windows = {token.name for token in tokens[:-1] if token.name in ("window", "session_window")}
        types = {**dict.fromkeys(windows, sql_expression.WINDOW), **frame.types}
        selected = tokens[2 if tokens[1].keyword in ("distinct", "all") else 1 : begin - 1]
        items = [*split(selected)]
        stars = [[token.text for token in item] == ["*"] for item in items]
        parts = zip(items, stars, strict=True)
        made = _together(*(frame.columns if star else made_of(item, types) for item, star in parts))
        if made is None:
            return None
        aliases = windows | {item[-1].name for item in items if len(item) > 1 and not item[-2].is_mark(".")} - {""}
        aliases |= {after.name for token, after in pairwise(tokens) if token.keyword == "as" and after.name}
        inside = replace(frame, qualifiers=frame.qualifiers | aliases)
        for part in (selected, *_conditions(tokens[begin:end]), tokens[end:]):
            for item in split(part):
                for reference in sql_expression.references_in(item):
                    self._resolve(reference, inside, node.at(reference.offset), aliases)
        return made


_ENDS = ("where", "group", "order", "having", "limit")
"""What may follow the relations of a SELECT."""
_NOT_FOLLOWED = sql_expression.words(
    "union except intersect watermark lateral over semi anti natural using cross pivot unpivot tablesample"
)
"""Words of statements whose columns are not followed."""


def _is_simple(tokens: tuple[Token, ...]) -> bool:
    """Return whether a statement has a single SELECT, with relations that may be joined ON a condition."""
    keywords = [token.keyword for token in tokens]
    if keywords[:1] != ["select"] or keywords.count("select") > 1 or keywords.count("from") != 1:
        return False
    return not _NOT_FOLLOWED & set(keywords) and not any(token.text in ("->", "=>") for token in tokens)


def _relations(tokens: tuple[Token, ...], views: Mapping[str, _Frame]) -> _Frame | None:
    """Return the relations behind FROM, together; None if any is not a view, or they are not read here."""
    joined = _Frame(())
    for relation in split(tokens, "join"):
        names = [token for token in next(split(relation, "on")) if token.keyword not in (*_SIDES, "as")]
        if not 1 <= len(names) <= 2 or not all(token.name for token in names) or names[0].name not in views:
            return None
        joined = joined.beside(replace(views[names[0].name], qualifiers=frozenset({names[-1].name})))
    return joined


_SIDES = ("inner", "left", "right", "full", "outer")


def _conditions(tokens: tuple[Token, ...]) -> Iterable[tuple[Token, ...]]:
    """Yield the conditions of the joins behind FROM, each without the side of the next join."""
    for relation in split(tokens, "join"):
        for condition in [*split(relation, "on")][1:]:
            end = len(condition)
            while end and condition[end - 1].keyword in _SIDES:
                end -= 1
            yield condition[:end]


_PLAIN = re.compile(r"\s*(interval\s+)?[\w.+-]+(\s+[\w.+-]+)*\s*", re.IGNORECASE)
"""A duration of numbers and units, without quotes and colons."""
_MOST_COLUMNS = 1_000
"""Of a stream whose columns are followed: every operation looks at all of them."""
_LONGEST = 200
"""Characters of a duration that is checked."""


def check_queries(case: Node, report: ProblemReport) -> list[Columns | None]:
    """Report mistakes in the query and in those of later restarts; for each, the columns of its result, None if unknown."""
    streams = schemas(child(case, "streams"), report)
    queries = [*queries_of(case)]
    calls_code = any(child(operation, "call") is not None for query, _ in queries for operation in operations_in(query))
    results: list[Columns | None] = []
    for query, step in queries:
        if not isinstance(query, Items) or not report.is_valid(query):
            results.append(None)
            continue
        refused = child(step, "expect", "error") is not None
        for operation in operations_in(query):
            kind = kind_of(operation)
            if kind is operations.Sql:
                _check_views(operation, report)
            elif kind is TransformWithState:
                _check_state(operation, report)
            for _, node in () if refused else parts_of(operation, Role.DELAY):
                if isinstance(node, Scalar):
                    _check_duration(str(node.value), node, 0, report, negative=False)
        if not refused:
            names = {field.name.lower() for schema in streams.values() for field in schema.fields}
            _check_texts(query, report, names, calls_code=calls_code)
        results.append(_Follower(streams, report, refused).pipeline(query, read_pipeline(query.plain())).columns)
    return results


def _check_views(operation: Node, report: ProblemReport) -> None:
    """Report views of a SQL query with the same name, and those that it does not read."""
    read = {token.name for token in readable(text_of(operation, "sql") or "")}
    named = {(text_of(operation, "as") or "").lower(): "`as`"}
    for entry in entries_of(operation, "views"):
        name = str(entry.key.value)
        if name.lower() in named:
            report.add(entry.key, f"duplicate view {name!r}: {named[name.lower()]} has the same name")
        elif read and name.lower() not in read:
            report.add(entry.key, f"unused view {name!r}: the SQL query does not read it")
        named.setdefault(name.lower(), f"{name!r} of `views`")


def _check_state(operation: Node, report: ProblemReport) -> None:
    processor = child(operation, TransformWithState.name)
    if not (text_of(processor, "with") or "").startswith("number_rows"):
        report.forbid(processor, "state", "`state` requires a processor that numbers rows: `with: number_rows`")


def _check_texts(query: Node | None, report: ProblemReport, names: Collection[str], *, calls_code: bool) -> None:
    for sql in sql_texts(query):
        # What needs permission may be of a kind that is not known here.
        unknown_kind = sql.statement and any(refusals(sql.text, sql.views, statement=True))
        text = sort_order(sql.text).expression if sql.role is Role.SORT_ORDERS else sql.text
        alias = sql.role is Role.EXPRESSIONS
        known = {*names, *(view.lower() for view in sql.views)}
        mistakes = [
            *sql_expression.syntax_mistakes(text, alias=alias, names=known, statement=sql.statement, part=unknown_kind)
        ]
        # Code of the case's author may register functions.
        mistakes += [] if calls_code else sql_expression.unknown_functions(sql.text)
        for mistake in mistakes:
            place = sql.place.at(mistake.offset)
            if mistake.certain:
                report.add(place, mistake.message)
            else:
                reason = f"not checked: {shortened(sql.text, _LONGEST)!r}: {mistake.message}"
                report.not_checked.add((place.line, place.column, reason))
            report.mark_invalid(sql.place)
        for offset, duration in _window_durations(sql.text):
            _check_duration(duration, sql.place, offset, report, negative=True)


def _window_durations(text: str) -> Iterator[tuple[int, str]]:
    """Yield the durations in calls of ``window`` and ``session_window``, with the offsets of their text."""
    tokens = readable(text)
    for index, token in enumerate(tokens[:-1]):
        if token.name not in ("window", "session_window") or not tokens[index + 1].is_mark("("):
            continue
        for at in range(index + 2, len(tokens) - 1):
            if tokens[at].is_mark("(", ")"):
                break
            if tokens[at].kind == "text" and tokens[at - 1].is_mark(",") and tokens[at + 1].text in (",", ")"):
                yield tokens[at].offset + 1, tokens[at].text[1:-1]


def _check_duration(text: str, place: Scalar, offset: int, report: ProblemReport, *, negative: bool) -> None:
    """Report a duration that is certainly none; ``negative``: whether a duration below zero is left to Spark."""
    if len(text) > _LONGEST:
        return
    from conformance.core.intervals import NotAnInterval, parse_interval  # slow to import, for commands without cases

    try:
        if parse_interval(text).delay_us < 0 and not negative:
            message = f"the delay {text!r} is negative: a watermark cannot be ahead of the event time"
            report.add(place.at(offset), message)
        return
    except NotAnInterval:
        if not _PLAIN.fullmatch(text):
            return
    for word in re.finditer(r"[A-Za-z]+", text):
        if word[0].lower() not in sql_expression.UNITS | {"interval", "to"}:
            near = nearest(word[0], sql_expression.UNITS)
            hint = f"did you mean {near!r}?" if near else "write a number and a unit, like '10 minutes'"
            report.add(place.at(offset + word.start()), f"unknown unit {word[0]!r} in {text!r}: {hint}")
            return
    if text.strip() and not re.search(r"\d\s*[A-Za-z]", text):
        report.add(place.at(offset), f"{text!r} is not a duration: write a number and a unit, like '10 minutes'")
