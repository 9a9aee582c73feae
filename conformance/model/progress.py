"""What happened in a micro-batch and why, as values: for people who ask why a row was dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from conformance.core.spark_types import DataType
from conformance.model.columns import Value
from conformance.model.watermark import EventTimeStatistics, WatermarkAdvance


@dataclass(frozen=True)
class ComparedRow:
    """A row or a group that was late, or state that was over, and by what."""

    what: tuple[tuple[str, DataType, Value], ...]
    """Name, type and value of its columns; instants in µs."""
    time_us: int | None
    """The instant that was compared: of a window its end."""
    watermark_ms: int
    rows: int = 1
    """How many rows it stands for."""


@dataclass(frozen=True)
class OperatorProgress:
    """One stateful operator in one micro-batch."""

    operator: str
    """As in the progress: ``stateStoreSave``."""
    title: str
    """``aggregation by window, id``"""
    late_ms: int
    """The watermark that rows were late by."""
    eviction_ms: int
    """The watermark that state went by."""
    late: tuple[ComparedRow, ...]
    evicted: tuple[ComparedRow, ...]
    dropped: int
    updated: int
    removed: int
    duplicates: int
    state_rows: int
    """Rows in its state afterwards."""
    state: tuple[ComparedRow, ...] = ()
    """What is held, for people."""


@dataclass(frozen=True)
class BatchProgress:
    """One executed micro-batch."""

    id: int
    kind: Literal["data", "no-data"]
    read: tuple[tuple[str, tuple[tuple[Value, ...], ...]], ...]
    """Each stream that had something new, and its rows."""
    watermark_ms: int
    """What it ran with."""
    statistics: tuple[EventTimeStatistics | None, ...]
    """Of each watermark node, in plan order."""
    operators: tuple[OperatorProgress, ...]
    """The last of the query first."""
    emitted: tuple[tuple[Value, ...], ...]
    """Rows in the order of the query's columns."""
    advance: WatermarkAdvance

    @property
    def dropped(self) -> int:
        return sum(operator.dropped for operator in self.operators)

    @property
    def event_time(self) -> EventTimeStatistics | None:
        """What the progress reports: of the first node that saw a row."""
        return next((one for one in self.statistics if one is not None), None)
