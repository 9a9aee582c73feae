"""How a policy behaves in general, determined by replaying two small traces: an input goes silent, and a row from the far future.

The traces are scaled to a delay, so that policies with the same delay can be compared.
"""

from __future__ import annotations

from conformance.policies.engine_rules import EngineRules
from conformance.policies.replay import replay
from conformance.policies.trace import Boundary, ClockReading, Event, IdlePoll, Trace, TraceEntry

_STEPS = 20
_ROWS = 20
"""Rows per micro-batch: enough that a quantile ignores one of them."""


def silent_input(rules: EngineRules, delay: int, *, spoke: bool) -> str:
    """What happens to the watermark when one of two inputs is silent, in a short phrase.

    Args:
        rules: of the policy.
        delay: how long the policy waits, in milliseconds.
        spoke: whether the silent input had an event before.
    """
    unit = max(delay, 1)
    base = 1000 * unit
    entries: list[TraceEntry] = [ClockReading(base), Event(base, "on"), Boundary(), IdlePoll("off")]
    if spoke:
        entries.insert(2, Event(base, "off"))
    for step in range(1, _STEPS + 1):
        now = base + step * unit
        entries += [ClockReading(now), Event(now, "on"), Boundary(), IdlePoll("off")]
    replayed = replay(Trace(tuple(entries), ("on", "off")), rules)
    last = replayed.steps[-1]
    if last.downstream >= last.watermarks["on"] - 2 * unit:
        if rules.one_task:
            return "not waited for"
        return "left out" if "off" in last.idle else "follows the clock"
    first = next(step for step in replayed.steps if isinstance(step.entry, IdlePoll))
    if last.watermarks["off"] > first.watermarks["off"]:
        return "waited for, at its last event"
    return "waited for"


def far_future_row(rules: EngineRules, delay: int) -> str:
    """How many rows are late after one row from the far future, if event times otherwise follow the clock.

    Args:
        rules: of the policy.
        delay: how long the policy waits, in milliseconds.
    """
    unit = max(delay, 1)
    base = 1000 * unit
    entries: list[TraceEntry] = []
    for step in range(6):
        now = base + step * unit
        entries.append(ClockReading(now))
        entries += [Event(now - row * unit // (2 * _ROWS)) for row in range(_ROWS)]
        if step == 3:
            entries.append(Event(base + 1_000_000 * unit))
        entries.append(Boundary())
    replayed = replay(Trace(tuple(entries), window=unit), rules)
    after = [step for step in replayed.steps if isinstance(step.entry, Event) and step.now > base + 3 * unit]
    late = sum(bool(step.late) for step in after)
    if not late:
        return "no later row is late"
    return "all later rows are late" if late == len(after) else f"{late} of {len(after)} later rows are late"
