"""How long each side of a join is kept: state watermarks derived from the join condition.

Source: SPARK-22136, `StreamingJoinHelper`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from conformance.core.intervals import Interval
from conformance.core.operations import JoinType
from conformance.model.columns import Attribute, Value
from conformance.model.expressions import Expression, conjuncts, evaluate
from conformance.model.plan import Join
from conformance.model.rules import Rules

PRESERVED: Mapping[JoinType, tuple[str, ...]] = {
    "inner": (),
    "leftOuter": ("left",),
    "rightOuter": ("right",),
    "fullOuter": ("left", "right"),
    "leftSemi": (),
}
"""Join type → the sides whose rows are emitted even without a match, so that no join condition may filter them."""


@dataclass(frozen=True)
class Equality:
    """Two expressions that must be equal, one per side."""

    left: Expression
    right: Expression
    null_safe: bool = False
    """Whether it is ``<=>``, for which two nulls are equal. Spark then joins on computed keys, none of which is an event time."""


@dataclass(frozen=True)
class KeyBound:
    """State is evicted by an event-time column among the equal keys, at the watermark itself."""

    place: int
    """Index of the equality."""
    column: Attribute


@dataclass(frozen=True)
class Constant:
    """A constant term of a bound."""

    sign: int
    """1, or -1 if it is subtracted."""
    us: int
    kind: str
    """``interval`` or ``number``: Spark never takes one for the other."""
    negated: bool = field(default=False, compare=False)
    """Whether it is subtracted where it is written, rather than moved across the inequality."""


@dataclass(frozen=True)
class LowerBound:
    """A lower bound of event times: ``times`` × watermark (0, 1, or -1 if it is subtracted) plus constants."""

    times: int
    constants: tuple[Constant, ...]
    inclusive: bool
    """Whether the condition uses <= or >=."""

    def state_watermark_ms(self, watermark_ms: int, rules: Rules) -> int:
        """The bound in ms; state at or before it is evicted."""
        has_equal_terms = len(set(self.constants)) < len(self.constants)
        counted = self._counted(rules.equal_terms_of_a_bound) if has_equal_terms else self.constants
        offset_us = sum((1 if term.sign > 0 else rules.subtracted_term_sign) * term.us for term in counted)
        waits_ms = rules.inclusive_bound_ms if self.inclusive else rules.strict_bound_ms
        return int((self.times * watermark_ms * 1000 + offset_us) / 1000) - waits_ms

    def _counted(self, which: str) -> Iterable[Constant]:
        if which == "count each":
            return self.constants
        if which == "count once":
            return dict.fromkeys(self.constants)
        # The optimiser computes "- interval" before the terms are compared, but not "- number".
        return {(term, term.kind == "interval" and term.negated): term for term in self.constants}.values()


@dataclass(frozen=True)
class RangeBound:
    """State is evicted by the event time of its side, at the lowest bound of the inequalities."""

    column: Attribute
    bounds: tuple[LowerBound, ...]

    def state_watermark_ms(self, watermark_ms: int, rules: Rules) -> int:
        """The lowest of the bounds, in ms."""
        return rules.bound_of_several([bound.state_watermark_ms(watermark_ms, rules) for bound in self.bounds])


Bound = KeyBound | RangeBound | None
"""How the state of one side is evicted; None: never."""


def equalities(join: Join) -> tuple[Equality, ...]:
    """The equalities of the condition with one column of each side."""
    left = {column.id for column in join.left.columns}
    right = {column.id for column in join.right.columns}
    pairs = []
    for part in conjuncts(join.condition):
        if part.kind == "call" and part.name in ("=", "<=>"):
            for key, other in (part.args, part.args[::-1]):
                if key.references and other.references and key.references <= left and other.references <= right:
                    pairs.append(Equality(key, other, null_safe=part.name == "<=>"))
    return tuple(pairs)


@lru_cache(maxsize=64)
def bounds(join: Join) -> tuple[Bound, Bound]:
    """How the state of the left and right side is evicted."""
    by_key = _by_key(join)
    if by_key is not None:
        return by_key, by_key
    left, right = join.left.columns, join.right.columns
    return _by_range(left, right, join), _by_range(right, left, join)


def is_time_interval(join: Join) -> bool:
    """Whether an inequality of its condition compares the event times of both sides."""
    left, right = ({column.id for column in side.columns if column.is_event_time} for side in (join.left, join.right))
    return any(part.references & left and part.references & right for part in inequalities(join))


def inequalities(join: Join) -> Iterator[Expression]:
    return (part for part in conjuncts(join.condition) if part.kind == "call" and part.name in ("<", "<=", ">", ">="))


def _by_key(join: Join) -> KeyBound | None:
    columns = {column.id: column for column in (*join.left.columns, *join.right.columns)}
    pairs = equalities(join)
    for side in ("left", "right"):
        for place, pair in enumerate(pairs):
            key: Expression = getattr(pair, side)
            if key.kind == "column" and columns[key.value].is_event_time and not pair.null_safe:
                return KeyBound(place, columns[key.value])
    return None


def _by_range(side: tuple[Attribute, ...], other: tuple[Attribute, ...], join: Join) -> RangeBound | None:
    own = next((column for column in side if column.is_event_time), None)
    if own is None:
        return None
    lower = lower_bounds(side, other, join)
    return RangeBound(own, lower) if lower else None


def lower_bounds(
    side: tuple[Attribute, ...], other: tuple[Attribute, ...], join: Join, *, folded: bool = True
) -> tuple[LowerBound, ...]:
    """The lower bounds of a side from the inequalities of the condition.

    Each inequality is solved for the column of the side, with the watermark as the event time of the other side. Spark treats
    any column of the side as its event time: ``n > 1`` is a bound of one second, so the state is kept forever. An inequality
    that is not a sum of columns, intervals and numbers, also in casts to numbers and timestamps, gives no bound. In a micro-batch the
    optimiser has computed constants (``folded``), at the start it has not.
    """
    theirs = {column.id: column for column in other}
    ours = {column.id for column in side}
    if not any(column.is_event_time for column in other):
        return ()
    lower = []
    for part in inequalities(join):
        if len(part.references & ours) != 1 or len(part.references & theirs.keys()) > 1:
            continue
        low, high = part.args if part.name in ("<", "<=") else (part.args[1], part.args[0])
        terms = [*_terms(low, 1, folded=folded), *_terms(high, -1, folded=folded)]
        own = [term.sign for term in terms if isinstance(term, _Column) and term.id in ours]
        watermarks = [(term.sign, theirs[term.id]) for term in terms if isinstance(term, _Column) and term.id in theirs]
        if None in terms or own != [-1] or any(not column.is_event_time for _, column in watermarks):
            continue  # unknown to Spark, an upper bound, or a bound by a column without a watermark
        constants = tuple(term for term in terms if isinstance(term, Constant))
        lower.append(LowerBound(sum(sign for sign, _ in watermarks), constants, part.name in ("<=", ">=")))
    return tuple(lower)


@dataclass(frozen=True)
class _Column:
    """A column as a term of a sum."""

    sign: int
    id: int


_NUMBERS_AND_TIMES = frozenset(
    f"cast {source}to {name}"
    for source in ("", "number ", "timestamp ")
    for name in ("int", "bigint", "float", "double", "timestamp")
)
"""Casts that Spark looks through, as if they lost nothing."""


def _terms(
    expression: Expression, sign: int, *, folded: bool, negated: bool = False
) -> Iterator[_Column | Constant | None]:
    """The terms of a sum, in which a number means seconds; None for a term that Spark does not know."""
    if folded and expression.is_constant and expression.kind == "call":
        expression = Expression("literal", expression.type, value=evaluate(expression, {}))
    match expression.kind, expression.name:
        case "column", _:
            yield _Column(sign, expression.value)
        case "literal", _:
            yield _constant(expression, sign, negated=negated)
        case "call", "+" | "-":
            left, right = expression.args
            minus = expression.name == "-"
            yield from _terms(left, sign, folded=folded, negated=negated)
            yield from _terms(right, -sign if minus else sign, folded=folded, negated=negated != minus)
        case "call", "negative":
            yield from _terms(expression.args[0], -sign, folded=folded, negated=not negated)
        case "call", name if name in _NUMBERS_AND_TIMES or (folded and name == "to_timestamp"):
            yield from _terms(expression.args[0], sign, folded=folded, negated=negated)
        case _:
            yield None


def _constant(literal: Expression, sign: int, *, negated: bool) -> Constant | None:
    """The term of a literal. Months have no fixed length; an instant is taken for seconds although it is in µs."""
    value: Value = literal.value
    if isinstance(value, Interval):
        return None if value.months else Constant(sign, value.delay_us, "interval", negated)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Constant(sign, int(value * 1_000_000), "number", negated)
    return None
