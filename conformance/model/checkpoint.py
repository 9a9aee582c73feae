"""What survives a query: the offset log, the commit log and the state. Source: the guide's «Recovering from Failures»."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from conformance.model.execution import BatchData, States
from conformance.model.state_format import NotNull
from conformance.model.watermark import Policy, WatermarkTracker

Schema: TypeAlias = tuple[str, ...]
"""What state was written for, as text: compared where a version does."""


@dataclass(frozen=True)
class OffsetLogEntry:
    """An entry of the offset log: a micro-batch that was planned."""

    id: int
    data: BatchData
    watermark_ms: int
    """What it runs with."""


@dataclass(frozen=True)
class CommitLogEntry:
    """An entry of the commit log, and the state as the micro-batch left it."""

    next_ms: int
    """The watermark for the micro-batch after it."""
    states: States
    schema: Schema


@dataclass(frozen=True)
class ModelCheckpoint:
    """The logs of a query."""

    planned: tuple[OffsetLogEntry, ...] = ()
    committed: dict[int, CommitLogEntry] = field(default_factory=dict)
    policy: Policy | None = None
    """As the first run had it."""
    sources: frozenset[str] | None = None
    """The streams that the first run read."""
    partitions: str | None = None
    """``spark.sql.shuffle.partitions`` as the first run had it, where it was set."""
    not_null: tuple[NotNull, ...] | None = None
    """Which columns of each operator's state were NOT NULL in the first micro-batch."""
    lost: str | None = None
    """What has gone of the state: ``delta gone``, ``state gone``; seen once a micro-batch needs it."""
    tracker: WatermarkTracker | None = None
    """What no real checkpoint holds; for models that are wrong on purpose."""

    @property
    def next_id(self) -> int:
        return len(self.planned)

    @property
    def uncommitted(self) -> OffsetLogEntry | None:
        """The newest micro-batch, where it was planned and not committed."""
        newest = self.planned[-1] if self.planned else None
        return newest if newest is not None and newest.id not in self.committed else None

    @property
    def watermark_ms(self) -> int:
        """What the next micro-batch would run with, or the uncommitted one will be replayed with."""
        if self.uncommitted is not None:
            return self.uncommitted.watermark_ms
        return self.committed[self.planned[-1].id].next_ms if self.planned else 0

    def before(self, id: int) -> CommitLogEntry | None:
        """The commit before a micro-batch; None for the first."""
        return self.committed.get(id - 1)

    def logged_ms(self, id: int) -> int:
        """The watermark that a micro-batch was planned with; 0 for one before the first."""
        return self.planned[id].watermark_ms if 0 <= id < len(self.planned) else 0

    def with_planned(self, planned: OffsetLogEntry) -> ModelCheckpoint:
        return replace(self, planned=(*self.planned[: planned.id], planned))

    def with_committed(self, id: int, committed: CommitLogEntry) -> ModelCheckpoint:
        return replace(self, committed={**self.committed, id: committed})

    def without_newest_commit(self) -> ModelCheckpoint:
        """As if the engine had died after planning its last micro-batch and before committing it."""
        newest = self.planned[-1].id if self.planned else None
        return replace(self, committed={id: one for id, one in self.committed.items() if id != newest})
