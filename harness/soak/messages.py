"""The requests of a soak. They extend the driver protocol (``harness/engine/protocol.py``), whose answers they share."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from harness.engine.protocol import Message

Late: TypeAlias = Literal["own batch", "batch before"]
"""Whose watermark decides which rows are late: that of their micro-batch or of the one before (SPARK-40925)."""

CASE = "soak"
"""The case that messages of a soak name."""


class Stream(BaseModel):
    """What is generated, and the query over it. The same parameters always give the same stream."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: int
    """All of them, including the last one, which is far ahead and closes every window but its own."""
    seed: int
    batches: int
    """Micro-batches of the stream; the last row has one of its own."""
    files: int
    """Files of each micro-batch: the number of tasks that read it, and of partitions of its state."""
    span_s: int = 600
    """Event time that a micro-batch advances, in seconds."""
    delay_s: int = 600
    """Delay of the watermark, in seconds."""
    window_s: int = 300
    """Length of a window, in seconds."""
    sensors: int = 16
    """Keys in addition to the window."""


class InvariantQuery(Message):
    """SQL over the tables of a soak."""

    name: str
    sql: str
    most: int = 1
    """Maximum number of rows to return."""


class _SoakRequest(Message):
    case: str = CASE
    folder: str
    """Of the soak: an absolute path, the same on every machine that takes part."""
    stream: Stream


class Generate(_SoakRequest):
    """Generate the input."""

    kind: Literal["generate"] = "generate"


class Run(_SoakRequest):
    """Run the query, or resume it, until everything is read."""

    kind: Literal["run"] = "run"
    attempt: int
    """Number of this engine, from 0."""


class Ask(_SoakRequest):
    """Run queries over the results."""

    kind: Literal["ask"] = "ask"
    late: Late
    questions: tuple[InvariantQuery, ...]


Request: TypeAlias = Generate | Run | Ask
