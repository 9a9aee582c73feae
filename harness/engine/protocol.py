"""The messages between host and driver: JSON lines, version 1. The published schemas in ``messages/`` are made from these.

Host to driver: ``CaseRequest`` after ``CaseRequest``, without waiting for answers: requests run side by side, no two of one case at
once. The end of standard input ends the driver. Driver to host: ``Hello`` once, then for each request a ``StepAnswer`` per step and
``Done``, or ``Failed`` where the driver itself (never the engine) went wrong; each says which case it is about. Where the last step is
``kill``, ``Reached`` takes the place of its answer and of ``Done``: that request goes no further, and the host kills the driver.

A request may be some of a case's steps, from step ``first`` on: the others ran in another process, which left the directory.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel

from conformance.core.observation import Column, Identity, StepSeen

VERSION = 1

Json: TypeAlias = Any
Partitions: TypeAlias = tuple[tuple[dict[str, Json], ...], ...]
"""Rows as objects, in the partitions of one micro-batch of one stream."""


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class StreamRequest(_Message):
    """A stream to create."""

    ddl: str
    files: int
    """Files a micro-batch of it always has: the most partitions any of its arrivals has."""


class ChangeRequest(_Message):
    """What a restart changes; None leaves it."""

    conf: dict[str, str] | None = None
    output_mode: str | None = None
    trigger: str | None = None
    query: list[dict[str, Json]] | None = None


class StepRequest(_Message):
    """One step to carry out."""

    action: Literal["start", "add", "backlog", "idle", "restart", "kill"]
    """``kill``: go on to a point and say that it is ``Reached``."""
    batches: tuple[dict[str, Partitions], ...] = ()
    """What arrives: one entry per micro-batch."""
    how: Literal["graceful", "crash-before-commit", "kill"] | None = None
    """Of a restart. After ``kill`` it is the first step of its request."""
    change: ChangeRequest | None = None
    damage: dict[str, str] | None = None
    """Of a restart: ``gone``, ``empty`` or ``truncated`` → which part of the checkpoint."""
    at: Literal["rest", "planned", "running", "emitted", "committed"] | None = None
    """Of ``kill``: the point."""
    nth: int = 1
    """Of ``kill``: in which micro-batch of the step, from 1."""
    plan: bool = False
    """Whether the plan is wanted after this step."""


class CaseRequest(_Message):
    """A case without its expectations: the engine never sees what it is expected to say."""

    case: str
    directory: str
    """Where checkpoint and input live: an absolute path on the engine's file system. The driver makes it, and removes it when done.
    Where ``first`` is above 1 it is there already."""
    first: int = 1
    """The number of the first of ``steps``. ``query``, ``output_mode``, ``trigger`` and ``conf`` are those of that point."""
    restore: str | None = None
    """A directory of which a copy is put in place of ``directory`` before anything else."""
    save: str | None = None
    """Where ``directory`` is moved to when done, instead of being removed."""
    discard: tuple[str, ...] = ()
    """Directories that nobody needs any more."""
    tell: bool = False
    """Whether each micro-batch is told as ``Emitted`` before it can be committed."""
    streams: dict[str, StreamRequest]
    query: list[dict[str, Json]]
    output_mode: str
    trigger: str
    conf: dict[str, str]
    steps: tuple[StepRequest, ...]
    code_path: str | None = None
    """Where modules that ``call`` names are looked for; None forbids calling."""


class Hello(_Message):
    """The driver introduces the engine it runs in."""

    kind: Literal["hello"]
    identity: Identity
    slots: int | None = None
    """Tasks its cluster runs at once; None where there is no cluster."""


class StepAnswer(_Message):
    """What one step showed."""

    kind: Literal["step"]
    case: str
    step: StepSeen


class Emitted(_Message):
    """A micro-batch has given its rows to the sink and is not committed; comes at any time while a step runs."""

    kind: Literal["emitted"]
    case: str
    batch: int
    rows: tuple[tuple[Json, ...], ...]


class Reached(_Message):
    """The point of a ``kill`` step: the driver waits for its end."""

    kind: Literal["reached"]
    case: str
    step: StepSeen
    """What the step has shown until here."""
    columns: tuple[Column, ...]
    missed: bool
    """Whether the engine went past the point: the run must be repeated."""
    executors_lost: int = 0
    """As in ``Done``."""


class Done(_Message):
    """The case is over; the columns are those its query emits (empty where it never was a query)."""

    kind: Literal["done"]
    case: str
    columns: tuple[Column, ...]
    memory: int | None = None
    """Bytes the engine holds now; None where its operating system does not tell."""
    executors_lost: int = 0
    """Executors of a cluster that went away while the case ran: the run must be repeated."""


class Failed(_Message):
    """The driver went wrong; ``message`` is its traceback."""

    kind: Literal["failed"]
    case: str | None = None
    """None where it was before any request: the engine did not start."""
    message: str
    passing: bool = False
    """Whether it was for want of what the machine may have the next time: the run is to be repeated."""


AnyAnswer: TypeAlias = Hello | StepAnswer | Emitted | Reached | Done | Failed
Answer: TypeAlias = Annotated[AnyAnswer, Field(discriminator="kind")]

ANSWERS: TypeAdapter[AnyAnswer] = TypeAdapter(Answer)
"""Reads one line of the driver's; raises pydantic's ValidationError for anything else."""


def schemas() -> Iterator[tuple[str, dict[str, Json]]]:
    """Each message's name and its JSON Schema, as published in ``harness/engine/messages/``."""
    for message in (CaseRequest, Hello, StepAnswer, Emitted, Reached, Done, Failed):
        yield message.__name__, {"$id": f"{message.__name__}/v{VERSION}", **message.model_json_schema(by_alias=True)}


def publish(folder: Path) -> None:
    """Write the schemas: ``python -m harness.engine.protocol harness/engine/messages``."""
    for name, schema in schemas():
        (folder / f"{name}.schema.json").write_text(json.dumps(schema, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    publish(Path(sys.argv[1]))
