"""What an engine did with a case: the only thing a verdict is made from.

The driver inside the engine sends these as JSON; every instant is milliseconds since the epoch unless a field says
otherwise. Values of rows are JSON: a TIMESTAMP is ``1970-01-01T12:05:00.500000Z`` (always six digits, UTC), a
TIMESTAMP_NTZ the same without ``Z``, DATE ``2024-03-01``, DECIMAL a string, BINARY base64, a struct and an array a
list, a map a list of pairs, NaN and the infinities the strings ``NaN``, ``Infinity`` and ``-Infinity``.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict

Json: TypeAlias = Any
Row: TypeAlias = tuple[Json, ...]
Stage: TypeAlias = Literal["analysis", "start", "run"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class BatchBehaviour(NamedTuple):
    """The part of a micro-batch that two answers are compared by; the order of the fields is part of the digest."""

    id: int
    kind: str
    watermark: int | None
    next_watermark: int | None
    rows: tuple[str, ...]
    """Each row as JSON, sorted."""
    dropped: int | None
    state: tuple[int, ...]


class StepBehaviour(NamedTuple):
    """The part of a step that two answers are compared by: no durations, no progress, no error texts."""

    batches: tuple[BatchBehaviour, ...]
    watermark: int
    error: Stage | None
    """The stage at which the step failed."""

    def without_instants(self) -> StepBehaviour:
        """The same without watermarks, for cases whose event time is the engine's clock."""
        batches = tuple(batch._replace(watermark=None, next_watermark=None) for batch in self.batches)
        return self._replace(batches=batches, watermark=0)


class Column(_Frozen):
    """A column the query emits; ``type`` is Spark's simple string, ``struct<start:timestamp,end:timestamp>``."""

    name: str
    type: str


class SourceRead(_Frozen):
    """What one micro-batch read from one source."""

    stream: str
    rows: int
    """As the progress reports it: a stream read twice by a query may be counted twice."""
    moved: bool
    """Whether the source's offset moved, rows or not."""


class EventTime(_Frozen):
    """Event-time statistics of a micro-batch, in milliseconds since the epoch."""

    min: int
    max: int
    avg: int


class ErrorSeen(_Frozen):
    """An error of the engine."""

    stage: Stage
    classes: tuple[str, ...]
    """Error classes (``STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION``) and simple type names, of the error and of each
    of its causes."""
    message: str


class BatchSeen(_Frozen):
    """One executed micro-batch."""

    id: int
    kind: Literal["data", "no-data"]
    """``data`` where some source's offset moved, rows or not."""
    sources: tuple[SourceRead, ...]
    watermark: int | None
    """The watermark it ran with, from the progress; None where the query has none."""
    logged: int
    """The same, from the checkpoint's offset log: the second witness. 0 where the query has no watermark."""
    next_watermark: int | None
    """The watermark for the batch after it, from the commit log; None where the batch was not committed."""
    rows: tuple[Row, ...]
    dropped: int | None
    """Late rows dropped, all operators together; None where this version has no such metric."""
    state: tuple[int, ...]
    """Rows held per stateful operator, in the order of ``stateOperators``."""
    event_time: EventTime | None
    duration_ms: int
    """``triggerExecution``: the engine's own time."""
    progress: dict[str, Json]
    """The whole progress entry."""

    @property
    def behaviour(self) -> BatchBehaviour:
        rows = tuple(sorted(json.dumps(row) for row in self.rows))
        return BatchBehaviour(self.id, self.kind, self.watermark, self.next_watermark, rows, self.dropped, self.state)


class Interrupted(_Frozen):
    """A micro-batch that had given its rows to the sink when the engine was killed, and was not committed."""

    id: int
    rows: tuple[Row, ...]


class StepSeen(_Frozen):
    """One step of the case, after the engine came to rest."""

    number: int
    """From 1, as in the case."""
    batches: tuple[BatchSeen, ...]
    watermark: int
    """What the next batch would run with (commit log; 0 before the first batch)."""
    plan: str | None
    """Extended plan of the last executed batch, or the logical plan where none has run; only where it was asked for."""
    error: ErrorSeen | None
    wall_ms: int
    interrupted: Interrupted | None = None
    """Of a step in which the engine was killed. What it ran before and what the next one ran are both in ``batches``."""

    @property
    def behaviour(self) -> StepBehaviour:
        batches = tuple(batch.behaviour for batch in self.batches)
        return StepBehaviour(batches, self.watermark, self.error.stage if self.error is not None else None)


class Observation(_Frozen):
    """Everything one engine did with one case. Where a step failed it is the last one."""

    case: str
    columns: tuple[Column, ...]
    steps: tuple[StepSeen, ...]

    def without_progress(self) -> Observation:
        """The same without the raw ``progress`` of its micro-batches, which is most of it."""
        steps = tuple(
            step.model_copy(
                update={"batches": tuple(batch.model_copy(update={"progress": {}}) for batch in step.batches)}
            )
            for step in self.steps
        )
        return self.model_copy(update={"steps": steps})

    @property
    def behaviour_digest(self) -> str:
        """SHA-256 of the behaviour of every step."""
        return self.digest()

    def digest(self, *, instants: bool = True) -> str:
        """SHA-256 of the behaviour of every step, with or without its watermarks. Results files carry these values."""
        steps = [step.behaviour if instants else step.behaviour.without_instants() for step in self.steps]
        return hashlib.sha256(json.dumps(steps).encode()).hexdigest()


class Identity(_Frozen):
    """Who answered: what the driver says of the engine it runs in."""

    protocol: int
    spark: str
    scala: str
    java: str
    python: str
    os: str
    apis: tuple[str, ...]
    """Which of the DataFrame and stream methods the case language may need exist here."""
