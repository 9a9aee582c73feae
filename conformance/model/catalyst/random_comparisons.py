"""Comparisons with ``rand()`` that Spark decides before a query runs. Source: `OptimizeRand`, SPARK-39651."""

from __future__ import annotations

from dataclasses import replace

from conformance.model.columns import BOOLEAN
from conformance.model.expressions import ORDERINGS, RANGES, Expression, evaluate
from conformance.model.rules import Rules


def decided(expression: Expression, rules: Rules) -> Expression:
    """The expression with each comparison of ``rand()`` with a number replaced by its value, if all random numbers give the same.

    What is left of AND and OR is simplified, as Spark does. Other comparisons stay, even if no random number changes them:
    ``rand() + 1 > 0``.

    Args:
        expression: a condition, or the value of a column.
        rules: whether the version does that.
    """
    if not rules.comparisons_with_rand_are_decided or not expression.is_random:
        return expression
    expression = replace(expression, args=tuple(decided(arg, rules) for arg in expression.args))
    if expression.name in ORDERINGS:
        return _decided_comparison(expression)
    if expression.name in ("and", "or"):
        return _simplified(expression)
    return expression


def _decided_comparison(comparison: Expression) -> Expression:
    sides = [one.name == "rand" for one in comparison.args]
    numbers = [one for one in comparison.args if one.is_constant]
    if not any(sides) or not numbers:
        return comparison
    found = {
        evaluate(replace(comparison, args=tuple(_literal(one, value) for one in comparison.args)), {})
        for value in RANGES["rand"]
    }
    return comparison if len(found) > 1 else _boolean(found.pop())


def _literal(side: Expression, rand: object) -> Expression:
    return Expression("literal", side.type, value=rand) if side.name == "rand" else side


def _simplified(junction: Expression) -> Expression:
    """Source: `BooleanSimplification`."""
    decisive = junction.name == "or"
    if any(one.kind == "literal" and one.value is decisive for one in junction.args):
        return _boolean(decisive)
    rest = [
        one
        for one in junction.args
        if not (one.kind == "literal" and one.value is not decisive and one.value is not None)
    ]
    return rest[0] if len(rest) == 1 else junction if rest else _boolean(not decisive)


def _boolean(value: object) -> Expression:
    return Expression("literal", BOOLEAN, value=value)
