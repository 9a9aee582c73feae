"""What a stateful operator gets, returns and reports in one micro-batch, and how it compares event times with watermarks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from conformance.core.operations import OutputMode
from conformance.core.spark_types import DataType
from conformance.model.columns import Origin, Row, Value
from conformance.model.errors import Unpredictable
from conformance.model.rules import Rules
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
    """Deleted timers, those that fired included."""


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
    """The calls of a stateful processor; None for other operators."""
    state_rows: int
    """Rows in its state after the micro-batch."""
    shown: tuple[ComparedRow, ...] = ()
    """The state, for display."""


@dataclass(frozen=True, kw_only=True)
class OperatorProgress(OperatorEffects):
    operator: str
    """Its name in the progress: ``stateStoreSave``."""
    title: str
    """``aggregation by window, id``"""
    late_ms: int
    """The watermark for late rows."""
    eviction_ms: int
    """The watermark for eviction."""
    by_window: bool = False
    """Whether the ends of windows are compared with its watermarks, and not the times of rows."""
    read: tuple[Origin, ...] = field(default=(), compare=False)
    """Where each row that it read comes from, late rows included; without rows that another operator made of several."""


@dataclass(frozen=True)
class BatchProgress:
    id: int
    kind: Literal["data", "no-data"]
    read: tuple[tuple[str, tuple[tuple[Value, ...], ...]], ...]
    """Each stream with new rows, and the rows."""
    watermark_ms: int
    """The watermark it ran with."""
    statistics: tuple[EventTimeStatistics | None, ...]
    """The statistics of each watermark node, in plan order."""
    operators: tuple[OperatorProgress, ...]
    """The operators, the last of the query first."""
    emitted: tuple[tuple[Value, ...], ...]
    """The emitted rows, values in column order."""
    advance: WatermarkAdvance

    @property
    def dropped(self) -> int:
        return sum(operator.dropped for operator in self.operators)

    @property
    def event_time(self) -> EventTimeStatistics | None:
        """What the progress reports: the statistics of the first node with rows."""
        return next((statistics for statistics in self.statistics if statistics is not None), None)


MOST_ROWS = 1_000_000
"""What the operators of a query may make, up to which the model predicts: a case of a few lines can ask for any number."""

State: TypeAlias = Any
"""The state of an operator; immutable."""


class Effort:
    """What the operators of a query have made so far, restarts included: rows of windows and tables, pairs that a join compares, and the
    rows in state after each micro-batch."""

    def __init__(self) -> None:
        self._rows = 0

    def add(self, rows: int = 1) -> None:
        self._rows += rows
        if self._rows > MOST_ROWS:
            raise Unpredictable(f"a query whose operators make more than {MOST_ROWS:,} rows")


@dataclass(frozen=True)
class OperatorContext:
    """The input of a stateful operator in a micro-batch besides rows and state; watermarks in ms."""

    late_ms: int
    eviction_ms: int
    mode: OutputMode
    silent: frozenset[str]
    """The streams without new rows."""
    rules: Rules
    effort: Effort
    time_ms: int | None = None
    """The processing time of the micro-batch; None if it is unknown."""

    def now_ms(self, mode: str) -> int:
        """What timeouts and timers of a mode are compared with: the watermark or, in processing time, the time of the micro-batch."""
        return self.clock_ms if mode in ("ProcessingTime", "ProcessingTimeTimeout") else self.evicting_ms

    @property
    def clock_ms(self) -> int:
        if self.time_ms is None:
            raise Unpredictable("what the clock decides")
        return self.time_ms

    @property
    def evicting_ms(self) -> int:
        """The watermark by which state is evicted."""
        return self.eviction_ms if self.rules.eviction_watermark == "own batch" else self.late_ms


@dataclass(frozen=True, kw_only=True)
class OperatorResult(OperatorEffects):
    rows: Sequence[Row]
    state: State
