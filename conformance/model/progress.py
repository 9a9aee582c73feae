"""What happened in a micro-batch and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from conformance.core.spark_types import DataType
from conformance.model.columns import Origin, Value
from conformance.model.watermark import EventTimeStatistics, WatermarkAdvance


@dataclass(frozen=True)
class ComparedRow:
    """A late row or group, or evicted state, with the times that were compared."""

    what: tuple[tuple[str, DataType, Value], ...]
    """Name, type and value of each column; instants in µs."""
    time_us: int | None
    """The compared instant; for a window its end."""
    watermark_ms: int
    rows: int = 1
    """The number of rows that it represents."""
    origins: tuple[Origin, ...] = field(default=(), compare=False)
    """Where its rows come from, if they are rows of streams."""


@dataclass(frozen=True)
class TimerCounts:
    """The calls of a stateful processor that concern timers, in one micro-batch."""

    registered: int
    deleted: int
    """Those that fired included."""


@dataclass(frozen=True, kw_only=True)
class OperatorEffects:
    """What a stateful operator did in one micro-batch."""

    late: tuple[ComparedRow, ...] = ()
    evicted: tuple[ComparedRow, ...] = ()
    dropped: int = 0
    updated: int = 0
    removed: int = 0
    duplicates: int = 0
    timers: TimerCounts | None = None
    """None if it is not a stateful processor."""
    state_rows: int
    """Rows in its state after the micro-batch."""
    shown: tuple[ComparedRow, ...] = ()
    """The state, for display."""


@dataclass(frozen=True, kw_only=True)
class OperatorProgress(OperatorEffects):
    """One stateful operator in one micro-batch."""

    operator: str
    """Its name in the progress: ``stateStoreSave``."""
    title: str
    """``aggregation by window, id``"""
    late_ms: int
    """The watermark for late rows."""
    eviction_ms: int
    """The watermark for eviction."""
    read: tuple[Origin, ...] = field(default=(), compare=False)
    """Where each row that it read comes from, late rows included; without rows that another operator made of several."""


@dataclass(frozen=True)
class BatchProgress:
    """One executed micro-batch."""

    id: int
    kind: Literal["data", "no-data"]
    read: tuple[tuple[str, tuple[tuple[Value, ...], ...]], ...]
    """Each stream with new rows, and the rows."""
    watermark_ms: int
    """The watermark it ran with."""
    statistics: tuple[EventTimeStatistics | None, ...]
    """Of each watermark node, in plan order."""
    operators: tuple[OperatorProgress, ...]
    """The last operator of the query first."""
    emitted: tuple[tuple[Value, ...], ...]
    """Rows, values in column order."""
    advance: WatermarkAdvance

    @property
    def dropped(self) -> int:
        return sum(operator.dropped for operator in self.operators)

    @property
    def event_time(self) -> EventTimeStatistics | None:
        """What the progress reports: the statistics of the first node with rows."""
        return next((one for one in self.statistics if one is not None), None)
