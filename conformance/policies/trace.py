"""A trace: what reaches an engine, in order, with nothing left to chance. The clock and the idle polls are part of it.

Event times are in the unit of the engine that reads them, usually milliseconds since the epoch; to some rules the unit means
nothing. The clock is in ``clock_unit``, and each set of rules reads it in the unit its engine has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

ClockUnit: TypeAlias = Literal["ms", "ns"]

INPUT = "events"
"""The input of a trace that has one and does not name it."""

NANOS_PER_MILLI = 1_000_000


@dataclass(frozen=True)
class Event:
    """An event arrives."""

    at: int
    """Its event time."""
    input: str = INPUT


@dataclass(frozen=True)
class Clock:
    """From here on the clock shows this."""

    reading: int


@dataclass(frozen=True)
class Idle:
    """The engine looks at an input, or at all of them, and nothing has arrived."""

    input: str | None = None


@dataclass(frozen=True)
class Boundary:
    """Rows so far belong together: Spark's micro-batch ends, Flink emits periodically, Beam asks for the watermark."""


Entry: TypeAlias = Event | Clock | Idle | Boundary


class UnknownInput(ValueError):
    """An entry of a trace is about an input that the trace does not have."""

    def __init__(self, number: int, name: str, inputs: tuple[str, ...]) -> None:
        super().__init__(f"entry {number} is about the input {name!r}, and the trace has {', '.join(inputs)}")
        self.number = number
        self.name = name
        self.inputs = inputs


@dataclass(frozen=True)
class Trace:
    """Entries in order."""

    entries: tuple[Entry, ...]
    inputs: tuple[str, ...] = (INPUT,)
    """All inputs there are, those that never see an event too."""
    clock_unit: ClockUnit = "ms"
    window: int | None = None
    """Length of the tumbling windows, aligned to the epoch, in the unit of the event times; None where rows are in none."""
    instants: bool = False
    """Whether event times and the clock are milliseconds since the epoch, and so shown as times."""
    assumptions: tuple[str, ...] = field(default=())
    """What was added to make this a trace, in sentences; for who reads the result."""

    def __post_init__(self) -> None:
        for number, entry in enumerate(self.entries, 1):
            name = None if isinstance(entry, Clock | Boundary) else entry.input
            if name is not None and name not in self.inputs:
                raise UnknownInput(number, name, self.inputs)

    def window_end(self, at: int) -> int | None:
        """The end (exclusive) of the window that an event time falls into; None without windows."""
        return None if self.window is None else at // self.window * self.window + self.window


def in_unit(reading: int, unit: ClockUnit, wanted: ClockUnit) -> int:
    """A reading of the clock in another unit; fractions are cut off, as by Java's ``TimeUnit``."""
    if unit == wanted:
        return reading
    if wanted == "ns":
        return reading * NANOS_PER_MILLI
    whole = abs(reading) // NANOS_PER_MILLI
    return whole if reading >= 0 else -whole
