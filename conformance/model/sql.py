"""SQL statements: SELECT with FROM, JOIN, WHERE, GROUP BY, HAVING, DISTINCT, ORDER BY, LIMIT, UNION, WITH and WATERMARK."""

import re
from collections.abc import Iterator, Mapping

from sqlglot import exp

from conformance.core.operations import JoinType
from conformance.model.columns import BIGINT, Attribute
from conformance.model.errors import Unpredictable
from conformance.model.expressions import NamedExpression, evaluate, unchanged
from conformance.model.frame import Frame
from conformance.model.operators import MOST_ROWS
from conformance.model.plan import Aggregate, LocalRelation, Project
from conformance.query import syntax

_JOINS: Mapping[str, JoinType] = {
    **dict.fromkeys(("", "INNER"), "inner"),
    **dict.fromkeys(("LEFT", "LEFT OUTER"), "leftOuter"),
    **dict.fromkeys(("RIGHT", "RIGHT OUTER"), "rightOuter"),
    **dict.fromkeys(("FULL", "FULL OUTER"), "fullOuter"),
    **dict.fromkeys(("SEMI", "LEFT SEMI"), "leftSemi"),
}
"""Side and kind of a join in SQL → its type."""


def run(statement: str, views: Mapping[str, Frame]) -> Frame:
    """The frame of a SELECT over views, of which there is at least one."""
    try:
        tree = syntax.statement(statement)
    except syntax.NotReadable:
        raise Unpredictable(f"the statement {statement!r}") from None
    return _statement(tree, {name.lower(): frame for name, frame in views.items()})


def _marked(frame: Frame, clause: syntax.WatermarkClause) -> Frame:
    """WATERMARK … DELAY OF: a new column comes first (SPARK-53687)."""
    frame.rules.require("WATERMARK clause", re.split(r"\W", clause.of)[0])
    if clause.name is None:
        if not clause.of.isidentifier():
            raise frame.rules.refusal("unnamed expression in WATERMARK", clause.of)
        return frame.with_watermark(clause.of, clause.delay)
    if clause.name.startswith("("):
        raise frame.rules.refusal("several names in WATERMARK", clause.name)
    parsed = frame.expression(clause.of)
    added = NamedExpression(parsed.expression, Attribute(frame.ids.next(), clause.name, parsed.expression.type))
    columns = (added, *unchanged(frame.plan.columns))
    return frame.of(Project(frame.plan, columns)).with_watermark(clause.name, clause.delay)


def _statement(tree: exp.Expr, views: Mapping[str, Frame]) -> Frame:
    if isinstance(tree, exp.Union):
        left, right = _statement(tree.this, views), _statement(tree.expression, views)
        together = left.union(right)
        return together.distinct_rows() if tree.args.get("distinct") else together
    if not isinstance(tree, exp.Select):
        raise Unpredictable(f"the statement {tree.sql('spark')}")
    for clause in ("sort", "windows", "laterals", "qualify", "pivots"):
        if tree.args.get(clause):
            raise Unpredictable(f"{clause.upper()} in SQL")
    common = tree.args.get("with_") or tree.args.get("with")
    for view in common.expressions if common else ():
        views = {**views, view.alias.lower(): _statement(view.this, views)}
    return _select(tree, views)


def _select(tree: exp.Select, views: Mapping[str, Frame]) -> Frame:
    clause = tree.args.get("from_") or tree.args.get("from")
    if clause is None:
        raise Unpredictable("a SELECT without FROM")
    frame, over_window = _relation(clause.this, views)
    if tree.args.get("distribute") and "pinned partitions of DISTRIBUTE BY" not in frame.rules.features:
        raise Unpredictable("DISTRIBUTE BY before 3.1")
    for join in tree.args.get("joins") or ():
        other, _ = _relation(join.this, views)
        how = _JOINS.get(f"{join.side} {join.kind}".strip())
        if how is None or join.method or join.args.get("on") is None:
            raise Unpredictable("a join in SQL other than INNER, OUTER or SEMI with ON")
        frame = frame.join(other, join.args["on"], how)
    condition = tree.args.get("where")
    group = tree.args.get("group")
    if condition and not (over_window and not frame.rules.window_of_window_keeps_what_is_above):
        frame = frame.where(condition.this)
    if group is not None:
        frame = _grouped(tree, group, frame)
    elif not all(isinstance(item, exp.Star) for item in tree.expressions):
        frame = frame.select(*(column for item in tree.expressions for column in _expanded(item, frame)))
    if tree.args.get("distinct"):
        frame = frame.distinct_rows()
    if order := tree.args.get("order"):
        columns = {item.unalias(): exp.column(item.alias_or_name) for item in tree.expressions if item.alias_or_name}
        frame = frame.order_by(
            *(
                (columns.get(item.this, item.this), not item.args.get("desc"), bool(item.args.get("nulls_first")))
                for item in order.expressions
            )
        )
    if limit := tree.args.get("limit"):
        frame = frame.limit(int(limit.expression.name))
    return frame


def _expanded(item: exp.Expr, frame: Frame) -> Iterator[exp.Expr]:
    """The columns that an item of a select list stands for: ``*`` and ``a.*`` for several."""
    if not item.is_star or not isinstance(item, exp.Star | exp.Column):
        yield item
        return
    table = item.table.lower() if isinstance(item, exp.Column) else None
    for column in frame.plan.columns:
        if table is None or (column.qualifier or "").lower() == table:
            yield exp.column(column.name, table=column.qualifier)


def _relation(tree: exp.Expr, views: Mapping[str, Frame]) -> tuple[Frame, bool]:
    """A view, a subquery or VALUES, whose columns are qualified by its name, and whether it has windows over windows."""
    frame, over_window = _unqualified(tree, views)
    clause = syntax.watermark_of(tree)
    frame = _marked(frame, clause) if clause else frame
    return (frame.alias(tree.alias_or_name) if tree.alias_or_name else frame), over_window


def _unqualified(tree: exp.Expr, views: Mapping[str, Frame]) -> tuple[Frame, bool]:
    if isinstance(tree, exp.Subquery):
        inner = _statement(tree.this, views)
        return inner, _has_windows_over_windows(inner)
    if isinstance(tree, exp.Values):
        return _values(tree, next(iter(views.values()))), False
    if isinstance(tree.this, exp.Anonymous) and tree.this.name.lower() == "range":
        return _range(tree.this, next(iter(views.values()))), False
    name = tree.name.lower()
    if name not in views:
        raise Unpredictable(f"the table {tree.name}")
    return views[name], False


def _has_windows_over_windows(frame: Frame) -> bool:
    plan = frame.plan
    while isinstance(plan, Project):
        plan = plan.child
    return isinstance(plan, Aggregate) and any(
        key.expression.kind in ("window", "session") and key.expression.args[0].kind == "window_time"
        for key in plan.keys
    )


def _range(tree: exp.Anonymous, near: Frame) -> Frame:
    """``range(1, 5)``: a column ``id`` with the numbers from the first to the second, exclusive."""
    bounds = [evaluate(near.expression(item, ()).expression, {}) for item in tree.expressions]
    if len(bounds) != 2:
        raise Unpredictable("range other than of two numbers")
    if bounds[1] - bounds[0] > MOST_ROWS:
        raise Unpredictable(f"range of more than {MOST_ROWS:,} numbers")
    columns = (Attribute(near.ids.next(), "id", BIGINT),)
    return near.of(LocalRelation(columns, tuple((number,) for number in range(*bounds))))


def _values(tree: exp.Values, near: Frame) -> Frame:
    names = [column.name for column in tree.args["alias"].columns]
    read_rows = [[near.expression(cell, ()).expression for cell in row.expressions] for row in tree.expressions]
    if not read_rows or any(len(row) != len(names) or any(not cell.is_constant for cell in row) for row in read_rows):
        raise Unpredictable("VALUES of other than constants")
    columns = tuple(Attribute(near.ids.next(), name, cell.type) for name, cell in zip(names, read_rows[0], strict=True))
    return near.of(LocalRelation(columns, tuple(tuple(evaluate(cell, {}) for cell in row) for row in read_rows)))


def _grouped(tree: exp.Select, group: exp.Group, frame: Frame) -> Frame:
    """GROUP BY: the select list may use the keys, and the fields of a window key."""
    keys = group.expressions
    if group.args.get("all"):
        frame.rules.require("GROUP BY ALL")
        keys = [item.unalias() for item in tree.expressions if not item.find(exp.AggFunc)]
    computed = [item for item in tree.expressions if item.find(exp.AggFunc)]
    having = tree.args.get("having")
    hidden: dict[exp.Expr, exp.Expr] = {}
    for call in having.this.find_all(exp.AggFunc) if having else ():
        hidden.setdefault(call, exp.column(f"_having_{len(hidden)}"))
    named = [exp.alias_(call, column.name) for call, column in hidden.items()]
    grouped = frame.group_by(keys, [*computed, *named])
    if having:
        grouped = grouped.where(having.this.transform(lambda node: hidden.get(node, node)))

    def chosen(item: exp.Expr) -> exp.Expr:
        inner = item.unalias()
        if item.find(exp.AggFunc):
            return exp.column(item.alias_or_name)
        if inner not in keys or isinstance(inner, exp.Column):
            return item
        column = exp.column(grouped.plan.columns[keys.index(inner)].name)
        return exp.alias_(column, item.alias) if isinstance(item, exp.Alias) else column

    return grouped.select(*map(chosen, tree.expressions))
