"""Reads the pipelines and the SQL of a query; the result is in ``conformance.query.reading``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never

from sqlglot import exp

from conformance.core import operations
from conformance.core.intervals import NotAnInterval, parse_interval
from conformance.core.operations import Called, Operation, Pipeline
from conformance.core.spark_types import Schema
from conformance.query import reading
from conformance.query.reading import JoinKind, Operator, QueryReading, QueryWindow, StreamColumn
from conformance.query.syntax import NotReadable, called, expression, statement, watermark_of, window_call, written

_JOINS: Mapping[str, JoinKind] = {
    "SEMI": "leftSemi",
    "ANTI": "leftAnti",
    "LEFT": "leftOuter",
    "RIGHT": "rightOuter",
    "FULL": "fullOuter",
}
"""The kind of a join in SQL, or else its side; any other is an inner join."""


_Origin: TypeAlias = tuple[StreamColumn, ...] | QueryWindow


@dataclass(frozen=True)
class _Rows:
    """The rows at a point of the query."""

    columns: Mapping[str, _Origin | None] = field(default_factory=dict)
    """Name in lower case → what the column is, None if that is not known, in order; of an operator that keeps state only those that
    are known."""
    stream: str | None = None
    """The stream that they are rows of; None if there are several, or an operator kept state."""
    is_stream: bool = True
    filtered: bool = False
    keys: Mapping[exp.Expr, QueryWindow] = field(default_factory=dict)
    """The windows that GROUP BY computed, for the list of the SELECT."""

    def without_times(self) -> _Rows:
        """Leave an operator that keeps state: its columns come when it emits them, not when their rows arrive."""
        windows = {name: origin for name, origin in self.columns.items() if isinstance(origin, QueryWindow)}
        return _Rows(windows, is_stream=self.is_stream)


class Reader:
    """Follows the rows of a query from its streams to its result, and notes the operators on the way."""

    def __init__(self, streams: Mapping[str, Schema]) -> None:
        self.streams = streams
        self.operators: list[Operator] = []
        self.functions: set[str] = set()
        self.unread: list[str] = []
        self.uses_sql = False

    def read(self, pipeline: Pipeline) -> QueryReading:
        self.pipeline(pipeline)
        unread = tuple(dict.fromkeys(self.unread))
        return QueryReading(tuple(self.operators), frozenset(self.functions), self.uses_sql, unread)

    def pipeline(self, pipeline: Pipeline) -> _Rows:
        rows = _Rows()
        for operation in pipeline.operations:
            rows = self._operation(operation, rows)
        return rows

    def _operation(self, operation: Operation, rows: _Rows) -> _Rows:
        match operation:
            case operations.From(stream=stream, source_name=name):
                return self._from(stream, name)
            case operations.WithWatermark(column=column, delay=delay):
                self._note(rows, reading.QueryWatermark(rows.stream, column, delay))
                return rows
            case operations.RowFilter():
                self._expressions(*operation.texts())
                return replace(rows, filtered=True)
            case operations.Select(columns=columns):
                return self._selected(rows, self._expressions(*columns))
            case operations.WithColumn(column=name, expression=text):
                added = {**rows.columns, name.lower(): None}
                for tree in self._expressions(text):
                    added[name.lower()] = self._column(rows, tree)
                return replace(rows, columns=added)
            case operations.Drop(columns=columns):
                gone = {name.lower() for name in columns}
                kept = {name: origin for name, origin in rows.columns.items() if name not in gone}
                return replace(rows, columns=kept)
            case operations.GroupBy(by=by, agg=agg):
                keys = self._expressions(*by)
                self._expressions(*agg)
                return self._aggregated(rows, keys, by)
            case operations.Join(other=pipeline, on=on, how=how):
                other = self.pipeline(pipeline)
                self._expressions(on)
                return self._joined(rows, other, how or "inner", on)
            case operations.Union(other=pipeline):
                return self._united(rows, self.pipeline(pipeline))
            case operations.Deduplication(columns=columns):
                self.operators.append(reading.QueryDeduplication(columns, operation.within_watermark, rows.is_stream))
                return rows.without_times()
            case operations.Limit():
                self._note(rows, reading.QueryLimit())
                return replace(rows, filtered=True)
            case operations.PythonState(with_=function):
                self._note(rows, reading.QueryStateFunction(operation.name, function))
                return _Rows()
            case operations.Sql(statement=text, as_=view):
                views = {view.lower(): rows}
                for name, nested in operation.views.items():
                    views[name.lower()] = self.pipeline(nested)
                return self._sql(text, views)
            case operations.Alias() | operations.OrderBy():
                return rows
            case operations.Call(called=called):
                for nested in operation.nested:
                    self.pipeline(nested)
                self.unread.append(_unread(called))
                return _Rows()
            case _:
                assert_never(operation)

    def _note(self, rows: _Rows, operator: Operator) -> None:
        """Note what happens to these rows; an operator on a table is none of the query."""
        if rows.is_stream:
            self.operators.append(operator)

    def _from(self, stream: str, name: str | None) -> _Rows:
        self.operators.append(reading.QuerySource(stream, name))
        schema = self.streams.get(stream)
        names = [field.name for field in schema.fields] if schema else []
        return _Rows({name.lower(): (StreamColumn(stream, name),) for name in names}, stream)

    def _expressions(self, *texts: str) -> list[exp.Expr]:
        """Return the trees of the expressions that can be read, whose calls are noted."""
        trees = []
        for text in texts:
            try:
                trees.append(expression(text))
                self.functions.update(called(trees[-1]))
            except NotReadable:
                self.unread.append(f"the expression {text}")
        return trees

    def _sql(self, text: str, views: Mapping[str, _Rows]) -> _Rows:
        self.uses_sql = True
        try:
            tree = statement(text)
        except NotReadable:
            self.unread.append(f"the statement {text}")
            return _Rows()
        self.functions.update(called(tree))
        return self._query(tree, views)

    def _query(self, tree: exp.Expr, views: Mapping[str, _Rows]) -> _Rows:
        views = {**views}
        clause = tree.args.get("with_") or tree.args.get("with")
        for common in clause.expressions if clause else ():
            views[common.alias.lower()] = self._query(common.this, views)
        match tree:
            case exp.Subquery():
                return self._query(tree.this, views)
            case exp.SetOperation():
                rows = self._set_operation(tree, views)
            case exp.Select():
                rows = self._select(tree, views)
            case _:
                self.unread.append(f"the statement {written(tree)}")
                return _Rows()
        if not tree.args.get("limit"):
            return rows
        self._note(rows, reading.QueryLimit())
        return replace(rows, filtered=True)

    def _set_operation(self, tree: exp.SetOperation, views: Mapping[str, _Rows]) -> _Rows:
        left, right = self._query(tree.this, views), self._query(tree.expression, views)
        if isinstance(tree, exp.Union):
            rows = self._united(left, right)
        else:
            rows = self._joined(left, right, "leftAnti" if isinstance(tree, exp.Except) else "leftSemi", "")
        return self._aggregated(rows, [], ()) if tree.args.get("distinct") else rows

    def _select(self, tree: exp.Select, views: Mapping[str, _Rows]) -> _Rows:
        source = tree.args.get("from_") or tree.args.get("from")
        rows = self._relation(source.this, views) if source else _Rows(is_stream=False)
        for join in tree.args.get("joins") or ():
            kind = _JOINS.get(join.kind) or _JOINS.get(join.side, "inner")
            on = join.args.get("on")
            rows = self._joined(rows, self._relation(join.this, views), kind, written(on) if on else "")
        for clause in ("laterals", "pivots", "qualify", "windows"):
            if tree.args.get(clause):
                self.unread.append(f"{clause.upper()} in {written(tree)}")
        if where := tree.args.get("where"):
            rows = replace(rows, filtered=True)
            for query in where.find_all(exp.Query):
                if query.parent_select is tree and not isinstance(query, exp.Subquery):
                    negated = query.find_ancestor(exp.Not) is not None
                    other = self._query(query, views)
                    rows = self._joined(rows, other, "leftAnti" if negated else "leftSemi", "")
        group, items = tree.args.get("group"), tree.expressions
        self.unread.extend(f"the subquery {written(query)}" for item in items for query in item.find_all(exp.Subquery))
        # An aggregate function with OVER aggregates nothing.
        calls = (call for item in items for call in item.find_all(exp.AggFunc) if call.parent_select is tree)
        if group is not None or not all(isinstance(call.parent, exp.Window) for call in calls):
            named = {item.alias.lower(): item.this for item in items if isinstance(item, exp.Alias)}
            keys = [self._key(key, rows, items, named) for key in (group.expressions if group else ())]
            rows = self._aggregated(rows, keys, tuple(written(key) for key in keys))
        rows = self._selected(rows, items)
        return self._aggregated(rows, [], ()) if tree.args.get("distinct") else rows

    @staticmethod
    def _key(key: exp.Expr, rows: _Rows, items: Sequence[exp.Expr], named: Mapping[str, exp.Expr]) -> exp.Expr:
        """Return what a key of GROUP BY stands for: the number of an item, its name, or itself."""
        if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(items):
            return items[int(key.name) - 1]
        if isinstance(key, exp.Column) and not key.table and key.name.lower() not in rows.columns:
            return named.get(key.name.lower(), key)
        return key

    def _relation(self, tree: exp.Expr, views: Mapping[str, _Rows]) -> _Rows:
        if isinstance(tree, exp.Subquery):
            rows = self._query(tree.this, views)
        elif isinstance(tree, exp.Table | exp.Values) and (not isinstance(tree.this, exp.Func) or tree.name == "range"):
            rows = views.get(tree.name.lower(), _Rows(is_stream=False))
        else:
            self.unread.append(f"the relation {written(tree)}")
            rows = _Rows()
        for join in tree.args.get("joins") or ():
            rows = self._joined(rows, self._relation(join.this, views), "inner", "")
        clause = watermark_of(tree)
        if clause is not None:
            self._note(rows, reading.QueryWatermark(rows.stream, clause.name or clause.of, clause.delay))
            self._expressions(clause.of)
            if clause.name:  # a computed column, which hides one of this name
                rows = replace(rows, columns={**rows.columns, clause.name.lower(): None})
        return rows

    def _selected(self, rows: _Rows, items: Sequence[exp.Expr]) -> _Rows:
        columns: dict[str, _Origin | None] = {}
        for at, item in enumerate(items):
            if item.is_star and isinstance(item, exp.Star | exp.Column):
                columns.update(rows.columns)
            else:
                columns[_name_of(item) or f"#{at}"] = self._column(rows, item.unalias())
        return replace(rows, columns=columns, keys={})

    def _column(self, rows: _Rows, tree: exp.Expr) -> _Origin | None:
        """Return what a column is that is made from these rows; the windows that are computed in it are noted."""
        origin = self._origin(rows, tree)
        if origin is None:
            for call in tree.find_all(exp.Anonymous):
                self._origin(rows, call)
        return origin

    def _aggregated(self, rows: _Rows, keys: Sequence[exp.Expr], texts: tuple[str, ...]) -> _Rows:
        origins = [(key, self._origin(rows, key.unalias())) for key in keys]
        windows = [(key, origin) for key, origin in origins if isinstance(origin, QueryWindow)]
        self._note(rows, reading.QueryAggregation(texts, tuple(window for _, window in windows)))
        columns = {_name_of(key): window for key, window in windows}
        return _Rows(columns, is_stream=rows.is_stream, keys={key.unalias(): window for key, window in windows})

    def _joined(self, rows: _Rows, other: _Rows, kind: JoinKind, on: str) -> _Rows:
        stateful, is_stream = rows.is_stream and other.is_stream, rows.is_stream or other.is_stream
        self._note(replace(rows, is_stream=is_stream), reading.QueryJoin(kind, on, stateful))
        one_sided = kind in ("leftSemi", "leftAnti")
        shared = set() if one_sided else rows.columns.keys() & other.columns.keys()
        columns = {**({} if one_sided else other.columns), **rows.columns}
        kept = {
            name: None if name in shared and not isinstance(origin, QueryWindow) else origin
            for name, origin in columns.items()
        }
        both = replace(rows, columns=kept, stream=None, filtered=True, is_stream=is_stream)
        return both.without_times() if stateful else replace(both, stream=rows.stream or other.stream)

    def _united(self, rows: _Rows, other: _Rows) -> _Rows:
        self._note(replace(rows, is_stream=rows.is_stream or other.is_stream), reading.QueryUnion())
        both: dict[str, _Origin | None] = {}
        if len(rows.columns) == len(other.columns):  # by position
            for (name, left), right in zip(rows.columns.items(), other.columns.values(), strict=True):
                if isinstance(left, tuple) and isinstance(right, tuple):
                    both[name] = tuple(dict.fromkeys((*left, *right)))
                else:
                    both[name] = left if left == right else None
        return _Rows(both, None, rows.is_stream or other.is_stream, rows.filtered or other.filtered)

    def _origin(self, rows: _Rows, tree: exp.Expr) -> _Origin | None:
        """Return what an expression is: a column that is known, or a window."""
        tree = tree.unnest()
        if rows.keys and tree in rows.keys:
            return rows.keys[tree]
        if isinstance(tree, exp.Column):
            field = tree.table and tree.table.lower() in rows.columns  # such as window.start
            return None if field else rows.columns.get(tree.name.lower())
        call = window_call(tree)
        return self._window(rows, call) if call else None

    def _window(self, rows: _Rows, call: exp.Anonymous) -> QueryWindow | None:
        if not call.expressions:
            self.unread.append(f"the window {written(call)}")
            return None
        time, *sizes = call.expressions
        origin = self._origin(rows, time)
        columns = origin if isinstance(origin, tuple) else ()
        lengths = [_micros(size) for size in sizes]
        length = lengths[0] if lengths else None
        slide = lengths[1] if len(lengths) > 1 else length
        start = lengths[2] if len(lengths) > 2 else 0
        kind: reading.WindowKind = "tumbling" if slide == length else "sliding"
        if call.name.lower() == "session_window":
            kind, slide = "session", None
        elif start is None:
            slide = None
        window = QueryWindow(kind, written(time), length, slide, start or 0, columns, rows.filtered)
        if window not in self.operators:
            self.operators.append(window)
        return window


def _unread(called: Called) -> str:
    match called:
        case operations.Program(program=name) | operations.Main(main=name):
            return f"the program {name}"
        case operations.Method(jvm=name):
            return f"the method {name}"
        case operations.Statements():
            return "own SQL"
        case str():
            return f"the function {called}"
        case _:
            assert_never(called)


def _name_of(item: exp.Expr) -> str:
    """Return the name of the column that an item of a select list makes; empty for other expressions than columns and windows."""
    named = isinstance(item, exp.Alias | exp.Column) or window_call(item)
    return item.alias_or_name.lower() if named else ""


def _micros(size: exp.Expr) -> int | None:
    try:
        return parse_interval(size.name).delay_us if isinstance(size, exp.Literal) and size.is_string else None
    except NotAnInterval:
        return None
