"""Builds the plan of a query with the operations of a DataFrame, and the checks of Spark's analyser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from conformance.core.intervals import NotAnInterval, parse_interval
from conformance.core.operations import ApplyInPandasWithState, Dropna, JoinType, TransformWithState
from conformance.core.spark_types import Schema
from conformance.model import plan as logical
from conformance.model.checks import columns_of_state
from conformance.model.columns import BOOLEAN, INT, WINDOW_MADE, Attribute, Ids
from conformance.model.errors import Refused, Unpredictable
from conformance.model.expressions import Expression, NamedExpression, unchanged
from conformance.model.functions import AT_LEAST
from conformance.model.group_functions import STATE_FUNCTIONS, STATEFUL_PROCESSORS
from conformance.model.parsing import Parsed, parse, resolve, syntax
from conformance.model.plan import Plan, SortKey, is_streaming, walk, watermarks
from conformance.model.rules import Rules

MOST_COLUMNS = 1_000
"""The columns that a query selects, up to which the model predicts: ``*`` and ``a.*`` can double them."""


@dataclass(frozen=True)
class Frame:
    """A plan under construction. Each method returns a new frame, or raises ``Refused`` at analysis."""

    plan: Plan
    rules: Rules
    ids: Ids
    time_zone: str = "UTC"
    """Of the session, as its conf names it."""

    @classmethod
    def read(
        cls, stream: str, schema: Schema, rules: Rules, ids: Ids, name: str | None = None, time_zone: str = "UTC"
    ) -> Frame:
        """The rows of a stream. ``name``: of its source, None without one."""
        if name is not None:
            rules.require("named sources", "name")
        columns = tuple(Attribute(ids.next(), field.name, field.type) for field in schema.fields)
        if any(field.type.name == "timestamp_ntz" for field in schema.fields):
            rules.require("TIMESTAMP_NTZ")
        return cls(logical.StreamSource(stream, columns, name), rules, ids, time_zone)

    def of(self, plan: Plan) -> Frame:
        return replace(self, plan=plan)

    def with_watermark(self, column: str, delay: str) -> Frame:
        if not column or not delay:
            raise self.rules.refusal("empty delay" if column else "empty event time")
        delay_ms = _delay_ms(delay, self.rules)
        expression = resolve(column.split("."), self.plan.columns, self.rules)
        if expression.kind != "column":
            raise self.rules.refusal("nested event time", column)
        marked = next(attribute for attribute in self.plan.columns if attribute.id == expression.value)
        ends = [field.type.name for field in marked.type.fields if field.name == "end"]
        if marked.type.name != "timestamp" and ends != ["timestamp"]:
            raise self.rules.refusal("event time of a wrong type", f"{column} is of type {marked.type}")
        if not is_streaming(self.plan):
            return self
        tagged = replace(marked, delay_ms=delay_ms)
        columns = tuple(tagged if attribute.id == marked.id else attribute for attribute in self.plan.columns)
        return self.of(logical.Watermark(self.plan, tagged, columns))

    def where(self, condition: str | exp.Expr) -> Frame:
        return self.of(logical.Filter(self.plan, self.expression(condition).expression))

    def dropna(self, operation: Dropna) -> Frame:
        """``na.drop``: a filter on the number of values (`AtLeastNNonNulls`)."""
        names = operation.subset or [column.name for column in self.plan.columns]
        values = tuple(resolve([name], self.plan.columns, self.rules) for name in names)
        least = Expression("literal", INT, value=operation.least(len(values)))
        return self.of(logical.Filter(self.plan, Expression("call", BOOLEAN, (least, *values), AT_LEAST)))

    def select(self, *texts: str | exp.Expr) -> Frame:
        if len(texts) > MOST_COLUMNS:
            raise Unpredictable(f"a select list of more than {MOST_COLUMNS:,} columns")
        return self.of(logical.Project(self.plan, tuple(self._named(self.expression(text)) for text in texts)))

    def with_column(self, name: str, text: str) -> Frame:
        """Replace the column of that name, or add one."""
        added = self._named(self.expression(text), name)
        names = [column.name.lower() for column in self.plan.columns]
        place = names.index(name.lower()) if name.lower() in names else len(names)
        kept = unchanged(self.plan.columns)
        return self.of(logical.Project(self.plan, (*kept[:place], added, *kept[place + 1 :])))

    def drop(self, *names: str) -> Frame:
        gone = {name.lower() for name in names}
        kept = (column for column in self.plan.columns if column.name.lower() not in gone)
        return self.of(logical.Project(self.plan, unchanged(kept)))

    def alias(self, name: str) -> Frame:
        columns = unchanged(self.plan.columns)
        renamed = tuple(replace(item, column=replace(item.column, qualifier=name)) for item in columns)
        return self.of(logical.Project(self.plan, renamed))

    def group_by(self, keys: Sequence[str | exp.Expr], outputs: Sequence[str | exp.Expr]) -> Frame:
        """``groupBy(keys).agg(outputs)``: the keys come first."""
        named = tuple(self._key(self.expression(key)) for key in keys)
        computed = tuple(self._named(self.expression(output)) for output in outputs)
        plain = {key.expression.value for key in named if key.expression.kind == "column"}
        grouped = plain | {key.column.id for key in named}
        if not all(_outside_aggregates(item.expression) <= grouped for item in computed):
            raise Unpredictable("an output of an aggregation that is neither grouped nor aggregated")
        return self.of(logical.Aggregate(self.plan, named, (*unchanged(key.column for key in named), *computed)))

    def join(self, other: Frame, on: str | exp.Expr, how: JoinType) -> Frame:
        self._check_apart(other)
        scope = (*self.plan.columns, *other.plan.columns)
        tree = syntax(on) if isinstance(on, str) else on
        condition = self.expression(tree, scope).expression
        if condition.is_random:
            raise self.rules.refusal("random join condition")
        if (computed := self._operands_of_between(tree, scope)) and self.rules.between_computes_its_operand:
            if how != "inner":
                raise Unpredictable("BETWEEN of a computed value in the condition of an outer join")
            return self._join_on_computed(other, tree, computed)
        return self.of(logical.Join(self.plan, other.plan, how, condition))

    def _check_apart(self, other: Frame) -> None:
        """Spark makes a relation that both frames read two (`DeduplicateRelations`)."""
        mine, theirs = ({node for node in walk(plan) if not node.children} for plan in (self.plan, other.plan))
        if mine & theirs:
            raise Unpredictable("a view that is named twice")

    def _operands_of_between(self, tree: exp.Expr, scope: Sequence[Attribute]) -> dict[exp.Expr, NamedExpression]:
        """The values that the optimiser computes before a join, since BETWEEN uses them twice (`RewriteWithExpression`)."""
        operands: dict[exp.Expr, NamedExpression] = {}
        for operand in (between.this for between in tree.find_all(exp.Between)):
            expression = self.expression(operand, scope).expression
            if expression.kind in ("call", "window_time") and expression.references:
                id = self.ids.next()
                operands[operand] = NamedExpression(expression, Attribute(id, f"_common_expr_{id}", expression.type))
        return operands

    def _join_on_computed(self, other: Frame, tree: exp.Expr, computed: Mapping[exp.Expr, NamedExpression]) -> Frame:
        """An inner join on a condition some operands of which one of its sides computes."""
        sides = []
        for plan in (self.plan, other.plan):
            ids = {column.id for column in plan.columns}
            own = tuple(item for item in computed.values() if item.expression.references <= ids)
            sides.append(logical.Project(plan, (*unchanged(plan.columns), *own)) if own else plan)
        names = {item.column.id for side in sides for item in getattr(side, "named", ()) if item in computed.values()}

        def named(node: exp.Expr) -> exp.Expr:
            made = computed.get(node)
            return exp.column(made.column.name) if made is not None and made.column.id in names else node

        left, right = sides
        condition = parse(tree.transform(named), (*left.columns, *right.columns), self.rules).expression
        shown = unchanged((*self.plan.columns, *other.plan.columns))
        return self.of(logical.Project(logical.Join(left, right, "inner", condition), shown))

    def union(self, other: Frame) -> Frame:
        if len(self.plan.columns) != len(other.plan.columns):
            raise Unpredictable("a union of frames of different widths")
        self._check_apart(other)
        columns = tuple(replace(column, id=self.ids.next()) for column in self.plan.columns)
        return self.of(logical.Union((self.plan, other.plan), columns))

    def drop_duplicates(self, *names: str, within_watermark: bool = False) -> Frame:
        """``dropDuplicates`` or ``dropDuplicatesWithinWatermark``, by all columns if no names are given."""
        if within_watermark:
            self.rules.require("dropDuplicatesWithinWatermark")
        columns = {column.id: column for column in self.plan.columns}
        wanted = [resolve([name], self.plan.columns, self.rules).value for name in names]
        keys = tuple(columns[id] for id in dict.fromkeys(wanted or columns))
        return self.of(logical.Deduplicate(self.plan, keys, within_watermark))

    def distinct_rows(self) -> Frame:
        """SQL DISTINCT, an aggregation without functions (SPARK-32456)."""
        columns = unchanged(self.plan.columns)
        keys = tuple(replace(item, column=replace(item.column, id=self.ids.next())) for item in columns)
        return self.of(logical.Aggregate(self.plan, keys, unchanged(key.column for key in keys), from_distinct=True))

    def limit(self, rows: int) -> Frame:
        if rows >= 2**31:
            raise Unpredictable("a limit beyond int")
        return self.of(logical.Limit(self.plan, rows))

    def order_by(self, *keys: tuple[str | exp.Expr, bool, bool]) -> Frame:
        """Sort by expressions of the columns; whether each is ascending, and whether its nulls come first."""
        try:
            sorted_by = (SortKey(self.expression(key).expression, *directions) for key, *directions in keys)
            return self.of(logical.Sort(self.plan, tuple(sorted_by)))
        except Refused:
            raise Unpredictable("ORDER BY of what is not selected") from None

    def apply_in_pandas_with_state(self, operation: ApplyInPandasWithState) -> Frame:
        """``groupBy(by).applyInPandasWithState`` with a function of the suite."""
        keys = self._grouping(operation.by)
        self.rules.require("applyInPandasWithState")
        function, mode, timeout = operation.with_, operation.output_mode, operation.timeout
        columns = tuple(Attribute(self.ids.next(), name, kind) for name, kind in STATE_FUNCTIONS[function].emits)
        return self.of(logical.StateFunction(self.plan, keys, function, mode, timeout, columns))

    def transform_with_state(self, operation: TransformWithState, initial: Frame | None) -> Frame:
        """``groupBy(by).transformWithStateInPandas`` with a processor of the suite, or ``transformWithState`` over rows."""
        by, processor, event_time = operation.by, operation.with_, operation.event_time_column
        keys = self._grouping(by)
        feature = "transformWithState" if operation.in_pandas else "transformWithState over rows"
        self.rules.require(feature, "transformWithState")
        columns = tuple(Attribute(self.ids.next(), name, kind) for name, kind in STATEFUL_PROCESSORS[processor].emits)
        if event_time:
            marked = watermarks(self.plan)
            if not marked:
                raise self.rules.refusal("event-time column without watermark")
            time = resolve([event_time], columns, self.rules)
            if time.type.name != "timestamp":
                raise Unpredictable("an eventTimeColumn that is not a TIMESTAMP")
            delay_ms = marked[0].column.delay_ms
            columns = tuple(
                replace(column, delay_ms=delay_ms) if column.id == time.value else column for column in columns
            )
        state = None if initial is None else logical.InitialState(initial.plan, initial._grouping(by))
        if state is not None and [key.type for key in state.keys] != [key.type for key in keys]:
            raise Unpredictable("an initial state with grouping columns of other types")
        keeps = STATEFUL_PROCESSORS[processor].keeps if operation.state is None else columns_of_state(operation.state)
        mode, time_mode = operation.output_mode, operation.time_mode
        return self.of(logical.StatefulProcessor(self.plan, keys, processor, mode, time_mode, keeps, state, columns))

    def _grouping(self, names: Sequence[str]) -> tuple[Attribute, ...]:
        columns = {column.id: column for column in self.plan.columns}
        keys = [resolve([name], self.plan.columns, self.rules) for name in names]
        if not all(key.kind == "column" and key.value in columns for key in keys):
            raise Unpredictable("state functions by other than columns")
        return tuple(columns[key.value] for key in keys)

    def expression(self, text: str | exp.Expr, scope: Sequence[Attribute] | None = None) -> Parsed:
        """An expression over the columns in scope, by default those of the frame."""
        columns = self.plan.columns if scope is None else scope
        return parse(text, columns, self.rules, self.time_zone)

    def _key(self, parsed: Parsed) -> NamedExpression:
        """A grouping key. Spark sees an event time among the keys only if it is a column or a window of one."""
        named = self._named(parsed)
        if parsed.expression.kind == "field":
            return replace(named, column=replace(named.column, delay_ms=None))
        return named

    def _named(self, parsed: Parsed, name: str | None = None) -> NamedExpression:
        """An expression with its column. Only an unchanged column keeps its id."""
        called = name or parsed.name
        if parsed.source is not None and called.lower() == parsed.source.name.lower():
            return NamedExpression(parsed.expression, replace(parsed.source, name=called))
        expression = parsed.expression
        made_by = WINDOW_MADE if expression.kind in ("window", "session") else None
        if parsed.source is not None:
            made_by = parsed.source.made_by
        id, delay_ms, of_fields = self.ids.next(), self._delay_ms(expression), self._field_delays_ms(expression)
        column = Attribute(id, called, expression.type, delay_ms, made_by=made_by, field_delays_ms=of_fields)
        return NamedExpression(expression, column)

    def _delay_ms(self, expression: Expression) -> int | None:
        """The delay that a named expression inherits from its column, field, window or window time."""
        match expression.kind:
            case "column":
                column = self._column(expression)
                return None if column is None else column.delay_ms
            case "window" | "session" | "window_time" if expression.args[0].kind != "field":
                return self._delay_ms(expression.args[0])
            case "field" if self._may_have_delays(expression.args[0]) and self.rules.struct_fields_keep_the_watermark:
                delays = self._field_delays_ms(expression.args[0])
                return delays[expression.value] if delays else None
            case _:
                return None

    def _may_have_delays(self, struct: Expression) -> bool:
        return struct.kind != "column" or bool(self._field_delays_ms(struct))

    def _field_delays_ms(self, expression: Expression) -> tuple[int | None, ...]:
        """The delays that the fields of a struct inherit (`CreateNamedStruct`); none if no field has one."""
        if expression.kind == "column":
            column = self._column(expression)
            return () if column is None else column.field_delays_ms
        if (expression.kind, expression.name) != ("call", "struct"):
            return ()
        if any(self._field_delays_ms(arg) for arg in expression.args):
            raise Unpredictable("an event time in a struct in a struct")
        delays = tuple(self._delay_ms(arg) if arg.kind in ("column", "field") else None for arg in expression.args)
        return delays if any(delay is not None for delay in delays) else ()

    def _column(self, expression: Expression) -> Attribute | None:
        return next((column for column in self.plan.columns if column.id == expression.value), None)


def _delay_ms(text: str, rules: Rules) -> int:
    try:
        interval = parse_interval(text)
    except NotAnInterval:
        name = "delay without a unit" if text.strip().isdigit() else "invalid delay"
        raise rules.refusal(name, text) from None
    if interval.ansi:
        rules.require("ANSI delay", text)
    if interval.delay_us < 0:
        raise rules.refusal("negative delay", text)
    if min(interval.months, interval.days, interval.micros) < 0:
        rules.require("delay with a negative part", text)
    return interval.delay_ms


def _outside_aggregates(expression: Expression) -> frozenset[int]:
    """Ids of the columns that an expression uses other than as an argument of an aggregate function."""
    if expression.kind == "aggregate":
        return frozenset()
    own = {expression.value} if expression.kind == "column" else frozenset[int]()
    return frozenset(own).union(*map(_outside_aggregates, expression.args))
