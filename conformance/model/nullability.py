"""Which columns the physical plan knows to be NOT NULL: state is written for that, and a run may begin with another plan.

Where a stream has nothing new, its filters are gone from the plan of that micro-batch, and with them what they say of columns.
Source: `FilterExec.output`, `ConvertToLocalRelation`, `StateSchemaCompatibilityChecker`, SPARK-57003.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from conformance.model.expressions import Expression, must_not_be_null
from conformance.model.optimizer import vanishes
from conformance.model.plan import Deduplicate, Filter, Join, Limit, Plan, Project, Source, Union, Watermark
from conformance.model.pruning import Needed
from conformance.model.rules import Rules

NotNull: TypeAlias = tuple[bool, ...]
"""Of each column of whole rows in the state, whether it is NOT NULL."""


def not_null_in_state(node: Plan, silent: frozenset[str], needed: Needed, rules: Rules) -> NotNull:
    """What the state of an operator would be written for.

    Args:
        node: an operator with state; of an optimised plan.
        silent: the streams that have nothing new in the micro-batch.
        needed: which columns the plan keeps.
        rules: say what the state of an operator holds.
    """
    match node:
        case Join():
            inputs = node.children
        case Deduplicate(within_watermark=False) if rules.deduplication_state_compares == "whole rows":
            inputs = (node.child,)
        case _:
            return ()
    asked = _Asked(silent, needed, rules)
    return tuple(
        one.id in known
        for side, known in [(side, asked.not_null(side)) for side in inputs]
        for one in side.columns
        if one.id in needed.of(side)
    )


class _Asked:
    def __init__(self, silent: frozenset[str], needed: Needed, rules: Rules) -> None:
        self._silent = silent
        self._needed = needed
        self._rules = rules

    def not_null(self, node: Plan) -> frozenset[int]:
        """Ids of the columns that are NOT NULL in what a node hands on."""
        match node:
            case Filter():
                conditions, below = _together(node)
                if self._is_nothing(below) or self._is_narrowed(node, [below]):
                    return frozenset()
                return self.not_null(below).union(*map(must_not_be_null, conditions))
            case Project():
                return self.not_null(node.child) if self._is_needless(node) else frozenset()
            case Watermark() | Deduplicate() | Limit():
                return frozenset() if self._is_narrowed(node, [node.child]) else self.not_null(node.child)
            case Union():
                return self._of_all_branches(node)
            case Join(is_of_streams=True):
                if self._is_narrowed(node, node.children):
                    return frozenset()
                left, right = map(self.not_null, node.children)
                return {
                    "inner": left | right,
                    "leftOuter": left,
                    "leftSemi": left,
                    "rightOuter": right,
                    "fullOuter": frozenset[int](),
                }[node.how]
            case _:
                return frozenset()

    def _of_all_branches(self, union: Union) -> frozenset[int]:
        left = [one for one in union.branches if not vanishes(one, self._silent, self._rules)]
        if len(left) < 2:
            return frozenset()
        known = map(self.not_null, left)
        by_place = [
            {place for place, one in enumerate(b.columns) if one.id in of} for b, of in zip(left, known, strict=True)
        ]
        return frozenset(union.columns[place].id for place in set.intersection(*by_place))

    def _is_nothing(self, node: Plan) -> bool:
        """Whether a micro-batch has no plan for it but an empty relation."""
        match node:
            case Source():
                return node.stream in self._silent
            case Filter() | Project():
                return self._is_nothing(node.child)
            case _:
                return False

    def _is_narrowed(self, node: Plan, below: Iterable[Plan]) -> bool:
        """Whether a node reads columns that nothing above it needs: a projection cuts them off, and knows nothing of NULL."""
        return bool(frozenset().union(*map(self._needed.of, below)) - self._needed.of(node))

    def _is_needless(self, node: Project) -> bool:
        """Whether a projection hands on what it gets, as it gets it, and so is none. Constants may be left to what is above it."""
        made = [one for one in node.named if one.column.id in self._needed.of(node)]
        if self._rules.constant_columns_of_joins == "of the present plan":
            made = [one for one in made if not one.expression.is_constant]
        given = [one.id for one in node.child.columns if one.id in self._needed.of(node.child)]
        return [one.column.id for one in made] == given and all(one.expression.kind == "column" for one in made)


def _together(node: Filter) -> tuple[list[Expression], Plan]:
    """The conditions of filters that stand upon each other, and what is below them."""
    conditions, below = [node.condition], node.child
    while isinstance(below, Filter):
        conditions.append(below.condition)
        below = below.child
    return conditions, below
