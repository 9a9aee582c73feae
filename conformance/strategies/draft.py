"""A pipeline under construction: its durations on one scale, its streams, and its operations and columns so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from hypothesis import strategies as st

from conformance.core.data import Json
from conformance.core.wording import counted

SECOND_US = 1_000_000


@dataclass(frozen=True)
class Length:
    """A duration in Spark's notation and in µs."""

    text: str
    us: int


@dataclass(frozen=True)
class Scale:
    """The unit of which the durations of a case are multiples, so that boundaries coincide."""

    unit: str
    us: int


SCALES = (Scale("second", SECOND_US), Scale("minute", 60 * SECOND_US), Scale("hour", 3600 * SECOND_US))
_COUNTS = (1, 2, 5, 10, 10, 20)
_ODD = (
    Length("1 millisecond", 1_000),
    Length("1500 milliseconds", 1_500_000),
    Length("1 microsecond", 1),
    Length("1999 microseconds", 1_999),
    Length("1 minute 30 seconds", 90 * SECOND_US),
    Length("1 day", 86_400 * SECOND_US),
)
_EXTREME = (Length("1 microsecond", 1), Length("1000 days", 1000 * 86_400 * SECOND_US))
_ZERO = Length("0 seconds", 0)


def scales() -> st.SearchStrategy[Scale]:
    """Seconds or minutes, rarely hours."""
    return st.sampled_from((SCALES[0], SCALES[0], SCALES[1], SCALES[1], SCALES[2]))


def length(count: int, scale: Scale) -> Length:
    return Length(counted(count, scale.unit), count * scale.us)


def spans(scale: Scale) -> st.SearchStrategy[Length]:
    """Window sizes, gaps and intervals, rarely extreme ones."""
    return st.sampled_from([*(length(count, scale) for count in _COUNTS * 4), *_EXTREME])


def delay_lengths(scale: Scale) -> st.SearchStrategy[Length]:
    """Delays with their length in µs."""
    usual = [length(count, scale) for count in _COUNTS]
    return st.sampled_from([*usual * 3, *[_ZERO] * 4, *_ODD, _EXTREME[1]])


def delays() -> st.SearchStrategy[str]:
    return scales().flatmap(delay_lengths).map(lambda delay: delay.text)


ColumnKind: TypeAlias = Literal["timestamp", "string", "int", "bigint", "window", "other"]


@dataclass(frozen=True)
class Stream:
    columns: Mapping[str, str]
    time: str
    delay_us: int | None = None

    @property
    def ddl(self) -> str:
        return ", ".join(f"{name} {type_}" for name, type_ in self.columns.items())


@dataclass(frozen=True)
class Draft:
    operations: tuple[Json, ...]
    columns: Mapping[str, ColumnKind]
    """The columns available to the next operation."""
    streams: Mapping[str, Stream]
    scale: Scale
    event_time: str | None = None
    """The column with the watermark, if it still exists."""
    spans: tuple[Length, ...] = ()
    """Window sizes, gaps and intervals."""
    modes: frozenset[str] = frozenset({"append", "update"})
    """The output modes that Spark allows, as far as known."""
    conf: Mapping[str, str] = field(default_factory=dict)

    def then(self, operation: Json, **changes: Any) -> Draft:
        return replace(self, operations=(*self.operations, operation), **changes)

    def with_columns(self, operation: Json, columns: Mapping[str, ColumnKind], **changes: Any) -> Draft:
        """The draft with an operation that keeps these columns; the event time is lost with its column."""
        kept = self.event_time if self.event_time in columns else None
        return self.then(operation, **{"columns": columns, "event_time": kept, **changes})

    def of_kind(self, *kinds: ColumnKind) -> list[str]:
        return [name for name, kind in self.columns.items() if kind in kinds]

    def merged(self, other: Draft) -> dict[str, Any]:
        """The properties that a pipeline of two inputs combines."""
        return {
            "streams": {**self.streams, **other.streams},
            "spans": (*self.spans, *other.spans),
            "modes": self.modes & other.modes,
            "conf": {**self.conf, **other.conf},
        }


NAMES = ("events", "others", "thirds", "fourths")
"""Stream names of a case, in order."""
_KINDS: dict[str, ColumnKind] = {"TIMESTAMP": "timestamp", "STRING": "string", "INT": "int"}


def names_of(stream: str) -> tuple[str, str, str]:
    """The time, key and value columns of a stream, named differently in each stream so that joins need no aliases."""
    own = f"{stream.removesuffix('s')}_"
    others = "" if stream == NAMES[0] else own
    return f"{own}time", f"{others}key", f"{others}value"


@st.composite
def _streams(draw: st.DrawFn, name: str) -> Stream:
    time, key, value = names_of(name)
    columns = [(time, "TIMESTAMP"), (key, "STRING"), (value, "INT")]
    shape = draw(st.sampled_from(("whole", "whole", "whole", "no value", "key first", "second time")))
    if shape == "no value":
        columns.pop()
    elif shape == "key first":
        columns = [columns[1], columns[0], columns[2]]
    elif shape == "second time":
        columns.append((f"{time.removesuffix('_time')}_sent", "TIMESTAMP"))
    return Stream(dict(columns), time)


@st.composite
def sources(draw: st.DrawFn, name: str, scale: Scale) -> Draft:
    stream = draw(_streams(name))
    columns = {column: _KINDS[type_] for column, type_ in stream.columns.items()}
    return Draft(({"from": name},), columns, {name: stream}, scale)


def schemas(name: str = NAMES[0]) -> st.SearchStrategy[str]:
    """DDL schemas of a stream: ``event_time TIMESTAMP, key STRING, value INT``.

    Args:
        name: of the stream, one of ``NAMES``; columns of different streams have different names.
    """
    return _streams(name).map(lambda stream: stream.ddl)
