"""A case as written: frozen values structured like the YAML, which ``conformance.language`` reads. See ``docs/case-language``."""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, InstanceOf
from pydantic.alias_generators import to_camel

from conformance.core.data import Json
from conformance.core.operations import Call, Main, Operation, OutputMode, Pipeline
from conformance.core.spark_types import Schema
from conformance.core.versions import SparkVersion, VersionRange

WrittenRow: TypeAlias = tuple[Json, ...] | Mapping[str, Json]
"""Values in schema order, or by column name; instants in the notation in which they were written."""

Trigger: TypeAlias = Literal["default", "once", "availableNow", "realTime", "processingTime"]
Source: TypeAlias = Literal["files", "kafka", "memory", "delta", "iceberg"]
TableFormat: TypeAlias = Literal["delta", "iceberg"]
"""The format of a table that a stream is read from."""
TABLE_FORMATS: tuple[TableFormat, ...] = get_args(TableFormat)
WrittenSink: TypeAlias = Literal["files", "delta", "iceberg"]
"""A sink that Spark itself writes, and in which the suite finds the rows."""
WRITTEN_SINKS: tuple[WrittenSink, ...] = get_args(WrittenSink)
SourceOption: TypeAlias = Literal["files", "kafka"]
"""Where a command may let the rows of any case come from."""
RunSource: TypeAlias = Literal["files", "kafka", "delta", "iceberg"]
"""The same for ``run``, which needs no copy of what the rows come from."""
Interface: TypeAlias = Literal["classic", "connect"]
"""How a query reaches its Spark: a session in the same process as the engine, or Spark Connect."""
Interfaces: TypeAlias = tuple[Interface, Interface]
"""The interface of the version that writes a checkpoint, and that of the version that resumes it."""
CLASSIC: Interfaces = ("classic", "classic")
Strength: TypeAlias = Literal["documented", "observed"]
BatchKind: TypeAlias = Literal["data", "no-data"]
ErrorStage: TypeAlias = Literal["analysis", "start", "run", "read"]
HowRestarted: TypeAlias = Literal["graceful", "crash-before-commit", "kill"]
KillPoint: TypeAlias = Literal["rest", "planned", "running", "emitted", "committed"]
"""When the engine is killed: while nothing runs; after the offsets of a micro-batch are logged; after one of its partitions has
run; after its rows are out; after it is committed and before the next one is planned."""
Damage: TypeAlias = Literal["gone", "empty", "truncated"]
CheckpointPart: TypeAlias = Literal["metadata", "offsets", "commit", "delta", "snapshot", "state", "sinkLog"]
"""``offsets`` and ``commit``: the newest entry of that log. ``delta``: the newest version of every state store. ``state``: the folder.
``sinkLog``: the folder with the log of a sink for files, which is not in the checkpoint."""
CheckpointPlace: TypeAlias = Literal["moved", "copied", "new"]
"""In which other folder a query starts again: the checkpoint was moved there; it was copied there, and the old folder remains; or the
folder is empty, and the view ``state`` has the state of the old checkpoint."""


class Frozen(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        arbitrary_types_allowed=True,
        defer_build=True,
    )


class _Source(Frozen):
    def options(self, but: Collection[str] = ()) -> dict[str, str]:
        """Return what a stream says of its source, as options of Spark's reader, which have the names of the keys; ``but``: not these."""
        given = self.model_dump(by_alias=True, exclude_none=True, exclude=set(but))
        return {key: str(value).lower() for key, value in given.items()}


class FileSource(_Source):
    """How a stream of files chooses what a micro-batch reads, where it is not one arrival; None for Spark's default."""

    max_files_per_trigger: int | None = None
    latest_first: bool | None = None
    max_file_age: str | None = None
    """How much older than the newest file that was read a file may be: ``7d``."""
    clean_source: Literal["off", "delete", "archive"] | None = None


class KafkaSource(_Source):
    """How a stream is read from a topic of Kafka."""

    partitions: int = Field(1, ge=1)
    timestamp: str | None = None
    """The TIMESTAMP column that is the record's own timestamp; None if every column is in the record's value."""
    max_offsets_per_trigger: int | None = None
    """How many records a micro-batch reads at most; None for all that are there."""
    starting_offsets: Literal["earliest", "latest"] | tuple[int, ...] = "earliest"
    """Where a query without checkpoint begins: that of each partition, -2 for its first record and -1 for behind its last."""
    fail_on_data_loss: bool | None = None
    """Whether the query fails if records that it has not read are gone; None for Spark's default, which is true."""
    min_partitions: int | None = None


class Partitioned(Frozen):
    """Rows of a stream for a micro-batch, by partition; a plain list of rows is one partition."""

    partitions: tuple[tuple[WrittenRow, ...], ...]


Arrival: TypeAlias = Mapping[str, Partitioned]
"""Stream name → the rows that arrive on it. An absent stream has nothing new."""


# What a step does: exactly one of these.


class Start(Frozen):
    """Start the query, which is implicit before the first step if no step starts it."""


class Add(Frozen):
    """Rows that arrive in one micro-batch; then the engine runs until idle."""

    streams: Arrival


class Backlog(Frozen):
    """One micro-batch per entry with no idle gap between them; then the engine runs until idle. All entries name the same streams."""

    entries: tuple[Arrival, ...]


class Idle(Frozen):
    """Nothing arrives; the engine runs until idle."""


class Advance(Frozen):
    """The clock of the query, which only this moves, goes on; then the engine runs the micro-batch that is due, if one is."""

    ms: int


class Alter(Frozen):
    """The tables of streams get other columns; then the engine runs until idle."""

    columns: Mapping[str, Schema]
    """Stream → columns that its table lacks, and columns that it has with the type that they get."""


class RestartChange(Frozen):
    conf: Mapping[str, str] | None = None
    output_mode: OutputMode | None = None
    trigger: Trigger | None = None
    query: InstanceOf[Pipeline] | None = None
    partitions: Mapping[str, int] = {}
    """Stream → the partitions that its topic has from here on."""


class Restart(Frozen):
    """Stop the query and start it again from its checkpoint."""

    how: HowRestarted
    change: RestartChange = Field(default_factory=RestartChange)
    at: KillPoint = "rest"
    """When ``kill`` kills the engine."""
    add: Arrival = {}
    """The rows of the micro-batch in which ``kill`` kills the engine."""
    batch: int = 1
    """The micro-batch of the step, from 1, in which ``kill`` kills the engine."""
    damage: Mapping[Damage, CheckpointPart] = {}
    """What is damaged in the checkpoint while no engine runs."""
    repartition: int | None = None
    """Into how many partitions the state is divided while no query runs; None leaves them as they are."""
    aged_out: bool = False
    """Whether topics lose all their records, and tables their rows and the versions that had them, while no engine runs, as when their
    time is over."""
    rewritten: bool = False
    """Whether all rows of Delta tables are written again, in a commit that changes rows, while no engine runs."""
    recreated: Arrival = {}
    """The streams whose source is deleted and made again with these rows, while no engine runs."""
    alter: Mapping[str, Schema] = {}
    """As ``Alter.columns``, while no engine runs."""
    checkpoint: CheckpointPlace | None = None
    """In which other folder the query starts again; None for the same."""


Action: TypeAlias = Start | Add | Backlog | Idle | Advance | Alter | Restart


# What is expected of a step. `model_fields_set` distinguishes an absent key from null.


class ExpectedBatch(Frozen):
    """A micro-batch of a step; absent keys are not checked."""

    kind: BatchKind | None = None
    rows: tuple[WrittenRow, ...] | None = None
    watermark: Json = None
    """The watermark the batch ran with."""
    dropped: int | tuple[int, ...] | None = None
    state: int | tuple[int, ...] | None = None


class ExpectedError(Frozen):
    """Matches if one of ``classes`` is among the classes of the error and ``message``, if given, is found in its text."""

    classes: tuple[str, ...] = Field((), alias="class")
    message: str | None = None
    stage: ErrorStage | None = None


class ExpectedEventTime(Frozen):
    min: Json = None
    max: Json = None
    avg: Json = None


class Expectation(Frozen):
    """What a step must produce. Without ``rows``, no rows are expected; other absent keys are not checked."""

    rows: tuple[WrittenRow, ...] = ()
    in_order: Literal[True] | None = None
    batches: tuple[ExpectedBatch, ...] | None = None
    watermark: Json = None
    dropped: int | tuple[int, ...] | None = None
    state: int | tuple[int, ...] | None = None
    event_time: ExpectedEventTime | None = None
    progress: Mapping[str, Json] | None = None
    plan: tuple[str, ...] | None = None
    error: ExpectedError | None = None


class ExpectationChange(Expectation):
    """What a ``differs`` entry changes in an expectation: it replaces the given keys and removes those in ``unchecked``."""

    unchecked: tuple[str, ...] = ()


class Step(Frozen):
    number: int
    """Steps are numbered from 1."""
    action: Action
    name: str | None = None
    expect: Expectation | None = None
    """If None, the step must emit no rows, and nothing else is checked."""

    def arrivals(self) -> Iterator[Arrival]:
        """Yield the rows that arrive in it, by micro-batch."""
        match self.action:
            case Add(streams=arrival) | Restart(add=arrival):
                yield arrival
            case Backlog(entries=entries):
                yield from entries


# Versions that differ: exactly one of `unsupported`, `expect` and `steps`.


class Documented(Frozen):
    """A difference between versions that a case documents, with the reason."""

    because: str | None = None
    link: str | None = None
    bug: bool = False
    """Whether it is a known bug of these versions, whose ticket is ``link``, as opposed to a documented change."""
    introduced_by: str | None = None
    """The ticket that introduced a bug without a ticket of its own, if known."""
    error: ExpectedError | None = None
    """How these versions refuse the query or the checkpoint."""
    steps: Mapping[int, ExpectationChange] = {}
    """Step number (names are resolved when the case is read) → what changes in its expectation."""

    @property
    def reason(self) -> str:
        return self.because or ""


class Differs(Documented):
    """A range of versions that behaves differently.

    Without ``error``, versions that ``unsupported`` is about refuse the query with the error of a missing method.
    """

    spark: VersionRange
    source: Source | None = None
    """The source with which they behave so; None if it does not matter."""
    unsupported: str | None = None
    """Why the feature does not exist; the case must fail at analysis or start with ``error``."""
    expect: Expectation | None = None
    """What is expected of the start, in place of all expectations of steps."""

    @property
    def reason(self) -> str:
        return self.because or self.unsupported or ""


# A checkpoint that another version resumes.


_SETTING = re.compile(r"(spark\.[\w.]+)=(\S+)")


class Upgrade(Documented):
    """What differs if one version resumes the checkpoint of another: exactly one of ``error`` and ``steps``."""

    from_: VersionRange | None = Field(None, alias="from")
    """The versions that wrote the checkpoint; None means any."""
    to: VersionRange | None = None
    written_by: Interface | None = None
    """How the query reached the version that wrote it; None means either way."""
    resumed_by: Interface | None = None
    cuts: tuple[int, ...] = ()
    """The steps before which the version changes; empty means any."""
    because: str
    workaround: str | None = None
    """The documented workaround: a setting, ``key=value``, which every run of the upgrade tries, or a sentence."""

    @property
    def setting(self) -> Mapping[str, str]:
        """The workaround as a Spark setting; empty if it is a sentence or there is none."""
        setting = _SETTING.fullmatch(self.workaround or "")
        return {setting[1]: setting[2]} if setting is not None else {}

    def speaks_of(self, origin: SparkVersion, to: SparkVersion, cut: int, interfaces: Interfaces = CLASSIC) -> bool:
        return (
            (self.from_ is None or origin in self.from_)
            and (self.to is None or to in self.to)
            and (self.written_by in (None, interfaces[0]))
            and (self.resumed_by in (None, interfaces[1]))
            and (not self.cuts or cut in self.cuts)
        )


class NeedsCode(Frozen):
    """Something in a case that runs only with ``--allow-code``."""

    line: int
    """Lines and columns of the file are numbered from 1."""
    column: int
    reason: str


def file_of(id: str, expansion: str, suffix: str = ".yaml") -> str:
    """Return the file of a case, relative to the root of the suite; ``expansion``: the name that ``matrix`` gives the case."""
    return (id.removesuffix(f".{expansion}") if expansion else id) + suffix


class Mirror(Frozen):
    """What a case re-expresses: a founding statement (S21) or one of Spark's own tests (T044)."""

    id: str
    partly: str | None = None
    """Which assertions of the test no case carries; None if this case and the others that name the test carry all of them."""

    def __str__(self) -> str:
        return f"{self.id} (partly)" if self.partly else self.id


class AnyCase(Frozen):
    """What a case says whatever it is about."""

    id: str
    """Path under the root of the suite without the suffix: ``late-drops/window-still-open``, followed by ``.left-outer`` if that
    is its ``expansion``."""
    path: Path
    digest: str
    """SHA-256 over the content of the case, ignoring formatting and comments."""
    lines: Mapping[str, int]
    """What is in the file (``title``, ``steps.3``, ``differs.1``, ``trace.3.expect.late``) → its line, from 1."""

    title: str
    strength: Strength = "documented"
    links: tuple[str, ...] = ()
    why: str | None = None
    mirrors: tuple[Mirror, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The folder of the case, ``late-drops``; empty at the root."""
        return self.id.rpartition("/")[0]


class Case(AnyCase):
    """A case of Spark, valid and complete."""

    row_files: frozenset[Path] = frozenset()
    """The files of rows that the case reads, as paths from its folder on."""
    streams: Mapping[str, Schema]
    files: Mapping[str, FileSource] = {}
    """The streams of files that choose for themselves what a micro-batch reads."""
    topics: Mapping[str, KafkaSource] = {}
    tables: Mapping[str, TableFormat] = {}
    """The streams that are read from a table."""
    table_options: Mapping[str, Mapping[str, str]] = {}
    """Those of them that choose for themselves what a micro-batch reads, and how: all commits of a first step wait when a query starts."""
    in_memory: frozenset[str] = frozenset()
    """The streams that are read from the memory of the engine's driver, as the trigger ``realTime`` can; the others are read from files."""
    query: InstanceOf[Pipeline]
    steps: tuple[Step, ...]
    expansion: str = ""
    """The name that ``matrix`` gives the case; empty for a file with one case."""
    behaviour: tuple[str, ...] = ()
    spark: VersionRange | None = None
    output_mode: OutputMode = "append"
    trigger: Trigger = "default"
    interval_ms: int | None = None
    """Of the trigger ``processingTime``: how often it looks whether a micro-batch is to run, by the clock that ``Advance`` moves."""
    sink: str | None = None
    """``module:function``, the author's own function that writes each micro-batch; or a sink of Spark's own, see ``written``."""
    conf: Mapping[str, str] = {}
    differs: tuple[Differs, ...] = ()
    upgrades: tuple[Upgrade, ...] = ()
    variants: Mapping[str, str] = {}
    """Name of a variant that may change the result → why."""
    needs_code: tuple[NeedsCode, ...]
    """What in it runs only with ``--allow-code``, as ``conformance.language.permission`` finds it; empty if it may always run."""
    not_checked: tuple[tuple[int, str], ...] = ()
    """SQL whose syntax and columns are left to Spark: the line, and the text with the reason."""

    @property
    def file(self) -> str:
        """Its file, relative to the root of the suite: ``late-drops/window-still-open.yaml``."""
        return file_of(self.id, self.expansion, self.path.suffix or ".yaml")

    def applies_to(self, version: SparkVersion) -> bool:
        return self.spark is None or version in self.spark

    def differs_on(self, version: SparkVersion) -> Differs | None:
        """Return the entry for this version and the source of the case; entries never overlap."""
        sources = (None, self.source)
        return next((entry for entry in self.differs if version in entry.spark and entry.source in sources), None)

    @property
    def triggers(self) -> frozenset[Trigger]:
        changes = (step.action.change for step in self.steps if isinstance(step.action, Restart))
        return frozenset((self.trigger, *(change.trigger for change in changes if change.trigger)))

    def triggers_in(self, step: int) -> bool:
        """Return whether the query looks in this step whether a micro-batch is to run. With ``processingTime`` it does when it starts and
        each time that its clock reaches a multiple of the interval, or passes some."""
        if self.interval_ms is None or isinstance(self.steps[step - 1].action, Restart):
            return True
        return self.clock_ms(step + 1) // self.interval_ms > self.clock_ms(step) // self.interval_ms

    def clock_ms(self, step: int) -> int:
        """Return what the clock that ``Advance`` moves shows before the step with this number, in ms since the epoch."""
        return sum(before.action.ms for before in self.steps[: step - 1] if isinstance(before.action, Advance))

    @property
    def in_real_time(self) -> bool:
        return "realTime" in self.triggers

    def runs_in_real_time(self, version: SparkVersion) -> bool:
        """Return whether it needs an engine for real-time queries: any engine shows that a version is documented not to run it."""
        entry = self.differs_on(version)
        return self.in_real_time and (entry is None or entry.unsupported is None)

    @property
    def source(self) -> Source:
        """Where its rows come from: a single stream that is read from Kafka makes it ``kafka``, one from a table the table's format,
        a stream in memory ``memory``."""
        if self.topics:
            return "kafka"
        if self.tables:
            return min(self.tables.values())
        return "memory" if self.in_memory else "files"

    @property
    def written(self) -> WrittenSink | None:
        """The sink of Spark's own that the query writes, and in which the suite finds its rows."""
        return next((sink for sink in WRITTEN_SINKS if sink == self.sink), None)

    @property
    def own_sink(self) -> str | None:
        return self.sink if self.written is None else None

    @property
    def table_formats(self) -> tuple[TableFormat, ...]:
        """The formats of the tables that it reads and writes, each once, in order."""
        used = {*self.tables.values(), self.written}
        return tuple(format for format in TABLE_FORMATS if format in used)

    @property
    def jars(self) -> tuple[str, ...]:
        """The jars that its calls name, as ``--jar`` names them, each once."""
        return tuple(dict.fromkeys(jar for call in self.calls() for jar in call.jars))

    @property
    def calls_main(self) -> bool:
        return any(isinstance(call.called, Main) for call in self.calls())

    def calls(self) -> Iterator[Call]:
        """Yield its operations that call code of the author."""
        return (operation for operation in self.operations() if isinstance(operation, Call))

    def upgrade_between(
        self, origin: SparkVersion, to: SparkVersion, cut: int, interfaces: Interfaces = CLASSIC
    ) -> Upgrade | None:
        """Return the first entry for a checkpoint of ``origin`` that ``to`` resumes at step ``cut``, each through its interface."""
        return next((entry for entry in self.upgrades if entry.speaks_of(origin, to, cut, interfaces)), None)

    @property
    def keeps_state(self) -> bool:
        """Whether a query of the case may keep state between micro-batches; SQL and user code are assumed to."""
        return any(operation.may_keep_state for operation in self.operations())

    def output_mode_in(self, step: int) -> OutputMode:
        """Return the output mode of the query that runs in the step with this number: a restart may change it."""
        mode = self.output_mode
        for earlier in self.steps[:step]:
            if isinstance(earlier.action, Restart):
                mode = earlier.action.change.output_mode or mode
        return mode

    def pipelines(self) -> Iterator[Pipeline]:
        """Yield the query, and each query with which a restart replaces it."""
        yield self.query
        for step in self.steps:
            if isinstance(step.action, Restart) and step.action.change.query is not None:
                yield step.action.change.query

    def operations(self) -> Iterator[Operation]:
        """Return all operations of its pipelines, including the other sides of joins and unions."""
        return (operation for pipeline in self.pipelines() for operation in pipeline.walk())
