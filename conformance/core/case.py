"""A case, as written: frozen values in the shape of the YAML, and the source of the published JSON Schema.

Nothing here reads files or reports problems by line; ``conformance.language`` does both. See ``docs/case-language.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from conformance.core.query import Operation, Pipeline
from conformance.core.spark_types import Schema
from conformance.core.versions import SparkVersion, VersionRange

Json: TypeAlias = Any
Row: TypeAlias = tuple[Json, ...] | Mapping[str, Json]
"""Values in schema order, or by column name; instants still as they were written."""

OutputMode: TypeAlias = Literal["append", "update", "complete"]
Trigger: TypeAlias = Literal["default", "once", "availableNow"]
Strength: TypeAlias = Literal["documented", "observed"]
BatchKind: TypeAlias = Literal["data", "no-data"]
ErrorStage: TypeAlias = Literal["analysis", "start", "run"]
HowRestarted: TypeAlias = Literal["graceful", "crash-before-commit", "kill"]
KillPoint: TypeAlias = Literal["rest", "planned", "running", "emitted", "committed"]
"""Where the engine is killed: while nothing runs; once the offsets of a micro-batch are logged; once one partition of it has run;
once its rows are out; once it is committed and the next is not planned."""
Damage: TypeAlias = Literal["gone", "empty", "truncated"]
CheckpointPart: TypeAlias = Literal["metadata", "offsets", "commit", "delta", "state"]
"""``offsets`` and ``commit``: the newest entry of that log. ``delta``: the newest version of every state store. ``state``: all of it."""


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
    at: KillPoint = "rest"
    """Of ``kill``."""
    add: Arrival = {}
    """Of ``kill``: what arrives in the step, so that there is a micro-batch to be killed in."""
    batch: int = 1
    """Of ``kill``: in which micro-batch of the step, from 1."""
    damage: Mapping[Damage, CheckpointPart] = {}
    """What is spoilt in the checkpoint while no engine runs."""


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
    bug: bool = False
    """Whether it is a known bug of these versions and no documented change; ``link`` is then its ticket."""
    because: str | None = None
    unsupported: str | None = None
    """Why the feature is not there: the case must fail at analysis or start."""
    expect: Expectation | None = None
    """Expected of the start, instead of every step's expectation."""
    steps: Mapping[int, ExpectationChange] = {}
    """Step number (names are resolved when the case is read) → what replaces its expectation."""


# A checkpoint that another version goes on from.


class Upgrade(Frozen):
    """What is otherwise where one version goes on from the checkpoint of another: exactly one of ``error`` and ``steps``."""

    from_: VersionRange | None = Field(None, alias="from")
    """The versions that wrote the checkpoint; any where it is None."""
    to: VersionRange | None = None
    """The versions that resume it."""
    cuts: tuple[int, ...] = ()
    """The steps before which the query changed versions; any where it is empty."""
    because: str
    link: str | None = None
    bug: bool = False
    """Whether it is a known bug, as in ``Differs``."""
    way_round: str | None = None
    """What is documented to help."""
    error: ExpectedError | None = None
    """The resuming version refuses the checkpoint with this."""
    steps: Mapping[int, ExpectationChange] = {}
    """Of steps after the cut: what replaces their expectation."""

    def speaks_of(self, origin: SparkVersion, to: SparkVersion, cut: int) -> bool:
        return (
            (self.from_ is None or origin in self.from_)
            and (self.to is None or to in self.to)
            and (not self.cuts or cut in self.cuts)
        )


def file_of(id: str, expansion: str, suffix: str = ".yaml") -> str:
    """The file of a case, relative to the suite's root, by its id and which of the cases of the file it is."""
    return (id.removesuffix(f".{expansion}") if expansion else id) + suffix


class Case(Frozen):
    """One case, valid and complete."""

    id: str
    """Path under the suite's root without the suffix: ``late-drops/window-still-open``; and ``.left-outer`` behind it where
    ``expansion`` is that."""
    path: Path
    digest: str
    """SHA-256 over the content of the case; formatting and comments do not matter."""
    lines: Mapping[str, int]
    """Where things stand in the file, from 1: ``title``, ``steps.3``, ``differs.1``."""

    title: str
    streams: Mapping[str, Schema]
    query: Pipeline
    steps: tuple[Step, ...]
    expansion: str = ""
    """Which of the cases of a file with a ``matrix`` it is; empty where the file has none."""
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
    upgrades: tuple[Upgrade, ...] = ()
    variants: Mapping[str, str] = {}
    """Name of a variant that may change the answer → why."""

    @property
    def file(self) -> str:
        """The file it is in, relative to the suite's root: ``late-drops/window-still-open.yaml``."""
        return file_of(self.id, self.expansion, self.path.suffix or ".yaml")

    @property
    def family(self) -> str:
        """The folder the case is in: ``late-drops``; empty for a case that is in none."""
        return self.id.rpartition("/")[0]

    def applies_to(self, version: SparkVersion) -> bool:
        return self.spark is None or version in self.spark

    def differs_on(self, version: SparkVersion) -> Differs | None:
        """The entry this version falls into; entries never overlap."""
        return next((entry for entry in self.differs if version in entry.spark), None)

    def upgrade_between(self, origin: SparkVersion, to: SparkVersion, cut: int) -> Upgrade | None:
        """The first entry that speaks of a checkpoint of ``origin`` resumed by ``to`` at step ``cut``."""
        return next((entry for entry in self.upgrades if entry.speaks_of(origin, to, cut)), None)

    @property
    def keeps_state(self) -> bool:
        """Whether a query of the case may hold rows from one micro-batch to the next; code and SQL are taken to."""
        return any(operation.may_keep_state for operation in self.operations())

    def pipelines(self) -> Iterator[Pipeline]:
        """The query, and each query that a restart puts in its place."""
        yield self.query
        for step in self.steps:
            if isinstance(step.action, Restart) and step.action.change.query is not None:
                yield step.action.change.query

    def operations(self) -> Iterator[Operation]:
        """Those of each of its pipelines, the other sides of joins and unions among them."""
        return (operation for pipeline in self.pipelines() for operation in pipeline.walk())

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
                if step.action.change.query is not None:
                    yield from ((place, name) for name in step.action.change.query.not_yet_runnable())
