"""How the things of a trace are written for people: event times as instants where they are, watermarks that are not there yet."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.core.values import show
from conformance.policies.int64 import MIN
from conformance.policies.trace import Boundary, Clock, Entry, Event, Idle, Trace

NONE = "–"


def time(at: int, trace: Trace) -> str:
    """An event time, a window's end or a watermark; a dash for a watermark that is not there yet."""
    if at == MIN:
        return NONE
    return show(at * 1000) if trace.instants else str(at)


def times(by_input: Mapping[str, int], trace: Trace) -> str:
    """Watermarks of inputs, by name where there are several."""
    if len(by_input) == 1:
        return "".join(time(at, trace) for at in by_input.values())
    return ", ".join(f"{name} {time(at, trace)}" for name, at in by_input.items())


def entry(what: Entry, trace: Trace) -> str:
    """``event 12:05``, ``event 10 on b``, ``clock 100``, ``idle``, ``batch``."""
    match what:
        case Event(at, name):
            return f"event {time(at, trace)}{_on(name, trace)}"
        case Clock(reading):
            return f"clock {show(reading * 1000) if trace.instants else f'{reading} {trace.clock_unit}'}"
        case Idle(name):
            return "idle" if name is None else f"idle{_on(name, trace)}"
        case Boundary():
            return "batch"


def _on(name: str, trace: Trace) -> str:
    return f" on {name}" if len(trace.inputs) > 1 else ""
