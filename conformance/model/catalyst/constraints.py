"""Constraints of a node from the filters below it, and the constraints they imply for the other side of a join.

Source: Spark's `QueryPlanConstraints` and `InferFiltersFromConstraints`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conformance.model.columns import BOOLEAN, Attribute
from conformance.model.expressions import Expression, NamedExpression, column, conjuncts, substitute
from conformance.model.plan import Aggregate, Deduplicate, Filter, Join, Limit, Plan, Project, Union, Watermark


def inferred(join: Join) -> Iterator[Expression]:
    """The constraints of a column, applied to each column that a join compares it with."""
    known = [*conjuncts(join.condition), *constraints(join.left), *constraints(join.right)]
    for equality in known:
        if not (
            equality.kind == "call" and equality.name == "=" and all(one.kind == "column" for one in equality.args)
        ):
            continue
        one, other = equality.args
        for condition in known:
            if condition == equality:
                continue
            if one.value in condition.references:
                yield substitute(condition, {one.value: other})
            if other.value in condition.references:
                yield substitute(condition, {other.value: one})


def constraints(plan: Plan) -> tuple[Expression, ...]:
    """Conditions that all rows of a node meet, as far as Spark infers them."""
    match plan:
        case Filter():
            return (*(part for part in conjuncts(plan.condition) if part.is_deterministic), *constraints(plan.child))
        case Watermark() | Deduplicate() | Limit():
            return constraints(plan.child)
        case Project():
            return (*_constants(plan.named), *_renamed_by(plan.named, constraints(plan.child)))
        case Aggregate():
            return tuple(_renamed_by(plan.outputs, _renamed_by(plan.keys, constraints(plan.child))))
        case Union():
            of_each = [tuple(_renamed(constraints(branch), branch.columns, plan.columns)) for branch in plan.branches]
            return tuple(one for one in of_each[0] if all(one in others for others in of_each[1:]))
        case Join(how="inner"):
            return (*conjuncts(plan.condition), *constraints(plan.left), *constraints(plan.right))
        case Join(how="leftSemi" | "leftOuter"):
            return constraints(plan.left)
        case Join(how="rightOuter"):
            return constraints(plan.right)
        case _:
            return ()


def _constants(named: Iterable[NamedExpression]) -> Iterator[Expression]:
    """The values of constant columns. Source: `UnaryNode.getAllValidConstraints`."""
    for one in named:
        if one.expression.is_constant:
            yield Expression("call", BOOLEAN, (column(one.column), one.expression), "<=>")


def _renamed_by(named: Iterable[NamedExpression], conditions: Iterable[Expression]) -> Iterator[Expression]:
    """The conditions on columns that are passed through, by their new names."""
    names = {one.expression.value: column(one.column) for one in named if one.expression.kind == "column"}
    for condition in conditions:
        if condition.references <= names.keys():
            yield substitute(condition, names)


def _renamed(
    conditions: Iterable[Expression], by: Iterable[Attribute], to: Iterable[Attribute]
) -> Iterator[Expression]:
    names = {its.id: column(ours) for its, ours in zip(by, to, strict=True)}
    return (substitute(condition, names) for condition in conditions)
