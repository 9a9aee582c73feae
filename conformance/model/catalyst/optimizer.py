"""Where Spark's optimiser places filters, and which columns it prunes or treats as constants, as far as that is visible."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from typing import TypeAlias

from conformance.model import plan as logical
from conformance.model.columns import BOOLEAN
from conformance.model.errors import Unpredictable
from conformance.model.expressions import (
    ORDERINGS,
    Expression,
    NamedExpression,
    all_of,
    column,
    conjuncts,
    evaluate,
    must_not_be_null,
    substitute,
)
from conformance.model.functions import BY_ORDER
from conformance.model.join_bounds import PRESERVED
from conformance.model.plan import Plan, beneath, expressions, is_streaming, stateful, streams, walk, with_children
from conformance.model.rules import Rules


def inferred(join: logical.Join) -> Iterator[Expression]:
    """The constraints of a column, applied to each column that a join compares it with."""
    known = [*conjuncts(join.condition), *constraints(join.left), *constraints(join.right)]
    for equality in known:
        if equality.name != "=" or any(side.kind != "column" for side in equality.args):
            continue
        for condition in known:
            for side, other in (equality.args, equality.args[::-1]):
                if condition != equality and side.value in condition.references:
                    yield substitute(condition, {side.value: other})


def constraints(plan: Plan) -> tuple[Expression, ...]:
    """Conditions that all rows of a node meet, as far as Spark infers them."""
    match plan:
        case logical.Filter():
            return (*(part for part in conjuncts(plan.condition) if part.is_deterministic), *constraints(plan.child))
        case logical.Watermark() | logical.Deduplicate() | logical.Limit():
            return constraints(plan.child)
        case logical.Project():
            # The values of constant columns: `UnaryNode.getAllValidConstraints`.
            constants = (
                Expression("call", BOOLEAN, (column(item.column), item.expression), "<=>")
                for item in plan.named
                if item.expression.is_constant
            )
            return (*constants, *_renamed_by(plan.named, constraints(plan.child)))
        case logical.Aggregate():
            return tuple(_renamed_by(plan.outputs, _renamed_by(plan.keys, constraints(plan.child))))
        case logical.Union():
            by_branch = []
            for branch in plan.branches:
                names = {its.id: column(ours) for its, ours in zip(branch.columns, plan.columns, strict=True)}
                by_branch.append([substitute(condition, names) for condition in constraints(branch)])
            return tuple(condition for condition in by_branch[0] if all(condition in others for others in by_branch))
        case logical.Join(how="inner"):
            return (*conjuncts(plan.condition), *constraints(plan.left), *constraints(plan.right))
        case logical.Join(how="leftSemi" | "leftOuter"):
            return constraints(plan.left)
        case logical.Join(how="rightOuter"):
            return constraints(plan.right)
        case _:
            return ()


def _renamed_by(named: Iterable[NamedExpression], conditions: Iterable[Expression]) -> Iterator[Expression]:
    """The conditions on columns that are passed through, by their new names."""
    names = {item.expression.value: column(item.column) for item in named if item.expression.kind == "column"}
    for condition in conditions:
        if condition.references <= names.keys():
            yield substitute(condition, names)


MOST_CONDITIONS = 100
"""The conditions that hold below a join, up to which the model predicts: each equality multiplies them."""
IGNORING_DUPLICATES = frozenset(
    {"max", "min", "first", "last", "first ignoring nulls", "last ignoring nulls", "collect_set"}
)
"""Aggregate functions whose result does not depend on duplicates."""


RequiredColumns: TypeAlias = Mapping[Plan, frozenset[int]]
"""Node → the ids of its output columns that are used above it, or by the sink."""


def check_aggregations(plan: Plan) -> None:
    """Spark removes an aggregation of which another uses only the keys (`RemoveRedundantAggregates`, SPARK-33122)."""
    keep = required_columns(plan)
    if any(isinstance(node, logical.Aggregate) and _has_redundant_below(node, keep) for node in walk(plan)):
        raise Unpredictable("an aggregation of which only the keys are used")


def _has_redundant_below(upper: logical.Aggregate, keep: RequiredColumns) -> bool:
    """Whether it uses only the keys of an aggregation below, ignoring duplicates."""
    outputs = (output.expression for output in upper.outputs if output.column.id in keep[upper])
    functions = [call for expression in outputs for call in expression.aggregates]
    read = _read(key.expression for key in upper.keys) | _read(functions)
    below = upper.child
    while isinstance(below, logical.Project):
        read = _read(item.expression for item in below.named if item.column.id in read)
        below = below.child
    if not isinstance(below, logical.Aggregate) or not is_streaming(below) or not below.keys:
        return False
    only_keys = read <= {key.column.id for key in below.keys}
    return only_keys and {call.name for call in functions} <= IGNORING_DUPLICATES


def check_changing_values(plan: Plan) -> None:
    """Spark removes an unused value that is another in each run, and filters go below it (`ColumnPruning`)."""
    keep = required_columns(plan)
    for node in walk(plan):
        if isinstance(node, logical.Project) and not all(
            item.expression.is_deterministic or item.column.id in keep[node] for item in node.named
        ):
            raise Unpredictable("an unused column whose value is another in each run")


def check_event_times(plan: Plan) -> None:
    """Spark removes an unused event time from the input of a join, and no state is evicted by it (`ColumnPruning`)."""
    keep = required_columns(plan)
    sides = [side for node in walk(plan) if isinstance(node, logical.Join) for side in node.children]
    if any(item.is_event_time and item.id not in keep[side] for side in sides for item in side.columns):
        raise Unpredictable("an event time in the input of a join that nothing needs")


def required_columns(plan: Plan) -> RequiredColumns:
    """The used columns of every node. Operators do not see pruned columns, which causes SPARK-58979."""
    needed: dict[Plan, frozenset[int]] = {}
    _need(plan, frozenset(attribute.id for attribute in plan.columns), needed)
    return needed


def _need(plan: Plan, columns: frozenset[int], needed: dict[Plan, frozenset[int]]) -> None:
    needed[plan] = columns
    match plan:
        case logical.Filter():
            _need(plan.child, columns | plan.condition.references, needed)
        case logical.Watermark():
            _need(plan.child, columns | {plan.column.id}, needed)
        case logical.Project():
            _need(plan.child, _read(item.expression for item in plan.named if item.column.id in columns), needed)
        case logical.Union():
            for branch in plan.branches:
                wanted = frozenset(
                    its.id for ours, its in zip(plan.columns, branch.columns, strict=True) if ours.id in columns
                )
                _need(branch, wanted, needed)
        case logical.Aggregate():
            keys = {key.column.id for key in plan.keys}
            of_outputs = _read(output.expression for output in plan.outputs if output.column.id in columns) - keys
            _need(plan.child, _read(key.expression for key in plan.keys) | of_outputs, needed)
        case logical.Deduplicate():
            _need(plan.child, columns | {key.id for key in plan.keys}, needed)
        case logical.Limit() | logical.EmptySide():
            _need(plan.child, columns, needed)
        case logical.Sort():
            _need(plan.child, columns | _read(key.expression for key in plan.keys), needed)
        case logical.StateFunction() | logical.StatefulProcessor():
            _need(plan.child, frozenset(attribute.id for attribute in plan.child.columns), needed)
        case logical.Join():
            wanted = columns | plan.condition.references
            for side in plan.children:
                _need(side, wanted & {attribute.id for attribute in side.columns}, needed)
        case logical.StreamSource() | logical.LocalRelation():
            pass


def _read(expressions: Iterable[Expression]) -> frozenset[int]:
    return frozenset(id for expression in expressions for id in expression.references)


def optimized(plan: Plan, rules: Rules) -> Plan:
    """The plan with each filter where Spark runs it."""
    _check_random_comparisons(plan, rules)
    check_changing_values(plan)
    placed = _optimized(plan, rules)
    _check_joins(placed)
    cut = [node for node in walk(placed) if isinstance(node, logical.LocalRelation) and node.is_cut]
    if cut and beneath(placed) not in cut:
        raise Unpredictable("a filter that is always false, below others")
    return placed


def _check_random_comparisons(plan: Plan, rules: Rules) -> None:
    """A comparison may be replaced by its value. Source: `OptimizeRand`, SPARK-39651."""
    nodes = [node for expression in expressions(plan) for node in expression.walk()]
    compared = (node.args for node in nodes if node.name in ORDERINGS)
    if (
        any(node.name == "rand" for node in nodes)
        and rules.comparisons_with_rand_are_decided
        and any(
            any(side.name == "rand" for side in sides) and any(side.is_constant for side in sides) for sides in compared
        )
    ):
        raise Unpredictable("a comparison of rand() with a number, which Spark may decide before it places filters")


def _check_joins(plan: Plan) -> None:
    """`PushExtraPredicateThroughJoin` filters by parts of an OR (SPARK-32302), `ConstantPropagation` empties a side: neither is known."""
    for join in (node for node in walk(plan) if isinstance(node, logical.Join)):
        sides = {"left": join.left, "right": join.right}
        parts = [part for part in conjuncts(join.condition) if not _side_of(part, sides)]
        if any(arg.name == "and" for part in parts for node in part.walk() if node.name == "or" for arg in node.args):
            raise Unpredictable("an AND in an OR in the condition of a join")
        below = [node.condition for node in join.below if isinstance(node, logical.Filter)]
        known = [part for condition in below for part in conjuncts(condition) if part.references]
        pairs = [part.args for part in known if part.name in ("=", "<=>")]
        equal = {one.value: other for one, other in pairs if other.is_constant}
        if not all(evaluate(substitute(part, equal), {}) for part in known if part.references <= equal.keys()):
            raise Unpredictable("conditions on a side of a join that no row meets")


def _optimized(plan: Plan, rules: Rules) -> Plan:
    match plan:
        case logical.Filter():
            child = _optimized(plan.child, rules)
            if plan.condition.is_constant and rules.false_filters_cut_the_plan and stateful(child):
                if evaluate(plan.condition, {}):
                    return child
                if isinstance(beneath(child), logical.Join | logical.Union):
                    raise Unpredictable("a filter that is always false, which moves into a join or a union")
                return logical.LocalRelation(plan.columns, (), is_cut=True)
            # What is deterministic goes down beside what is not, but not through a filter that is not (`CombineFilters`).
            parts = sorted(conjuncts(plan.condition), key=lambda part: not part.is_deterministic)
            return reduce(lambda below, part: _place(part, below, rules), parts, child)
        case logical.Join():
            return _with_conditions_placed(plan, rules)
        case logical.Project() | logical.Aggregate():
            return replace(plan, child=_with_times(plan, _optimized(plan.child, rules), rules))
        case _:
            return with_children(plan, lambda child: _optimized(child, rules))


def _with_times(plan: logical.Project | logical.Aggregate, child: Plan, rules: Rules) -> Plan:
    """The child of a node that computes windows, without rows whose event time is null."""
    for item in plan.named if isinstance(plan, logical.Project) else plan.keys:
        if item.expression.kind == "window" and item.expression.args[0].kind == "column":
            child = _place(_not_null(item.expression.args[0]), child, rules)
    return child


def _not_null(expression: Expression) -> Expression:
    return Expression("call", BOOLEAN, (expression,), "is not null")


def _place(condition: Expression, plan: Plan, rules: Rules) -> Plan:
    """The plan with a filter pushed down as far as possible."""
    if not condition.is_deterministic:
        return logical.Filter(plan, condition)
    match plan:
        case logical.Filter() if plan.condition == condition:
            return plan
        case logical.Filter() if plan.condition.is_deterministic:
            child = _place(condition, plan.child, rules)
            # A filter that an outer join held up may pass the join that the other condition leaves of it.
            types = {join.how for join in map(beneath, (plan.child, child)) if isinstance(join, logical.Join)}
            return _place(plan.condition, child, rules) if len(types) > 1 else replace(plan, child=child)
        case logical.Watermark() if rules.filters_go_below_the_watermark and plan.column.id not in condition.references:
            return replace(plan, child=_place(condition, plan.child, rules))
        case logical.Project():
            made = {item.column.id: item.expression for item in plan.named}
            windows = any(made[id].kind in ("window", "session") for id in condition.references)
            if not windows and all(item.is_deterministic for item in made.values()):
                return replace(plan, child=_place(substitute(condition, made), plan.child, rules))
            return logical.Filter(plan, condition)
        case logical.Union():
            below = []
            for branch in plan.branches:
                names = {ours.id: column(its) for ours, its in zip(plan.columns, branch.columns, strict=True)}
                below.append(_place(substitute(condition, names), branch, rules))
            return replace(plan, branches=tuple(below))
        case logical.Aggregate() if condition.references and condition.references <= {
            key.column.id for key in plan.keys
        }:
            made = {key.column.id: key.expression for key in plan.keys}
            windows = any(made[id].kind in ("window", "session") for id in condition.references)
            if not windows and _is_deterministic(plan, rules):
                return replace(plan, child=_place(substitute(condition, made), plan.child, rules))
            return logical.Filter(plan, condition)
        case logical.Join():
            return _place_on_join(condition, plan, rules)
        case _:
            return logical.Filter(plan, condition)


def _is_deterministic(plan: logical.Aggregate, rules: Rules) -> bool:
    calls = {call.name for output in plan.outputs for call in output.expression.aggregates}
    return rules.aggregates_by_order_are_deterministic or not calls & {*BY_ORDER, "collect_set"}


def _place_on_join(condition: Expression, join: logical.Join, rules: Rules) -> Plan:
    narrowed = _narrowed_outer_join(condition, join)
    if narrowed.how != join.how:
        join = _with_conditions_placed(narrowed, rules)
    for side in ("left", "right"):
        inside = condition.references <= {attribute.id for attribute in getattr(join, side).columns}
        if inside and PRESERVED[join.how] in ((), (side,)):
            below: Plan = _place(condition, getattr(join, side), rules)
            return _with_inferred(replace(join, left=below) if side == "left" else replace(join, right=below), rules)
    if PRESERVED[join.how]:
        return logical.Filter(join, condition)
    # It becomes a condition of the join, from which others are inferred: `PushPredicateThroughJoin`.
    return _with_conditions_placed(replace(join, condition=all_of((*conjuncts(join.condition), condition))), rules)


def _narrowed_outer_join(condition: Expression, join: logical.Join) -> logical.Join:
    """The join with the type that is left if a filter above it removes the null rows of a side (`EliminateOuterJoin`)."""
    wanted, sides = must_not_be_null(condition), {"left": join.left, "right": join.right}
    if _side_of(condition, sides) and not evaluate(condition, dict.fromkeys(condition.references)):
        wanted = condition.references
    needed = {name for name, side in sides.items() if wanted & {attribute.id for attribute in side.columns}}
    kept = tuple(name for name in PRESERVED[join.how] if not needed - {name})
    how = join.how if kept == PRESERVED[join.how] else next(how for how in PRESERVED if PRESERVED[how] == kept)
    return replace(join, how=how)


def _with_conditions_placed(join: logical.Join, rules: Rules) -> logical.Join:
    """The join with conditions on one side, and NOT NULL conditions on its keys, pushed down as filters.

    Not on a side that an outer join preserves: such a row is emitted with nulls.
    """
    sides = {"left": optimized(join.left, rules), "right": optimized(join.right, rules)}
    not_null = must_not_be_null(join.condition)
    rest = []
    for part in conjuncts(join.condition):
        side = _side_of(part, sides)
        if side is not None and side not in PRESERVED[join.how]:
            sides[side] = _place(part, sides[side], rules)
        else:
            rest.append(part)
    for side in (name for name in sides if name not in PRESERVED[join.how]):
        for attribute in sides[side].columns:
            if attribute.id in not_null:
                sides[side] = _place(_not_null(column(attribute)), sides[side], rules)
    return _with_inferred(replace(join, left=sides["left"], right=sides["right"], condition=all_of(rest)), rules)


def _with_inferred(join: logical.Join, rules: Rules) -> logical.Join:
    """The join with filters on a column applied to the column it is compared with, unless the join preserves that side."""
    sides = {"left": join.left, "right": join.right}
    known = {*constraints(join.left), *constraints(join.right)}
    for part in inferred(join):
        side = _side_of(part, sides)
        if side is not None and side not in PRESERVED[join.how] and part not in known:
            known.add(part)
            if len(known) > MOST_CONDITIONS:
                raise Unpredictable(f"joins whose conditions imply more than {MOST_CONDITIONS:,} others")
            sides[side] = _place(part, sides[side], rules)
    return replace(join, left=sides["left"], right=sides["right"])


def _side_of(part: Expression, sides: Mapping[str, Plan]) -> str | None:
    """The side of a condition that uses only one side; None otherwise."""
    for name, plan in sides.items():
        if part.references and part.references <= {attribute.id for attribute in plan.columns}:
            return name
    return None


def constant_of(id: int, plan: Plan, silent: frozenset[str], rules: Rules) -> Expression | None:
    """The constant value of a column of a node in a micro-batch without new rows on the silent streams; None if it is not constant."""
    match plan:
        case logical.Project():
            expression = next(item.expression for item in plan.named if item.column.id == id)
            if expression.is_constant:
                return expression
            return constant_of(expression.value, plan.child, silent, rules) if expression.kind == "column" else None
        case logical.Filter() | logical.Limit():
            return constant_of(id, plan.child, silent, rules)
        case logical.Union():
            place = [attribute.id for attribute in plan.columns].index(id)
            vanish = rules.empty_union_branches_vanish
            branches = [branch for branch in plan.branches if not (vanish and is_empty(branch, silent))]
            return (
                constant_of(branches[0].columns[place].id, branches[0], silent, rules) if len(branches) == 1 else None
            )
        case _:
            return None


def with_empty_sides(plan: Plan, silent: frozenset[str]) -> Plan:
    """The plan with each side of a join of streams that Spark replaces by an empty relation before it infers filters.

    Source: the batch "LocalRelation early". Neither filters nor constants of such a side reach the other one.
    """
    changed = with_children(plan, lambda child: with_empty_sides(child, silent))
    if not (isinstance(changed, logical.Join) and changed.is_of_streams):
        return changed

    def emptied(side: Plan) -> Plan:
        return logical.EmptySide(side) if is_empty(side, silent) and not stateful(side) else side

    return with_children(changed, emptied)


def is_empty(plan: Plan, silent: frozenset[str]) -> bool:
    """Whether Spark knows that it has no new rows: `PropagateEmptyRelation` handles neither watermarks nor functions over groups."""
    kept = logical.Watermark | logical.StateFunction | logical.StatefulProcessor
    return streams(plan) <= silent and not any(isinstance(node, kept) for node in walk(plan))
