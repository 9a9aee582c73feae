"""The checkpoint: offset log, commit log and state. Source: "Recovering from Failures" of the guide."""

from dataclasses import dataclass, field, replace
from typing import Self

from conformance.model.catalyst.spark_plan import SparkPlan
from conformance.model.execution import BatchData, States
from conformance.model.operators import Effort
from conformance.model.watermark import Policy, WatermarkTracker

STATE_BEFORE_THE_FIRST = "state before the first micro-batch"
"""The state is all that is left of a checkpoint: where this is a refusal, the first micro-batch fails."""


@dataclass(frozen=True)
class OffsetLogEntry:
    """A planned micro-batch."""

    id: int
    data: BatchData
    watermark_ms: int
    """The watermark it runs with."""
    time_ms: int | None = None
    """Its processing time; None if it is unknown."""


@dataclass(frozen=True)
class CommitLogEntry:
    """A committed micro-batch, and the state after it."""

    next_ms: int
    """The watermark of the next micro-batch."""
    states: States
    written_by: SparkPlan
    """The plan of the run, which a restart must be able to take over from."""


@dataclass(frozen=True)
class ModelCheckpoint:
    planned: tuple[OffsetLogEntry, ...] = ()
    committed: dict[int, CommitLogEntry] = field(default_factory=dict)
    policy: Policy | None = None
    """The watermark policy of the first run."""
    sources: tuple[tuple[str, str | None], ...] | None = None
    """The sources of the last run in the order of its plan, each with its stream and name; None before the first."""
    by_name: bool = False
    """Whether offsets are kept by the names of sources, and not by position."""
    by_number: bool = False
    """Whether they are kept by the numbers of sources without names, in format 2 of the offset log."""
    partitions: str | None = None
    """``spark.sql.shuffle.partitions`` of the first run, if set."""
    encoding: str = "unsaferow"
    """In which the first micro-batch wrote its state: ``avro`` or ``unsaferow``."""
    folders: tuple[str, ...] = ()
    """How it came to another folder after its first micro-batch, each time: ``moved`` or ``copied``."""
    lost: str | None = None
    """``delta gone`` or ``state gone``: the next micro-batch that needs it fails; or `STATE_BEFORE_THE_FIRST`."""
    tracker: WatermarkTracker | None = None
    """Not in a real checkpoint; used by wrong models."""
    effort: Effort = field(default_factory=Effort)
    """Not in a real checkpoint either."""

    @property
    def uncommitted(self) -> OffsetLogEntry | None:
        """The newest micro-batch, if it was planned but not committed."""
        newest = self.planned[-1] if self.planned else None
        return newest if newest is not None and newest.id not in self.committed else None

    @property
    def watermark_ms(self) -> int:
        """The watermark of the next micro-batch, or of the uncommitted one that will be replayed."""
        if self.uncommitted is not None:
            return self.uncommitted.watermark_ms
        return self.committed[self.planned[-1].id].next_ms if self.planned else 0

    def before(self, id: int) -> CommitLogEntry | None:
        """The commit before a micro-batch; None for the first."""
        return self.committed.get(id - 1)

    def logged_ms(self, id: int) -> int:
        """The watermark that a micro-batch was planned with; 0 for one before the first."""
        return self.planned[id].watermark_ms if 0 <= id < len(self.planned) else 0

    def without_newest_commit(self) -> Self:
        """As if the engine had died between planning and committing its last micro-batch."""
        newest = self.planned[-1].id if self.planned else None
        return replace(self, committed={id: commit for id, commit in self.committed.items() if id != newest})
