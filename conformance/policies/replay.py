"""A trace to replay under the rules of one engine: which events are late, what is emitted, when each window is complete."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from conformance.policies.rules import EngineRules, InputWatermark, WatermarkPolicy
from conformance.policies.trace import MIN, BatchBoundary, ClockReading, Event, IdlePoll, Trace, TraceEntry, in_unit


@dataclass(frozen=True)
class ReplayStep:
    """The result of one trace entry. Times are in the unit of event times; ``MIN`` means no watermark yet."""

    number: int
    entry: TraceEntry
    now: int
    """The clock, in the unit of the trace."""
    watermarks: Mapping[str, int]
    """What each input's policy computes."""
    emitted: int | None
    """The watermark sent to downstream operators; None if none was."""
    downstream: int
    late: bool | None = None
    """Whether the event is dropped; None if the entry is not an event."""
    window: int | None = None
    """The end of the event's window; None without windows, and if the entry is not an event."""
    closed: tuple[int, ...] = ()
    """Ends of the windows with events that this entry completes, in order."""
    idle: tuple[str, ...] = ()
    """Inputs that do not hold back the watermark."""


@dataclass(frozen=True)
class Replay:
    trace: Trace
    rules: EngineRules
    steps: tuple[ReplayStep, ...]
    """One per entry, in order, up to a failure."""
    open: tuple[int, ...] = ()
    """Ends of the windows that have events and were never completed."""
    failure: str | None = None
    """Why the engine ends at the entry after the last step."""

    @property
    def late(self) -> tuple[ReplayStep, ...]:
        return tuple(step for step in self.steps if step.late)

    @property
    def completions(self) -> Mapping[int, ReplayStep]:
        """End of a window → the first step that completed it."""
        first: dict[int, ReplayStep] = {}
        for step in self.steps:
            for window in step.closed:
                first.setdefault(window, step)
        return first

    @property
    def downstream(self) -> int:
        return self.steps[-1].downstream if self.steps else self.rules.coalescing.initial


def replay(trace: Trace, rules: EngineRules) -> Replay:
    """Process a trace, whose event times are in the unit of the rules, as the engine with these rules would."""
    policy = rules.policy.started(in_unit(trace.start, trace.clock_unit, rules.clock_unit))
    inputs = trace.inputs[:1] if rules.one_task else trace.inputs
    policies, sent = dict.fromkeys(inputs, policy), dict.fromkeys(inputs, MIN)
    engine = _EngineState(trace, rules, policies, sent, trace.start, rules.coalescing.initial)
    steps: list[ReplayStep] = []
    failure = None
    try:
        for number, entry in enumerate(trace.entries, 1):
            engine, step = engine.after(number, entry)
            steps.append(step)
    except NotIncreasing as error:
        failure = str(error)
    return Replay(trace, rules, tuple(steps), tuple(sorted(engine.open)), failure)


class NotIncreasing(Exception):
    """An input emits a watermark that is not above its last one, which ends a job of Hazelcast Jet (``ConcurrentInboundEdgeStream``)."""

    def __init__(self, last: int, emitted: int) -> None:
        super().__init__(f"watermarks do not increase: {emitted} after {last}")


@dataclass(frozen=True)
class _EngineState:
    trace: Trace
    rules: EngineRules
    policies: Mapping[str, WatermarkPolicy]
    sent: Mapping[str, int]
    """Last emitted watermark by input; with one task, under the first input's name."""
    now: int
    downstream: int
    open: frozenset[int] = field(default_factory=frozenset)

    def after(self, number: int, entry: TraceEntry) -> tuple[_EngineState, ReplayStep]:
        if isinstance(entry, ClockReading):
            # A clock reading alone changes nothing until the engine polls.
            engine = replace(self, now=entry.reading)
            return engine, engine._step(number, entry, None)
        policies = self._policies(entry)
        engine, emitted = replace(self, policies=policies)._emitted(self._asked(entry, policies))
        closed = tuple(sorted(end for end in engine.open if self.rules.lateness.complete(end, engine.downstream)))
        engine = replace(engine, open=engine.open.difference(closed))
        step = replace(engine._step(number, entry, emitted), closed=closed)
        if not isinstance(entry, Event):
            return engine, step
        window = self.trace.window_end(entry.at)
        own = engine.policies[engine._key(entry.input)].watermark
        late = self.rules.lateness.late(entry.at, window, own, engine.downstream)
        if window is not None and not late:
            engine = replace(engine, open=engine.open | {window})
        return engine, replace(step, late=late, window=window)

    def _key(self, name: str) -> str:
        return self.trace.inputs[0] if self.rules.one_task else name

    @property
    def _now(self) -> int:
        return in_unit(self.now, self.trace.clock_unit, self.rules.clock_unit)

    def _policies(self, entry: Event | IdlePoll | BatchBoundary) -> dict[str, WatermarkPolicy]:
        policies = dict(self.policies)
        match entry:
            case Event(at, name):
                policies[self._key(name)] = policies[self._key(name)].event(at, self._now)
            case IdlePoll(name):
                for key in policies if name is None else [self._key(name)]:
                    policies[key] = policies[key].poll(self._now)
            case BatchBoundary():
                policies = {key: policy.boundary(self._now) for key, policy in policies.items()}
        if self.rules.one_source:
            return {key: policy.poll(self._now) for key, policy in policies.items()}
        return policies

    def _asked(self, entry: Event | IdlePoll | BatchBoundary, after: Mapping[str, WatermarkPolicy]) -> Collection[str]:
        """The inputs that may emit: those that the entry reaches, and at a boundary those with which it does something."""
        match entry:
            case Event(input=name) | IdlePoll(input=str(name)):
                return [self._key(name)]
            case IdlePoll():
                return self.policies.keys()
            case BatchBoundary():
                return [name for name, policy in self.policies.items() if after[name] != policy]

    def _emitted(self, asked: Collection[str]) -> tuple[_EngineState, int | None]:
        """Emit the due watermarks of these inputs, and return what reaches downstream operators.

        Raises NotIncreasing: the engine fails at what an input emits.
        """
        if self.rules.one_source:
            watermarks = {name: policy.watermark for name, policy in self.policies.items()}
            combined = self.rules.coalescing.combined(self._sent(watermarks), MIN)
            due = self.rules.throttle.emit(combined, self.downstream)
            if due is None or due <= self.downstream:
                return self, None
            return replace(self, downstream=due), due
        sent = dict(self.sent)
        for name in asked:
            policy = self.policies[name]
            due = None if policy.idle(self._now) else self.rules.throttle.emit(policy.watermark, sent[name])
            if due is None:
                continue
            if due <= sent[name]:
                raise NotIncreasing(sent[name], due)
            sent[name] = due
        downstream = self.rules.coalescing.combined(self._sent(sent), self.downstream)
        engine = replace(self, sent=sent, downstream=downstream)
        return engine, downstream if downstream > self.downstream else None

    def _sent(self, watermarks: Mapping[str, int]) -> tuple[InputWatermark, ...]:
        return tuple(InputWatermark(watermarks[name], policy.idle(self._now)) for name, policy in self.policies.items())

    def _step(self, number: int, entry: TraceEntry, emitted: int | None) -> ReplayStep:
        policies = {name: self.policies[self._key(name)] for name in self.trace.inputs}
        watermarks = {name: policy.watermark for name, policy in policies.items()}
        idle = tuple(name for name, policy in policies.items() if policy.idle(self._now))
        return ReplayStep(number, entry, self.now, watermarks, emitted, self.downstream, idle=idle)


def as_expectation(step: ReplayStep) -> dict[str, Any]:
    """The result of an entry, with the keys and in the notation of an expectation."""
    return {
        "watermark": {name: _or_none(watermark) for name, watermark in step.watermarks.items()},
        "emitted": step.emitted,
        "downstream": _or_none(step.downstream),
        "late": step.late,
        "closed": step.closed,
        "idle": step.idle,
    }


def _or_none(watermark: int) -> int | None:
    return None if watermark == MIN else watermark
