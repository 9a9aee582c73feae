"""How long a side of a join must be kept: state watermarks, derived from the join's condition. Source: SPARK-22136."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.model.columns import Column
from conformance.model.expressions import Expression, conjuncts
from conformance.model.intervals import Interval
from conformance.model.plan import Join
from conformance.model.rules import Rules
from conformance.model.unpredictable import Unpredictable


@dataclass(frozen=True)
class Equality:
    """A pair of expressions that must be equal, the left side's first."""

    left: Expression
    right: Expression


@dataclass(frozen=True)
class ByKey:
    """State goes by an event-time column among the equal keys, at the watermark itself."""

    place: int
    """Which of the equal pairs."""
    column: Column


@dataclass(frozen=True)
class ByRange:
    """State goes by the side's event time, at the watermark moved by what the condition's ranges allow."""

    column: Column
    offsets_us: tuple[tuple[int, bool], ...]
    """Of each bound: what is added to the watermark, and whether the bound is inclusive."""

    def state_watermark_ms(self, watermark_ms: int, rules: Rules) -> int:
        """The lowest of the bounds."""
        return min(
            int((watermark_ms * 1000 + offset) / 1000) - (rules.inclusive_bound_ms if inclusive else 0)
            for offset, inclusive in self.offsets_us
        )


Bound = ByKey | ByRange | None
"""How one side's state goes; None: never."""


def equalities(join: Join) -> tuple[Equality, ...]:
    """The pairs that the condition wants equal, one side each."""
    left = {one.id for one in join.left.columns}
    right = {one.id for one in join.right.columns}
    found = []
    for part in conjuncts(join.condition):
        if part.kind == "call" and part.name == "=":
            one, other = part.args
            if one.references and other.references and one.references <= left and other.references <= right:
                found.append(Equality(one, other))
            elif one.references and other.references and one.references <= right and other.references <= left:
                found.append(Equality(other, one))
    return tuple(found)


def bounds(join: Join) -> tuple[Bound, Bound]:
    """How the left side's state goes, and the right side's.

    Raises:
        Unpredictable: the condition compares times in a way the model does not read.
    """
    by_key = _by_key(join)
    if by_key is not None:
        return by_key, by_key
    return _by_range(join.left.columns, join.right.columns, join), _by_range(
        join.right.columns, join.left.columns, join
    )


def is_time_interval(join: Join) -> bool:
    """Whether its condition bounds one side's time by the other's."""
    return any(
        ranges_of(one.columns, other.columns, join) for one, other in ((join.left, join.right), (join.right, join.left))
    )


def _by_key(join: Join) -> ByKey | None:
    columns = {one.id: one for one in (*join.left.columns, *join.right.columns)}
    pairs = equalities(join)
    for side in ("left", "right"):
        for place, pair in enumerate(pairs):
            key: Expression = getattr(pair, side)
            if key.kind == "column" and columns[key.value].is_event_time:
                return ByKey(place, columns[key.value])
    return None


def _by_range(side: tuple[Column, ...], other: tuple[Column, ...], join: Join) -> ByRange | None:
    own = next((one for one in side if one.is_event_time), None)
    if own is None:
        return None
    offsets = ranges_of(side, other, join)
    return ByRange(own, offsets) if offsets else None


def ranges_of(side: tuple[Column, ...], other: tuple[Column, ...], join: Join) -> tuple[tuple[int, bool], ...]:
    """The lower bounds that the condition gives a side's times by the other side's event time: offset in µs, inclusive."""
    theirs = {one.id for one in other if one.is_event_time}
    ours = {one.id for one in side}
    tagged = {one.id for one in side if one.is_event_time}
    found = []
    for part in conjuncts(join.condition):
        if part.kind != "call" or part.name not in ("<", "<=", ">", ">="):
            continue
        low, high = part.args if part.name in ("<", "<=") else reversed(part.args)
        # low < high bounds what stands in `high` from below.
        if not (high.references & ours and low.references & theirs):
            continue
        upper, lower = _linear(high), _linear(low)
        if upper is None or lower is None:
            raise Unpredictable("a range in the condition of a join that is more than a column plus an interval")
        if upper[0] not in tagged and tagged:
            raise Unpredictable("a range over a column that is not the event time")
        if upper[1].months or lower[1].months:
            continue  # a month has no fixed length, and so gives no bound
        found.append((lower[1].delay_us - upper[1].delay_us, part.name in ("<=", ">=")))
    return tuple(found)


def _linear(expression: Expression) -> tuple[int, Interval] | None:
    """A column and what is added to it; None where the expression is more."""
    if expression.kind == "column":
        return expression.value, Interval()
    if expression.kind == "call" and expression.name in ("+", "-") and len(expression.args) == 2:
        one, other = expression.args
        if other.kind == "literal" and isinstance(other.value, Interval):
            inner = _linear(one)
            added = other.value if expression.name == "+" else -other.value
        elif expression.name == "+" and one.kind == "literal" and isinstance(one.value, Interval):
            inner, added = _linear(other), one.value
        else:
            return None
        if inner is None:
            return None
        before = inner[1]
        return inner[0], Interval(before.months + added.months, before.days + added.days, before.micros + added.micros)
    return None
