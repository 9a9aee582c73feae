"""Spark's progress of a streaming query as it is written: `StreamingQueryProgress`, and its events in an event log.

A version that lacks a field leaves it out; a newer one that has more is read all the same.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from conformance.core.data import Json

_TIME = re.compile(r"([+-]?\d{4,})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,3}))?)?Z")
_OBJECT = re.compile(r"^(?:[a-z]\w*\.)+(\w+?)\$?(?:@[0-9a-f]+)?$|@[0-9a-f]+(?=[,)\]\s]|$)")
"""An object of Java by its class and hash, which is other in each run, or the hash alone. An address has its host there."""
_USUAL = len("2026-03-01T12:00:00.000Z")
_DAY_MS = 86_400_000
_TAKES_TIME = 30_000
"""The rows of a partition that take at least a millisecond to look through."""
_PANDAS = "applyInPandasWithState"
"""Python gets its rows that time out, which takes longer, however few they are."""
_CYCLE = 400
_CYCLE_DAYS = 146_097


def milliseconds(text: str) -> int:
    """Read an instant of a progress, of any year: milliseconds read as seconds are in the year 58000."""
    if len(text) == _USUAL:
        # A progress has half a dozen of them: this is four times as fast.
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not an instant")
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    # The calendar repeats after 400 years, and `datetime` ends with the year 9999.
    cycles, within = divmod(year - 1600, _CYCLE)
    at = datetime(within + 1600, month, day, hour, minute, second, tzinfo=UTC)
    fraction = int((found[7] or "0").ljust(3, "0"))
    return int(at.timestamp()) * 1000 + cycles * _CYCLE_DAYS * _DAY_MS + fraction


def instant(ms: int) -> str:
    """Show an instant as a progress does, without what is zero at its end: ``2026-03-01T12:05``."""
    cycles, within = divmod(ms + 370 * 365 * _DAY_MS, _CYCLE_DAYS * _DAY_MS)
    shown = datetime.fromtimestamp((within - 370 * 365 * _DAY_MS) / 1000, UTC)
    year = f"{shown.year + cycles * _CYCLE:04}"
    fraction = f".{ms % 1000:03}" if ms % 1000 else ""
    return f"{year}-{shown:%m-%dT%H:%M}" + (f":{shown:%S}{fraction}" if shown.second or fraction else "")


Instant: TypeAlias = Annotated[int, BeforeValidator(milliseconds)]
"""Milliseconds since 1970."""
Description: TypeAlias = Annotated[str, AfterValidator(lambda text: _OBJECT.sub(r"\1", text))]
"""A source or a sink, as it is named in each run: ``NoopTable`` of ``org.apache.spark.NoopTable$@1a2b3c``."""


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel)


class OperatorProgress(_Wire):
    operator_name: str | None = None
    """None before 3.2."""
    num_rows_total: int = 0
    num_shuffle_partitions: int = 200
    """Not written before 3.2."""
    all_removals_time_ms: int | None = None
    """Summed over tasks, each in whole milliseconds; None before 3.2."""
    custom_metrics: dict[str, int] = {}
    num_rows_removed: int | None = None
    """None before 3.2."""
    num_rows_dropped_by_watermark: int | None = None
    """None before 3.1."""
    commit_time_ms: int | None = None
    """Summed over tasks; None before 3.2."""

    @property
    def looks(self) -> bool | None:
        """Whether it looked for rows to remove, or has timers or variables that do; None if that does not show."""
        metrics, known = self.custom_metrics, self.all_removals_time_ms
        if (counted := metrics.get("numRowsReadDuringEviction", metrics.get("numRegisteredTimers"))) is not None:
            # The second is of `transformWithState`, as numValueStateWithTTLVars is: its variables with a time to live.
            known = counted + sum(n for name, n in metrics.items() if name.endswith("TTLVars"))
        elif (
            not known
            and self.num_rows_total < _TAKES_TIME * self.num_shuffle_partitions
            and self.operator_name != _PANDAS
        ):
            return None
        return known > 0 if known is not None and self.num_rows_total else None


class SourceProgress(_Wire):
    description: Description = ""
    end_offset: Json = None
    latest_offset: Json = None
    num_input_rows: int = 0


class SinkProgress(_Wire):
    description: Description = ""
    num_output_rows: int | None = None
    """Negative where the sink does not count."""


class EventTime(_Wire):
    highest: Instant | None = Field(None, alias="max")
    lowest: Instant | None = Field(None, alias="min")
    average: Instant | None = Field(None, alias="avg")
    watermark: Instant | None = None


class Progress(_Wire):
    """One progress: of a micro-batch that ran, or of a trigger without one."""

    id: str
    run_id: str
    name: str | None = None
    timestamp: Instant
    batch_id: int
    duration_ms: dict[str, int] = {}
    event_time: EventTime = EventTime.model_construct()
    state_operators: tuple[OperatorProgress, ...] = ()
    sources: tuple[SourceProgress, ...] = ()
    sink: SinkProgress = SinkProgress.model_construct()

    @property
    def ran(self) -> bool:
        return "addBatch" in self.duration_ms

    @property
    def rows(self) -> int:
        return sum(source.num_input_rows for source in self.sources)

    @property
    def has_rows(self) -> bool:
        """Whether it read rows: Spark counts 0 where it does not know of which source they are."""
        return self.rows > 0 or self.event_time.highest is not None


class QueryEvent(_Wire):
    """Another event of a query, from an event log or a listener: it started, was idle or ended."""

    kind: str = Field("", alias="Event")
    """Empty outside an event log."""
    id: str
    run_id: str
    name: str | None = None
    exception: str | None = None


class Environment(_Wire):
    settings: dict[str, str] = Field({}, alias="Spark Properties")
    version: str | None = Field(None, alias="Spark Version")
    """The first event of an application has it, and no settings."""


class LoggedProgress(_Wire):
    progress: Progress
