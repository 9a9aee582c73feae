"""What a policy does in general, found out by reading two small traces: an input that falls silent, a row from the far future.

The traces are made to the measure of a delay, so that policies with the same delay can be compared.
"""

from __future__ import annotations

from conformance.policies.reading import read
from conformance.policies.rules import Rules
from conformance.policies.trace import Boundary, Clock, Entry, Event, Idle, Trace

_STEPS = 20
_ROWS = 20
"""Rows of a micro-batch, so many that one of them is none to a quantile."""


def silent_input(rules: Rules, delay: int, *, spoke: bool) -> str:
    """What becomes of the watermark of two inputs of which one goes on and the other is silent.

    Args:
        rules: of the policy.
        delay: about how long it waits, in milliseconds.
        spoke: whether the silent one had an event before.

    Returns:
        In a few words, what it means to whoever waits for the watermark.
    """
    unit = max(delay, 1)
    base = 1000 * unit
    entries: list[Entry] = [Clock(base), Event(base, "on"), Boundary(), Idle("off")]
    if spoke:
        entries.insert(2, Event(base, "off"))
    for step in range(1, _STEPS + 1):
        now = base + step * unit
        entries += [Clock(now), Event(now, "on"), Boundary(), Idle("off")]
    reading = read(Trace(tuple(entries), ("on", "off")), rules)
    last = reading.moments[-1]
    if last.downstream >= last.watermarks["on"] - 2 * unit:
        if rules.one_task:
            return "not waited for"
        return "left out" if "off" in last.idle else "follows the clock"
    first = next(moment for moment in reading.moments if isinstance(moment.entry, Idle))
    if last.watermarks["off"] > first.watermarks["off"]:
        return "waited for, at its last event"
    return "waited for"


def far_future_row(rules: Rules, delay: int) -> str:
    """Whether rows that follow the clock as before are late after one row from the far future.

    Args:
        rules: of the policy.
        delay: about how long it waits, in milliseconds.
    """
    unit = max(delay, 1)
    base = 1000 * unit
    entries: list[Entry] = []
    for step in range(6):
        now = base + step * unit
        entries.append(Clock(now))
        entries += [Event(now - row * unit // (2 * _ROWS)) for row in range(_ROWS)]
        if step == 3:
            entries.append(Event(base + 1_000_000 * unit))
        entries.append(Boundary())
    reading = read(Trace(tuple(entries), window=unit), rules)
    after = [moment for moment in reading.moments if isinstance(moment.entry, Event) and moment.now > base + 3 * unit]
    late = sum(bool(moment.late) for moment in after)
    if not late:
        return "no later row is late"
    return "all later rows are late" if late == len(after) else f"{late} of {len(after)} later rows are late"
