"""A case, as written: frozen values in the shape of the YAML, and the source of the published JSON Schema.

Nothing here reads files or reports problems by line; ``conformance.language`` does both. See ``docs/case-language.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from conformance.pipeline import Pipeline
from conformance.types import Schema
from conformance.versions import SparkVersion, VersionRange

Json: TypeAlias = Any
Row: TypeAlias = tuple[Json, ...] | Mapping[str, Json]
"""Values in schema order, or by column name; instants still as they were written."""

OutputMode: TypeAlias = Literal["append", "update", "complete"]
Trigger: TypeAlias = Literal["default", "once", "availableNow"]
Strength: TypeAlias = Literal["documented", "observed"]
BatchKind: TypeAlias = Literal["data", "no-data"]
ErrorStage: TypeAlias = Literal["analysis", "start", "run"]
HowRestarted: TypeAlias = Literal["graceful", "crash-before-commit", "kill"]


class Frozen(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, arbitrary_types_allowed=True
    )


class Partitioned(Frozen):
    """Rows of one stream for one micro-batch, placed in partitions; a plain list of rows is one partition."""

    partitions: tuple[tuple[Row, ...], ...]


Arrival: TypeAlias = Mapping[str, Partitioned]
"""Stream name → what arrives on it. A stream that is missing has nothing new."""


# What a step does: exactly one of these.


class Start(Frozen):
    """Start the query; otherwise implicit before the first step."""


class Add(Frozen):
    """Rows that arrive in one micro-batch; then run until idle."""

    streams: Arrival


class Backlog(Frozen):
    """One micro-batch per entry with no idle gap between them; then run until idle.

    Every entry names every stream that any of them names.
    """

    entries: tuple[Arrival, ...]


class Idle(Frozen):
    """Nothing arrives; run until idle."""


class Change(Frozen):
    """What a restart changes."""

    conf: Mapping[str, str] | None = None
    output_mode: OutputMode | None = None
    trigger: Trigger | None = None
    query: Pipeline | None = None


class Restart(Frozen):
    """Stop the query one way or another, and start it again from its checkpoint."""

    how: HowRestarted
    change: Change = Change()


Action: TypeAlias = Start | Add | Backlog | Idle | Restart


# What is expected of a step. `model_fields_set` tells an absent key from one that says null.


class ExpectedBatch(Frozen):
    """One micro-batch of a step; absent keys are not checked."""

    kind: BatchKind | None = None
    rows: tuple[Row, ...] | None = None
    watermark: Json = None
    """The watermark the batch ran with."""
    dropped: int | None = None


class ExpectedError(Frozen):
    """Matches when one of ``classes`` is among the error's classes and ``message``, where given, is in its text."""

    classes: tuple[str, ...] = Field((), alias="class")
    message: str | None = None
    stage: ErrorStage | None = None


class ExpectedEventTime(Frozen):
    min: Json = None
    max: Json = None
    avg: Json = None


class Expectation(Frozen):
    """What a step must show. ``rows`` absent means no rows; every other absent key is not checked."""

    rows: tuple[Row, ...] = ()
    batches: tuple[ExpectedBatch, ...] | None = None
    watermark: Json = None
    dropped: int | None = None
    state: int | tuple[int, ...] | None = None
    event_time: ExpectedEventTime | None = None
    progress: Mapping[str, Json] | None = None
    plan: tuple[str, ...] | None = None
    error: ExpectedError | None = None


class ExpectationChange(Expectation):
    """What a ``differs`` entry replaces in a step: the keys given, and those ``unchecked`` takes out."""

    unchecked: tuple[str, ...] = ()


class Step(Frozen):
    number: int
    """From 1."""
    action: Action
    name: str | None = None
    expect: Expectation | None = None
    """None where the step says nothing: then it emits no rows and nothing else is checked."""


# Versions that differ: exactly one of the three ways.


class Differs(Frozen):
    """A range of versions that behaves otherwise, with its reason."""

    spark: VersionRange
    link: str | None = None
    because: str | None = None
    unsupported: str | None = None
    """Why the feature is not there: the case must fail at analysis or start."""
    expect: Expectation | None = None
    """Expected of the start, instead of every step's expectation."""
    steps: Mapping[int, ExpectationChange] = {}
    """Step number (names are resolved when the case is read) → what replaces its expectation."""


class Case(Frozen):
    """One case, valid and complete."""

    id: str
    """Path under the suite's root without the suffix: ``late-drops/window-still-open``."""
    path: Path
    digest: str
    """SHA-256 over the content of the case; formatting and comments do not matter."""
    lines: Mapping[str, int]
    """Where things stand in the file, from 1: ``title``, ``steps.3``, ``differs.1``."""

    title: str
    streams: Mapping[str, Schema]
    query: Pipeline
    steps: tuple[Step, ...]
    behaviour: tuple[str, ...] = ()
    strength: Strength = "documented"
    links: tuple[str, ...] = ()
    why: str | None = None
    spark: VersionRange | None = None
    mirrors: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    output_mode: OutputMode = "append"
    trigger: Trigger = "default"
    conf: Mapping[str, str] = {}
    differs: tuple[Differs, ...] = ()

    @property
    def family(self) -> str:
        """The folder the case is in: ``late-drops``; empty for a case that is in none."""
        return self.id.rpartition("/")[0]

    def applies_to(self, version: SparkVersion) -> bool:
        return self.spark is None or version in self.spark

    def differs_on(self, version: SparkVersion) -> Differs | None:
        """The entry this version falls into; entries never overlap."""
        return next((entry for entry in self.differs if version in entry.spark), None)

    def pipelines(self) -> Iterator[Pipeline]:
        """The query, and each query that a restart puts in its place."""
        yield self.query
        for step in self.steps:
            if isinstance(step.action, Restart) and step.action.change.query is not None:
                yield step.action.change.query

    def not_yet_runnable(self) -> Iterator[str]:
        """Names of the constructs in this case that parse but that no runtime can carry out yet."""
        return (name for _, name in self.not_yet_runnable_at())

    def not_yet_runnable_at(self) -> Iterator[tuple[str, str]]:
        """The same, each after the key of ``lines`` where it stands: ``("steps.3", "restart: kill")``."""
        for name in self.query.not_yet_runnable():
            yield "query", name
        for step in self.steps:
            if isinstance(step.action, Restart):
                place = f"steps.{step.number}"
                if step.action.how == "kill":
                    yield place, "restart: kill"
                if step.action.change.query is not None:
                    yield from ((place, name) for name in step.action.change.query.not_yet_runnable())
