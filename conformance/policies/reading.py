"""One trace read under the rules of one engine: which events are late, what is emitted, when each window is complete.

``read(trace, rules)`` is all there is to call; ``known.rules`` makes the rules from a name, ``from_case.trace_of`` a trace from
a Spark case. The result holds one ``Moment`` per entry of the trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from conformance.policies.coalescing import Sent
from conformance.policies.int64 import MIN
from conformance.policies.policy import Policy
from conformance.policies.rules import Rules
from conformance.policies.trace import Boundary, Clock, Entry, Event, Idle, Trace, in_unit


@dataclass(frozen=True)
class Moment:
    """What an entry of the trace has led to. Times are in the unit of event times; ``int64.MIN`` is no watermark yet."""

    number: int
    """From 1."""
    entry: Entry
    now: int
    """What the clock shows, in the trace's unit."""
    watermarks: Mapping[str, int]
    """Of each input, as its policy has it."""
    emitted: int | None
    """The watermark that operators were sent; None where none was."""
    downstream: int
    """The watermark that operators have."""
    late: bool | None = None
    """Of an event: whether it is dropped."""
    window: int | None = None
    """Of an event: the end of its window, where there are windows."""
    closed: tuple[int, ...] = ()
    """Ends of the windows with events that are complete now, in order."""
    idle: tuple[str, ...] = ()
    """Inputs that nobody waits for."""


@dataclass(frozen=True)
class Reading:
    """A trace as an engine sees it."""

    trace: Trace
    rules: Rules
    moments: tuple[Moment, ...]
    """One per entry, in order."""
    open: tuple[int, ...] = ()
    """Ends of the windows with events that never were complete."""

    @property
    def late(self) -> tuple[Moment, ...]:
        """The events that were dropped."""
        return tuple(moment for moment in self.moments if moment.late)

    @property
    def closings(self) -> Mapping[int, Moment]:
        """End of a window → the moment at which it was complete first."""
        found: dict[int, Moment] = {}
        for moment in self.moments:
            for window in moment.closed:
                found.setdefault(window, moment)
        return found

    @property
    def downstream(self) -> int:
        """The watermark at the end."""
        return self.moments[-1].downstream if self.moments else self.rules.coalescing.initial


def read(trace: Trace, rules: Rules) -> Reading:
    """Read a trace as the engine with these rules would.

    Args:
        trace: what arrives. Its event times must be in the unit of the rules; its clock is converted. Before its first
            reading the clock shows that reading, and 0 where there is none.
        rules: made by ``known.rules``, or put together from parts.
    """
    engine = _Engine.started(trace, rules)
    moments: list[Moment] = []
    for number, entry in enumerate(trace.entries, 1):
        engine, moment = engine.after(number, entry)
        moments.append(moment)
    return Reading(trace, rules, tuple(moments), tuple(sorted(engine.open)))


@dataclass(frozen=True)
class _Engine:
    """What an engine remembers between two entries."""

    trace: Trace
    rules: Rules
    policies: Mapping[str, Policy]
    sent: Mapping[str, int]
    """By each input, or by all of them together under the key of the first."""
    now: int
    downstream: int
    open: frozenset[int] = field(default_factory=frozenset)

    @classmethod
    def started(cls, trace: Trace, rules: Rules) -> _Engine:
        now = next((entry.reading for entry in trace.entries if isinstance(entry, Clock)), 0)
        policy = rules.policy.started(in_unit(now, trace.clock_unit, rules.clock_unit))
        inputs = trace.inputs[:1] if rules.one_task else trace.inputs
        return cls(
            trace,
            rules,
            policies=dict.fromkeys(inputs, policy),
            sent=dict.fromkeys(inputs, MIN),
            now=now,
            downstream=rules.coalescing.initial,
        )

    def after(self, number: int, entry: Entry) -> tuple[_Engine, Moment]:
        if isinstance(entry, Clock):
            # The hands of the clock move nothing: the engine has to look.
            engine = replace(self, now=entry.reading)
            return engine, engine._moment(number, entry, None)
        engine, emitted = replace(self, policies=self._policies(entry))._emitted()
        closed = tuple(sorted(end for end in engine.open if self.rules.lateness.complete(end, engine.downstream)))
        engine = replace(engine, open=engine.open.difference(closed))
        moment = replace(engine._moment(number, entry, emitted), closed=closed)
        if not isinstance(entry, Event):
            return engine, moment
        window = self.trace.window_end(entry.at)
        own = engine.policies[engine._key(entry.input)].watermark
        late = self.rules.lateness.late(entry.at, window, own, engine.downstream)
        if window is not None and not late:
            engine = replace(engine, open=engine.open | {window})
        return engine, replace(moment, late=late, window=window)

    def _key(self, name: str) -> str:
        return self.trace.inputs[0] if self.rules.one_task else name

    @property
    def _now(self) -> int:
        """The clock in the unit that policies read it in."""
        return in_unit(self.now, self.trace.clock_unit, self.rules.clock_unit)

    def _policies(self, entry: Event | Idle | Boundary) -> dict[str, Policy]:
        found = dict(self.policies)
        match entry:
            case Event(at, name):
                found[self._key(name)] = found[self._key(name)].event(at, self._now)
            case Idle(name):
                for one in found if name is None else [self._key(name)]:
                    found[one] = found[one].poll(self._now)
            case Boundary():
                found = {name: policy.boundary(self._now) for name, policy in found.items()}
        if self.rules.one_source:
            return {name: policy.poll(self._now) for name, policy in found.items()}
        return found

    def _emitted(self) -> tuple[_Engine, int | None]:
        """The watermarks that are due, and what reaches the operators."""
        if self.rules.one_source:
            joined = self.rules.coalescing.together(self._sent(self._watermarks()), MIN)
            due = self.rules.throttle.emit(joined, self.downstream)
            return (self, None) if due is None else (replace(self, downstream=due), due)
        sent = dict(self.sent)
        for name, policy in self.policies.items():
            due = None if policy.idle(self._now) else self.rules.throttle.emit(policy.watermark, sent[name])
            sent[name] = sent[name] if due is None else due
        downstream = self.rules.coalescing.together(self._sent(sent), self.downstream)
        engine = replace(self, sent=sent, downstream=downstream)
        return engine, downstream if downstream > self.downstream else None

    def _sent(self, watermarks: Mapping[str, int]) -> tuple[Sent, ...]:
        return tuple(Sent(watermarks[name], policy.idle(self._now)) for name, policy in self.policies.items())

    def _watermarks(self) -> dict[str, int]:
        return {name: policy.watermark for name, policy in self.policies.items()}

    def _moment(self, number: int, entry: Entry, emitted: int | None) -> Moment:
        watermarks = {name: self.policies[self._key(name)].watermark for name in self.trace.inputs}
        return Moment(
            number=number,
            entry=entry,
            now=self.now,
            watermarks=watermarks,
            emitted=emitted,
            downstream=self.downstream,
            idle=tuple(self._idle()),
        )

    def _idle(self) -> Iterator[str]:
        return (name for name in self.trace.inputs if self.policies[self._key(name)].idle(self._now))
