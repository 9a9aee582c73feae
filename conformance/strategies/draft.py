"""A pipeline under construction: what it is so far, which columns there are, and which lengths of time matter to it."""

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
    """The column its rows are placed in time by."""
    delay_us: int | None = None
    """None where it has no watermark."""

    @property
    def ddl(self) -> str:
        return ", ".join(f"{name} {type_}" for name, type_ in self.columns.items())


@dataclass(frozen=True)
class Draft:
    """A pipeline so far."""

    operations: tuple[Json, ...]
    columns: Mapping[str, Kind]
    """The columns that may be named next."""
    streams: Mapping[str, Stream]
    scale: Scale
    event_time: str | None = None
    """The column that the watermark is on, as far as it is still there."""
    spans: tuple[Length, ...] = ()
    """Sizes of windows, gaps and intervals."""
    modes: frozenset[str] = frozenset({"append", "update"})
    """The output modes that Spark allows it, as far as anybody can tell so simply."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """What it does not run without."""

    def then(self, operation: Json, **changes: Any) -> Draft:
        """With one more operation."""
        return replace(self, operations=(*self.operations, operation), **changes)

    def with_columns(self, operation: Json, columns: Mapping[str, Kind], **changes: Any) -> Draft:
        """With an operation that leaves these columns; the event time goes with its column."""
        kept = self.event_time if self.event_time in columns else None
        return self.then(operation, **{"columns": columns, "event_time": kept, **changes})

    def of_kind(self, *kinds: Kind) -> list[str]:
        """The columns of these kinds."""
        return [name for name, kind in self.columns.items() if kind in kinds]

    def merged(self, other: Draft) -> dict[str, Any]:
        """What a pipeline of two inputs has of both."""
        return {
            "streams": {**self.streams, **other.streams},
            "spans": (*self.spans, *other.spans),
            "modes": self.modes & other.modes,
            "conf": {**self.conf, **other.conf},
        }
