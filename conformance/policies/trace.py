"""A trace: everything that reaches an engine, in order, including clock readings and idle polls, so that a replay is deterministic.

Event times are in the unit of the engine, usually milliseconds since the epoch; some rules do not depend on the unit. The clock is
in ``clock_unit``, and each engine's rules read it in the engine's own unit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from conformance.core.values import show

MIN = -(2**63)
"""``Long.MIN_VALUE``: in most engines, a watermark that has not been computed yet."""

ClockUnit: TypeAlias = Literal["ms", "ns"]

INPUT = "events"
"""The name of the only input of a trace that does not name its inputs."""

NANOS_PER_MILLI = 1_000_000


@dataclass(frozen=True)
class Event:
    at: int
    """The event time."""
    input: str = INPUT


@dataclass(frozen=True)
class ClockReading:
    """The clock shows this time from here on."""

    reading: int


@dataclass(frozen=True)
class IdlePoll:
    """The engine polls one input, or all inputs, and finds nothing."""

    input: str | None = None


@dataclass(frozen=True)
class BatchBoundary:
    """A batch ends: Spark's micro-batch ends, Flink emits periodically, Beam queries the watermark."""


TraceEntry: TypeAlias = Event | ClockReading | IdlePoll | BatchBoundary


@dataclass(frozen=True)
class Trace:
    entries: tuple[TraceEntry, ...]
    inputs: tuple[str, ...] = (INPUT,)
    """All inputs, including those without events."""
    clock_unit: ClockUnit = "ms"
    window: int | None = None
    """Size of the tumbling windows, aligned to the epoch, in the unit of the event times; None without windows."""
    instants: bool = False
    """Whether event times and the clock are milliseconds since the epoch, and therefore shown as times."""
    assumptions: tuple[str, ...] = ()
    """What was added or left out to make this trace, in sentences for the reader."""

    def __post_init__(self) -> None:
        for number, entry in enumerate(self.entries, 1):
            name = None if isinstance(entry, ClockReading | BatchBoundary) else entry.input
            if name is not None and name not in self.inputs:
                raise ValueError(f"entry {number} names the input {name!r}, but the trace has {', '.join(self.inputs)}")

    @property
    def start(self) -> int:
        """What the clock shows before its first reading: that reading, or 0 if there is none."""
        return next((entry.reading for entry in self.entries if isinstance(entry, ClockReading)), 0)

    def window_end(self, at: int) -> int | None:
        """The exclusive end of the window of an event time; None without windows."""
        return None if self.window is None else at // self.window * self.window + self.window

    def format_time(self, at: int) -> str:
        """An event time, window end or watermark; a dash if there is no watermark yet."""
        if at == MIN:
            return "–"
        return show(at * 1000) if self.instants else str(at)

    def format_times(self, by_input: Mapping[str, int]) -> str:
        if len(by_input) == 1:
            return "".join(self.format_time(at) for at in by_input.values())
        return ", ".join(f"{name} {self.format_time(at)}" for name, at in by_input.items())

    def format_clock(self, reading: int) -> str:
        return show(reading * 1000) if self.instants else f"{reading} {self.clock_unit}"

    def format_entry(self, entry: TraceEntry) -> str:
        """``event 12:05``, ``event 10 on b``, ``clock 100``, ``idle``, ``batch``."""
        match entry:
            case Event(at, name):
                return f"event {self.format_time(at)}{self._on(name)}"
            case ClockReading(reading):
                return f"clock {self.format_clock(reading)}"
            case IdlePoll(name):
                return "idle" if name is None else f"idle{self._on(name)}"
            case BatchBoundary():
                return "batch"

    def _on(self, name: str) -> str:
        return f" on {name}" if len(self.inputs) > 1 else ""


def in_unit(reading: int, unit: ClockUnit, wanted: ClockUnit) -> int:
    """A clock reading in another unit; fractions are truncated, as by Java's ``TimeUnit``."""
    if unit == wanted:
        return reading
    if wanted == "ns":
        return reading * NANOS_PER_MILLI
    whole = abs(reading) // NANOS_PER_MILLI
    return whole if reading >= 0 else -whole
