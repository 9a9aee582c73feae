"""The messages between host and engine in a soak: JSON lines, as between host and driver (``harness/engine/protocol.py``).

Host to engine: one request at a time. Engine to host: ``Hello`` once; then for each request whatever there is to tell, and ``Done``, or
``Failed``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from harness.engine.protocol import Hello

Late: TypeAlias = Literal["own batch", "batch before"]
"""By whose watermark rows are late: that changed with SPARK-40925."""


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Stream(_Message):
    """What is generated, and what the query makes of it. One seed and one size are one stream, wherever it is generated."""

    rows: int
    """All of them, with the last one, which is far ahead and closes every window but its own."""
    seed: int
    batches: int
    """Micro-batches that the rows are cut into; the last row has one of its own."""
    files: int
    """Of each micro-batch: as many tasks read it, and as many partitions hold its state."""
    span_s: int = 600
    """Event time that a micro-batch goes forward, in seconds."""
    delay_s: int = 600
    """Of the watermark, in seconds."""
    window_s: int = 300
    """Length of a window, in seconds."""
    sensors: int = 16
    """Keys beside the window."""


class InvariantQuery(_Message):
    """What is asked of the tables."""

    name: str
    sql: str
    most: int = 1
    """Rows of the answer that are wanted."""


class Generate(_Message):
    """Make the input."""

    kind: Literal["generate"] = "generate"
    folder: str
    """Of the soak: an absolute path, the same on every machine that takes part."""
    stream: Stream


class Run(_Message):
    """Run the query until everything is read, or go on with it."""

    kind: Literal["run"] = "run"
    folder: str
    stream: Stream
    attempt: int
    """Number of this engine, from 0."""


class Ask(_Message):
    """Answer questions about what came out."""

    kind: Literal["ask"] = "ask"
    folder: str
    stream: Stream
    late: Late
    questions: tuple[InvariantQuery, ...]


Request: TypeAlias = Generate | Run | Ask


class Emitted(_Message):
    """A micro-batch has given its rows to the sink; it is not committed yet."""

    kind: Literal["emitted"]
    batch: int


class Progressed(_Message):
    """A micro-batch is over."""

    kind: Literal["progressed"]
    batch: int
    rows: int
    watermark: int | None
    """The one it ran with, in ms."""
    ms: int
    """How long it took."""


class Rows(_Message):
    """The answer to one question."""

    kind: Literal["rows"]
    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


class Done(_Message):
    """The request is carried out."""

    kind: Literal["done"]


class Failed(_Message):
    """It could not be."""

    kind: Literal["failed"]
    message: str


Answer: TypeAlias = Hello | Emitted | Progressed | Rows | Done | Failed
ANSWERS: TypeAdapter[Answer] = TypeAdapter(Annotated[Answer, Field(discriminator="kind")])
