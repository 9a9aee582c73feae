"""How long each side of a join is kept: state watermarks derived from the join condition. Source: SPARK-22136."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from conformance.model.columns import Attribute, Value
from conformance.model.errors import Unpredictable
from conformance.model.expressions import Expression, conjuncts
from conformance.model.intervals import Interval
from conformance.model.plan import Join
from conformance.model.rules import Rules


@dataclass(frozen=True)
class Equality:
    """Two expressions that must be equal, one per side."""

    left: Expression
    right: Expression


@dataclass(frozen=True)
class KeyBound:
    """State is evicted by an event-time column among the equal keys, at the watermark itself."""

    place: int
    """Index of the equality."""
    column: Attribute


@dataclass(frozen=True)
class LowerBound:
    """A lower bound of event times: ``times`` × watermark (0, 1, or -1 if it is subtracted) plus an offset in µs."""

    times: int
    offset_us: int
    inclusive: bool
    """Whether the condition uses <= or >=."""


@dataclass(frozen=True)
class RangeBound:
    """State is evicted by the event time of its side, at the lowest bound of the inequalities."""

    column: Attribute
    bounds: tuple[LowerBound, ...]

    def state_watermark_ms(self, watermark_ms: int, rules: Rules) -> int:
        """The lowest of the bounds, in ms."""
        return min(
            int((bound.times * watermark_ms * 1000 + bound.offset_us) / 1000)
            - (rules.inclusive_bound_ms if bound.inclusive else 0)
            for bound in self.bounds
        )


Bound = KeyBound | RangeBound | None
"""How the state of one side is evicted; None: never."""


def equalities(join: Join) -> tuple[Equality, ...]:
    """The equalities of the condition with one column of each side."""
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


@lru_cache(maxsize=64)
def bounds(join: Join) -> tuple[Bound, Bound]:
    """How the state of the left and right side is evicted.

    Raises:
        Unpredictable: the model does not understand an inequality.
    """
    by_key = _by_key(join)
    if by_key is not None:
        return by_key, by_key
    return _by_range(join.left.columns, join.right.columns, join), _by_range(
        join.right.columns, join.left.columns, join
    )


def is_time_interval(join: Join) -> bool:
    """Whether an inequality of its condition compares the event times of both sides."""
    left, right = ({one.id for one in side.columns if one.is_event_time} for side in (join.left, join.right))
    return any(part.references & left and part.references & right for part in inequalities(join))


def inequalities(join: Join) -> Iterator[Expression]:
    return (part for part in conjuncts(join.condition) if part.kind == "call" and part.name in ("<", "<=", ">", ">="))


def _by_key(join: Join) -> KeyBound | None:
    columns = {one.id: one for one in (*join.left.columns, *join.right.columns)}
    pairs = equalities(join)
    for side in ("left", "right"):
        for place, pair in enumerate(pairs):
            key: Expression = getattr(pair, side)
            if key.kind == "column" and columns[key.value].is_event_time:
                return KeyBound(place, columns[key.value])
    return None


def _by_range(side: tuple[Attribute, ...], other: tuple[Attribute, ...], join: Join) -> RangeBound | None:
    own = next((one for one in side if one.is_event_time), None)
    if own is None:
        return None
    found = lower_bounds(side, other, join)
    return RangeBound(own, found) if found else None


def lower_bounds(side: tuple[Attribute, ...], other: tuple[Attribute, ...], join: Join) -> tuple[LowerBound, ...]:
    """The lower bounds of a side from the inequalities of the condition.

    Each inequality is solved for the column of the side, with the watermark as the event time of the other side. Spark treats
    any column of the side as its event time: ``n > 1`` is a bound of one second, so the state is kept forever.

    Raises:
        Unpredictable: an inequality is not a sum of columns, intervals and numbers.
    """
    theirs = {one.id: one for one in other}
    ours = {one.id for one in side}
    if not any(one.is_event_time for one in other):
        return ()
    found = []
    for part in inequalities(join):
        if len(part.references & ours) != 1 or len(part.references & theirs.keys()) > 1:
            continue
        low, high = part.args if part.name in ("<", "<=") else (part.args[1], part.args[0])
        terms = _terms(low, 1), _terms(high, -1)
        if terms[0] is None or terms[1] is None:
            continue
        columns = [*terms[0].columns, *terms[1].columns]
        own = [sign for id, sign in columns if id in ours]
        watermarks = [(sign, theirs[id].is_event_time) for id, sign in columns if id in theirs]
        if own != [-1] or any(not tagged for _, tagged in watermarks):
            continue  # an upper bound, or a bound by a column without a watermark
        offset = terms[0].offset_us + terms[1].offset_us
        found.append(LowerBound(sum(sign for sign, _ in watermarks), offset, part.name in ("<=", ">=")))
    return tuple(found)


@dataclass(frozen=True)
class _Terms:
    """A sum of columns with their signs, and µs."""

    columns: tuple[tuple[int, int], ...]
    offset_us: int


def _terms(expression: Expression, sign: int) -> _Terms | None:
    """The terms of a sum, in which a number means seconds; None if it contains months, which have no fixed length.

    Raises:
        Unpredictable: the expression is not a sum.
    """
    match expression.kind, expression.name:
        case "column", _:
            return _Terms(((expression.value, sign),), 0)
        case "literal", _:
            return _constant(expression.value, sign)
        case "call", "+" | "-":
            one, other = expression.args
            left, right = _terms(one, sign), _terms(other, sign if expression.name == "+" else -sign)
            if left is None or right is None:
                return None
            return _Terms((*left.columns, *right.columns), left.offset_us + right.offset_us)
        case _:
            raise Unpredictable("a range in a join condition that is not a sum of columns and intervals")


def _constant(value: Value, sign: int) -> _Terms | None:
    if isinstance(value, Interval):
        return None if value.months else _Terms((), sign * value.delay_us)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _Terms((), sign * int(value * 1_000_000))
    return None
