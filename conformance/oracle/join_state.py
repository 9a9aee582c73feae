"""When the state of a stream-stream join lets a row go: from the condition and the delays, by the reference model.

The bounds are those with which the model evicts (`conformance.model.join_bounds`), so that the cases that prove the model prove this.
"""

from dataclasses import dataclass
from typing import Self

from conformance.core.errors import WrongUsage
from conformance.core.intervals import NotAnInterval, parse_interval
from conformance.core.spark_types import parse_schema
from conformance.core.values import show
from conformance.core.versions import SparkVersion
from conformance.model.catalogue import rules_of
from conformance.model.columns import Ids
from conformance.model.errors import Refused, Unpredictable
from conformance.model.frame import Frame
from conformance.model.join_bounds import Bound, KeyBound, bounds
from conformance.model.plan import Join, walk
from conformance.model.rules import Rules

_US = 1000


class CannotTell(WrongUsage):
    """The condition or a delay is wrong, or the model does not know it."""


@dataclass(frozen=True)
class JoinInput:
    column: str
    delay: str | None = None
    """None if it has no watermark."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``order_time 10 minutes``, or ``order_time`` without a watermark."""
        column, _, delay = text.strip().partition(" ")
        return cls(column, delay.strip() or None)

    def __str__(self) -> str:
        return f"{self.column}, {f'delay {self.delay}' if self.delay else 'no watermark'}"

    @property
    def delay_ms(self) -> int:
        """The delay in ms, 0 without a watermark. Raises CannotTell: it is not an interval."""
        try:
            return parse_interval(self.delay).delay_ms if self.delay else 0
        except NotAnInterval:
            raise CannotTell(f"{self.delay!r} is not a delay: write '{self.column} 10 minutes'") from None


@dataclass(frozen=True)
class KeptUntil:
    side: str
    column: str
    at_ms: int
    watermark_ms: int | None
    """The lowest watermark of the query that evicts it; None if none does."""
    seen_ms: tuple[tuple[str, int], ...] = ()
    """Column and event time for each input with a watermark: once rows at these times have been processed, the watermark is there."""

    def __str__(self) -> str:
        head = f"{self.side}: a row at {self.column} = {show(self.at_ms * _US)}"
        if self.watermark_ms is None:
            return f"{head} is never evicted"
        rows = " and ".join(f"{column} = {show(at * _US)}" for column, at in self.seen_ms)
        return f"{head} is evicted when the watermark reaches {show(self.watermark_ms * _US)}: after rows at {rows}"


def join_state(
    condition: str, left: JoinInput, right: JoinInput, version: SparkVersion, at_ms: int
) -> tuple[KeptUntil, KeptUntil]:
    """When a row of each side is evicted, with the policy min for several watermarks.

    The condition is on the two event-time columns, as in the join; conditions on other columns do not matter and are left out. The event
    time of both rows is in ms. Raises CannotTell: the condition or a delay is wrong, or the model does not know it.
    """
    rules = rules_of(version)
    ids = Ids()
    try:
        frames = [_frame(name, input, rules, ids) for name, input in (("left", left), ("right", right))]
        joined = frames[0].join(frames[1], condition, "inner").plan
    except Refused as refused:
        hint = "Write only what concerns the two event-time columns, and leave out conditions on other columns"
        raise CannotTell(f"Spark {version} rejects this: {refused.message.rstrip('.')}. {hint}") from None
    except Unpredictable as unknown:
        raise CannotTell(f"{condition!r}: {unknown}") from None
    watermarked = [input for input in (left, right) if input.delay]

    def kept(side: str, input: JoinInput, bound: Bound) -> KeptUntil:
        watermark = _evicting(bound, at_ms, rules)
        if watermark is None or not watermarked:
            return KeptUntil(side, input.column, at_ms, None)
        times = tuple((other.column, watermark + other.delay_ms) for other in watermarked)
        return KeptUntil(side, input.column, at_ms, watermark, times)

    of_left, of_right = bounds(next(node for node in walk(joined) if isinstance(node, Join)))
    return kept("left", left, of_left), kept("right", right, of_right)


def _frame(name: str, input: JoinInput, rules: Rules, ids: Ids) -> Frame:
    if not input.column.isidentifier():
        raise CannotTell(f"{input.column!r} is not a column: write '{name}_time 10 minutes'")
    frame = Frame.read(name, parse_schema(f"{input.column} TIMESTAMP"), rules, ids)
    input.delay_ms  # noqa: B018 – said before Spark's own wording
    return frame.with_watermark(input.column, input.delay) if input.delay else frame


def _evicting(bound: Bound, at_ms: int, rules: Rules) -> int | None:
    """The lowest watermark at which a row is evicted; None if the bound does not move with the watermark."""
    if bound is None:
        return None
    if isinstance(bound, KeyBound):
        return at_ms
    if any(part.times != 1 for part in bound.bounds):
        return None
    reached = at_ms - bound.state_watermark_ms(0, rules)
    return reached if rules.join_state_goes(at_ms * _US, bound.state_watermark_ms(reached, rules)) else reached + 1
