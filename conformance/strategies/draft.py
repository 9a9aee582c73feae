"""A pipeline under construction: its operations, columns and durations so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from conformance.strategies.delays import Length, Scale

Json: TypeAlias = Any
Kind: TypeAlias = Literal["timestamp", "string", "int", "bigint", "window", "other"]


@dataclass(frozen=True)
class Stream:
    """A stream that a pipeline reads."""

    columns: Mapping[str, str]
    """Name → type in DDL."""
    time: str
    """Its event-time column."""
    delay_us: int | None = None
    """None if it has no watermark."""

    @property
    def ddl(self) -> str:
        return ", ".join(f"{name} {type_}" for name, type_ in self.columns.items())


@dataclass(frozen=True)
class Draft:
    """A pipeline so far."""

    operations: tuple[Json, ...]
    columns: Mapping[str, Kind]
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
    """Confs that it requires."""

    def then(self, operation: Json, **changes: Any) -> Draft:
        """The draft with another operation."""
        return replace(self, operations=(*self.operations, operation), **changes)

    def with_columns(self, operation: Json, columns: Mapping[str, Kind], **changes: Any) -> Draft:
        """The draft with an operation that keeps these columns; the event time is lost with its column."""
        kept = self.event_time if self.event_time in columns else None
        return self.then(operation, **{"columns": columns, "event_time": kept, **changes})

    def of_kind(self, *kinds: Kind) -> list[str]:
        """The columns of these kinds."""
        return [name for name, kind in self.columns.items() if kind in kinds]

    def merged(self, other: Draft) -> dict[str, Any]:
        """The properties that a pipeline of two inputs combines."""
        return {
            "streams": {**self.streams, **other.streams},
            "spans": (*self.spans, *other.spans),
            "modes": self.modes & other.modes,
            "conf": {**self.conf, **other.conf},
        }
