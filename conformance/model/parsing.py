"""Parses Spark SQL expressions into ``Expression`` trees over the columns of a frame."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo

from sqlglot import exp

from conformance.core.intervals import NotAnInterval, parse_interval
from conformance.core.spark_types import DataType, Field
from conformance.model import functions
from conformance.model.columns import BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP, WINDOW, Attribute
from conformance.model.errors import Unpredictable
from conformance.model.expressions import ORDERINGS, Expression
from conformance.model.expressions import column as column_expression
from conformance.model.functions import INTERVAL, MOST_CHARACTERS, TIMESTAMP_NTZ, type_of
from conformance.model.rules import Rules
from conformance.model.time_zones import zone_named
from conformance.query.syntax import NotReadable, expression

OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Mod: "%",
    exp.And: "and",
    exp.Or: "or",
    exp.Div: "/",
    exp.Like: "like",
    exp.DPipe: "concat",
    exp.RegexpSplit: "split",
}
_AS_IN_SQL = (exp.Count, exp.Sum, exp.Min, exp.Max, exp.Avg, exp.StddevPop, exp.Stddev, exp.Variance, exp.Median)
AGGREGATE_FUNCTIONS: Mapping[type[exp.Expr], str] = {
    **{kind: kind.sql_name().lower() for kind in (*_AS_IN_SQL, exp.First, exp.Last, exp.CountIf)},
    exp.ArgMax: "max_by",
    exp.ArgMin: "min_by",
    exp.ArrayUniqueAgg: "collect_set",
    exp.ArrayAgg: "collect_list",
    exp.ApproxQuantile: "percentile_approx",
}
_CALLS_AS_IN_SQL = (exp.Coalesce, exp.Length, exp.Upper, exp.Lower, exp.ArraySort, exp.Rand, exp.Randn, exp.Uuid)
CALLS: Mapping[type[exp.Expr], str] = {
    **{kind: kind.sql_name().lower() for kind in (*_CALLS_AS_IN_SQL, exp.Abs, exp.Concat)},
    exp.Neg: "negative",
}
CASTS: Mapping[str, str] = {
    "TIMESTAMPTZ": "cast to timestamp",
    "TIMESTAMP": "cast to timestamp",
    "TIMESTAMPNTZ": "cast to timestamp_ntz",
    "TEXT": "cast to string",
    "INT": "cast to int",
    "BIGINT": "cast to bigint",
    "DOUBLE": "cast to double",
    "FLOAT": "cast to float",
}


_TO_SECOND = re.compile(r"(HOUR|MINUTE) TO SECOND", re.IGNORECASE)
MOST_WINDOWS = 1_000
"""Sliding windows that contain one instant, up to which the model predicts."""
_NEED = frozenset({"timestamp_seconds", "timestamp_millis", "make_dt_interval"})
"""Functions that some versions lack, each a feature of its name."""


@dataclass(frozen=True)
class Parsed:
    expression: Expression
    tree: exp.Expr
    alias: str | None
    source: Attribute | None
    """The column, if the expression is only a column, possibly renamed."""

    @property
    def name(self) -> str:
        """The name of the column of the expression. A condition needs none, and to write a tree as SQL is slow."""
        if self.alias:
            return self.alias
        if self.source is not None:
            return self.source.name
        if isinstance(self.tree, exp.Column):
            return self.tree.name
        window = isinstance(self.tree, exp.Anonymous) and self.tree.name.lower() in ("window", "session_window")
        return self.tree.name.lower() if window else self.tree.sql("spark")


def syntax(text: str) -> exp.Expr:
    try:
        return expression(text)
    except NotReadable:
        raise Unpredictable(f"the syntax of {text[:100]!r}") from None


def parse(text: str | exp.Expr, scope: Sequence[Attribute], rules: Rules, zone: str = "UTC") -> Parsed:
    """Parse an expression over the columns in scope: ``window(event_time, '10 minutes') AS slot``. ``zone``: of the session."""
    tree = syntax(text) if isinstance(text, str) else text
    alias = None
    if isinstance(tree, exp.Alias):
        alias, tree = tree.alias, tree.this
    expression = _ExpressionParser(scope, rules, zone).read(tree)
    source = next((column for column in scope if expression.kind == "column" and column.id == expression.value), None)
    return Parsed(expression, tree, alias, source)


def resolve(parts: Sequence[str], scope: Sequence[Attribute], rules: Rules) -> Expression:
    """The column, or the field of a column, with a dotted name."""
    lower = [part.lower() for part in parts]
    qualified = [item for item in scope if item.qualifier and [item.qualifier.lower(), item.name.lower()] == lower[:2]]
    candidates = qualified or [column for column in scope if column.name.lower() == lower[0]]
    if len(candidates) > 1:
        raise Unpredictable(f"the ambiguous name {'.'.join(parts)}")
    if not candidates and "_metadata" in lower[:2] and "_metadata of files" in rules.features:
        raise Unpredictable("the hidden column of files")
    if not candidates:
        raise rules.refusal("unknown column", ".".join(parts))
    expression = column_expression(candidates[0])
    for name in parts[2 if qualified else 1 :]:
        places = [place for place, field in enumerate(expression.type.fields) if field.name.lower() == name.lower()]
        if not places:
            raise rules.refusal("unknown column", name)
        field = expression.type.fields[places[0]]
        expression = Expression("field", field.type, (expression,), field.name, places[0])
    return expression


class _ExpressionParser:
    def __init__(self, scope: Sequence[Attribute], rules: Rules, zone: str) -> None:
        self._scope = scope
        self._rules = rules
        self._zone = zone

    def read(self, tree: exp.Expr) -> Expression:
        kind = type(tree)
        if tree.args.get("negate"):
            positive = tree.copy()
            positive.set("negate", None)
            return self.read(exp.Not(this=positive))
        if kind in OPERATORS:
            return self._call(OPERATORS[kind], tree.this, tree.expression)
        if kind in AGGREGATE_FUNCTIONS:
            return self._aggregate(AGGREGATE_FUNCTIONS[kind], tree)
        if kind in CALLS:
            return self._call(CALLS[kind], *filter(None, (tree.this, *tree.expressions)))
        method = getattr(self, f"_{kind.__name__.lower()}", None)
        if method is None:
            raise Unpredictable(f"the expression {tree.sql('spark')}")
        expression: Expression = method(tree)
        return expression

    def _call(self, name: str, *operands: exp.Expr) -> Expression:
        args = tuple(self.read(operand) for operand in operands)
        if name == "-" and all(arg.type.name == "timestamp" for arg in args):
            self._rules.require("difference of two times")
            name = "time difference"
        if name == "now":
            self._rules.require("now() apart from current_timestamp()")
        refused = "comparison of intervals"
        if name in ORDERINGS and all(arg.type == INTERVAL for arg in args) and refused in self._rules.refusals:
            raise self._rules.refusal(refused, "interval")
        return self._called(name, *args)

    def _called(self, name: str, *args: Expression) -> Expression:
        """A call of a function, which keeps the time zone that it depends on."""
        kind = type_of(name, [arg.type for arg in args])
        of_times = {"timestamp", "timestamp_ntz"} & {kind.name, *(arg.type.name for arg in args)}
        zone = self._time_zone() if name in functions.BY_TIME_ZONE and of_times else None
        return Expression("call", kind, args, name, zone)

    def _time_zone(self) -> tzinfo | None:
        if self._zone != "UTC":
            self._rules.require("time zones of java.time")
        return zone_named(self._zone)

    def _aggregate(self, name: str, tree: exp.Expr) -> Expression:
        if name == "median":
            self._rules.require(name)
        distinct = tree.this if isinstance(tree.this, exp.Distinct) else None
        operands = distinct.expressions if distinct else [tree.this, *tree.expressions]
        operands = [part for part in operands if not isinstance(part, exp.Star)]
        operands += [tree.expression] if isinstance(tree, exp.ArgMax | exp.ArgMin) else []
        operands += [option for option in map(tree.args.get, ("quantile", "accuracy")) if option is not None]
        args = tuple(self.read(operand) for operand in operands)
        if any(arg.is_random for arg in args):
            raise self._rules.refusal("random argument of an aggregate function", name)
        call = Expression("aggregate", functions.AGGREGATES[name].type([arg.type for arg in args]), args, name)
        return replace(call, name=f"{name}{functions.DISTINCT}") if distinct else call

    def _paren(self, tree: exp.Paren) -> Expression:
        return self.read(tree.this)

    def _collate(self, tree: exp.Collate) -> Expression:
        if tree.expression.name.upper() != "UTF8_BINARY":  # that of texts without a collation
            raise Unpredictable(f"the expression {tree.sql('spark')}")
        return self.read(tree.this)

    def _column(self, tree: exp.Column) -> Expression:
        return resolve([part.name for part in tree.parts], self._scope, self._rules)

    def _literal(self, tree: exp.Literal) -> Expression:
        if tree.is_string:
            return Expression("literal", STRING, value=tree.this)
        if tree.is_int:
            return Expression("literal", INT, value=int(tree.this))
        return Expression("literal", DOUBLE, value=float(tree.this))

    def _null(self, _: exp.Null) -> Expression:
        return Expression("literal", DataType("void"))

    def _boolean(self, tree: exp.Boolean) -> Expression:
        return Expression("literal", BOOLEAN, value=tree.this)

    def _not(self, tree: exp.Not) -> Expression:
        if isinstance(tree.this, exp.Is) and isinstance(tree.this.expression, exp.Null):
            return self._call("is not null", tree.this.this)
        return self._call("not", tree.this)

    def _is(self, tree: exp.Is) -> Expression:
        if not isinstance(tree.expression, exp.Null):
            raise Unpredictable(f"the expression {tree.sql('spark')}")
        return self._call("is null", tree.this)

    def _between(self, tree: exp.Between) -> Expression:
        low, high = tree.args["low"], tree.args["high"]
        return self.read(exp.and_(exp.GTE(this=tree.this, expression=low), exp.LTE(this=tree.this, expression=high)))

    def _case(self, tree: exp.Case) -> Expression:
        if tree.this is not None:
            raise Unpredictable("CASE with an operand")
        parts = [part for branch in tree.args["ifs"] for part in (branch.this, branch.args["true"])]
        return self._call("case", *parts, tree.args.get("default") or exp.Null())

    def _if(self, tree: exp.If) -> Expression:
        return self._call("case", tree.this, tree.args["true"], tree.args.get("false") or exp.Null())

    def _bracket(self, tree: exp.Bracket) -> Expression:
        """An element of an array, counted from 0."""
        if len(tree.expressions) != 1 or tree.args.get("offset"):
            raise Unpredictable(f"the expression {tree.sql('spark')}")
        array, index = map(self.read, (tree.this, tree.expressions[0]))
        if array.type.name != "array" or index.type != INT:
            raise Unpredictable(f"the expression {tree.sql('spark')}")
        return Expression("call", array.type.elements[0], (array, index), "element")

    def _round(self, tree: exp.Round) -> Expression:
        """Of a fraction; whole numbers keep their type, and versions differ in it."""
        value = self.read(tree.this)
        places = self.read(tree.args.get("decimals") or exp.Literal.number(0))
        if value.type != DOUBLE or places.kind != "literal":
            raise Unpredictable(f"the expression {tree.sql('spark')}")
        return Expression("call", DOUBLE, (value, places), "round")

    def _struct(self, tree: exp.Struct) -> Expression:
        named = [
            (part.this.name, part.expression) if isinstance(part, exp.PropertyEQ) else (part.alias_or_name, part)
            for part in tree.expressions
        ]
        args = tuple(self.read(value) for _, value in named)
        fields = tuple(Field(name, arg.type) for (name, _), arg in zip(named, args, strict=True))
        struct = DataType("struct", fields)
        if len(str(struct)) > MOST_CHARACTERS:
            raise Unpredictable(f"a type of more than {MOST_CHARACTERS:,} characters")
        return Expression("call", struct, args, "struct")

    def _in(self, tree: exp.In) -> Expression:
        if not tree.expressions:
            raise Unpredictable(f"the expression {tree.sql('spark')}")
        return self.read(exp.or_(*(exp.EQ(this=tree.this, expression=part) for part in tree.expressions)))

    def _interval(self, tree: exp.Interval) -> Expression:
        unit = tree.args.get("unit")
        try:
            value = parse_interval(f"{tree.this.name} {unit.sql() if unit else ''}")
        except NotAnInterval:
            raise Unpredictable(f"the interval {tree.sql('spark')}") from None
        if (to_second := _TO_SECOND.search(unit.sql() if unit else "")) is not None:
            self._rules.require("interval from hours or minutes to seconds", to_second[1].lower())
        return Expression("literal", INTERVAL, value=value)

    def _cast(self, tree: exp.Cast) -> Expression:
        name = CASTS.get(tree.to.this.name)
        if name is None:
            raise Unpredictable(f"CAST AS {tree.to.sql('spark')}")
        if name == "cast to timestamp_ntz":
            self._rules.require("TIMESTAMP_NTZ")
        value = self.read(tree.this)
        if name == "cast to timestamp" and value.type.name in functions.WHOLE:
            name = "cast number to timestamp"
        elif value.type in (TIMESTAMP, TIMESTAMP_NTZ) and name != f"cast to {value.type.name}":
            name = name.replace("cast", f"cast {value.type.name}")
        elif name == "cast to timestamp" and value.kind != "literal" and type(tree) is exp.Cast:
            name = "to_timestamp"  # sqlglot reads CAST as TryCast
        return self._called(name, value)

    _trycast = _cast

    def _timestamptrunc(self, tree: exp.TimestampTrunc) -> Expression:
        unit = tree.args["unit"].name
        if unit.lower() not in functions.UNITS_US:
            raise Unpredictable(f"date_trunc by {unit}")
        time = self.read(tree.this)
        if time.type != TIMESTAMP:
            raise Unpredictable(f"date_trunc of {time.type}")
        return self._called("date_trunc", Expression("literal", STRING, value=unit), time)

    def _arraysize(self, tree: exp.ArraySize) -> Expression:
        """``size`` of what is never null: before 4.0 that of NULL is -1."""
        if not isinstance(tree.this, exp.ArrayAgg | exp.ArrayUniqueAgg):
            raise Unpredictable("size of what may be null")
        return self._call("size", tree.this)

    def _currenttimestamp(self, _: exp.CurrentTimestamp) -> Expression:
        return Expression("call", TIMESTAMP, name="current_timestamp")

    def _timetostr(self, tree: exp.TimeToStr) -> Expression:
        """``date_format``; sqlglot turns its pattern into that of Python."""
        pattern = self._pattern(tree, "date_format")
        time = self.read(tree.this.this if isinstance(tree.this, exp.TimeStrToTime) else tree.this)
        if time.type != TIMESTAMP:
            raise Unpredictable(f"date_format of {time.type}")
        return self._called("date_format", Expression("literal", STRING, value=pattern), time)

    def _strtotime(self, tree: exp.StrToTime) -> Expression:
        """``to_timestamp`` with a pattern."""
        pattern = Expression("literal", STRING, value=self._pattern(tree, "to_timestamp"))
        text = self.read(tree.this)
        if text.type != STRING:
            raise Unpredictable(f"to_timestamp with a pattern of {text.type}")
        return self._called("to_timestamp by pattern", pattern, text)

    def _strtounix(self, tree: exp.StrToUnix) -> Expression:
        time = self.read(tree.this)
        if time.type != TIMESTAMP or not time.is_deterministic:
            raise Unpredictable(f"unix_timestamp of {time.type}, or of the current time")
        return self._called("unix_timestamp", time)

    def _pattern(self, tree: exp.TimeToStr | exp.StrToTime, function: str) -> str:
        """A pattern as sqlglot turns it into that of Python."""
        pattern = str(tree.args["format"].name).replace("strict", "")
        if re.sub("%[YmdHMS]", "", pattern) != re.sub("%.|[A-Za-z]", "", pattern):
            raise Unpredictable(f"{function} by parts other than yyyy, MM, dd, HH, mm and ss")
        return pattern

    def _ignorenulls(self, tree: exp.IgnoreNulls) -> Expression:
        name = AGGREGATE_FUNCTIONS.get(type(tree.this))
        if name not in ("first", "last"):
            raise Unpredictable(f"the expression {tree.sql('spark')}")
        return self._aggregate(f"{name} ignoring nulls", tree.this)

    def _anonymous(self, tree: exp.Anonymous) -> Expression:
        name = tree.name.lower()
        if name == "window":
            return self._time_window(tree)
        if name == "session_window":
            return self._session_window(tree)
        if name == "window_time":
            self._rules.require("window_time")
            return self._time_of_window(self.read(tree.expressions[0]))
        if name in _NEED:
            self._rules.require(name)
        return self._call(name, *tree.expressions)

    def _time_window(self, tree: exp.Anonymous) -> Expression:
        if len(tree.expressions) < 2:
            raise Unpredictable(f"the call {tree.sql('spark')}")
        time = self._time(tree.expressions[0])
        sizes = [self._micros(part) for part in tree.expressions[1:]]
        size = sizes[0]
        slide = sizes[1] if len(sizes) > 1 else size
        start = sizes[2] if len(sizes) > 2 else 0
        if not 0 < slide <= size:
            raise Unpredictable(f"the lengths in {tree.sql('spark')}")
        if -(-size // slide) > MOST_WINDOWS:
            raise Unpredictable(f"sliding windows of which more than {MOST_WINDOWS:,} contain each row")
        fields = tuple(Field(field.name, time.type) for field in WINDOW.fields)
        return Expression("window", DataType("struct", fields), (time,), "window", (size, slide, start))

    def _session_window(self, tree: exp.Anonymous) -> Expression:
        if len(tree.expressions) != 2:
            raise Unpredictable(f"the call {tree.sql('spark')}")
        self._rules.require("session_window")
        time = self._time(tree.expressions[0])
        zone = None if self._zone == "UTC" else self._time_zone()
        return Expression("session", WINDOW, (time, self.read(tree.expressions[1])), "session_window", zone)

    def _time(self, tree: exp.Expr) -> Expression:
        """The time argument of a window function; for a window its time (SPARK-40821)."""
        time = self.read(tree)
        if time.type == WINDOW:
            self._rules.require("window of a window")
            return self._time_of_window(time)
        if time.type.name not in ("timestamp", "timestamp_ntz"):
            raise Unpredictable(f"a window over {time.type}")
        return time

    def _time_of_window(self, window: Expression) -> Expression:
        made = next(
            (column.made_by for column in self._scope if window.kind == "column" and column.id == window.value), None
        )
        if window.type != WINDOW or made is None:
            raise Unpredictable("window_time of a column that is not a window")
        return Expression("window_time", TIMESTAMP, (window,), "window_time", self._rules.window_time_us)

    def _micros(self, tree: exp.Expr) -> int:
        try:
            return parse_interval(tree.name).delay_us
        except NotAnInterval:
            raise Unpredictable(f"the interval {tree.sql('spark')}") from None
