"""The messages between host and driver: JSON lines, version 1. The published schemas in ``messages/`` are made from these.

The host sends ``CaseRequest``s without waiting for answers: requests run side by side. The driver ends when its standard input does. It
sends ``Hello`` once; then for each request a ``StepAnswer`` per step and ``Done``, or ``Failed`` if it
could not carry the request out. Each message names the run of its case. If the last step is ``kill``, the driver sends ``Reached`` instead
of that step's answer and ``Done``, and the host kills it.

A request may hold only some of a case's steps, from step ``first`` on: another process ran the earlier ones and left the directory.

A ``ProgramRequest`` asks what a program of the author's does; ``ProgramSeen`` answers it.
A ``StateRequest`` asks what waits in the state of a checkpoint; ``StateSeen`` answers it.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel

from conformance.checkpoints.state_rows import StateRead
from conformance.core.observation import Column, Identity, OwnCodeError, StepSeen
from harness.driver import PROTOCOL
from harness.driver.errors import FailureReason

Json: TypeAlias = Any
Partitions: TypeAlias = tuple[tuple[dict[str, Json], ...], ...]
"""Rows as objects, in the partitions of one micro-batch of one stream."""


class Message(BaseModel):
    """Any message; its fields are camelCase on the wire."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, defer_build=True
    )


class TopicRequest(Message):
    """The topic of Kafka that a stream is read from."""

    partitions: int
    timestamp: str | None = None
    """The column that is the timestamp of the record and not in its value."""
    options: dict[str, str] = {}
    """More options of the reader."""


class StreamRequest(Message):
    """A stream to create."""

    ddl: str
    files: int
    """Files of each of its micro-batches: the most partitions that any of its arrivals has."""
    options: dict[str, str] | None = None
    """Options of the reader of files, in place of the limit to ``files``; None for that limit."""
    topic: TopicRequest | None = None
    """None for a stream that is not read from Kafka."""
    in_memory: bool = False
    """Whether its rows lie in the memory of the engine's driver, where a real-time query can read them."""
    table: Literal["delta", "iceberg"] | None = None
    """The format of the table that it is read from; None for a stream that is not."""


class ChangeRequest(Message):
    """What a restart changes; None leaves it as it is."""

    conf: dict[str, str] | None = None
    output_mode: str | None = None
    trigger: str | None = None
    query: list[dict[str, Json]] | None = None
    partitions: dict[str, int] | None = None
    """Stream → the partitions of its topic."""


class StepRequest(Message):
    """One step."""

    action: Literal["start", "add", "backlog", "idle", "advance", "alter", "restart", "kill"]
    """``kill``: continue to a point and send ``Reached``."""
    batches: tuple[dict[str, Partitions], ...] = ()
    """What arrives: one entry per micro-batch."""
    how: Literal["graceful", "crash-before-commit", "kill"] | None = None
    """How a restart ends the query before; a restart by ``kill`` is the first step of its request."""
    change: ChangeRequest | None = None
    advance: int = 0
    """The ms by which ``advance`` moves the clock of the query."""
    damage: dict[str, str] | None = None
    """What a restart damages before: ``gone``, ``empty`` or ``truncated`` → which part of the checkpoint."""
    repartition: int | None = None
    """The new number of partitions of the state, which a restart divides; None to leave them."""
    aged_out: bool = False
    """Whether topics lose all their records, and tables their rows, before a restart."""
    rewritten: bool = False
    """Whether all rows of Delta tables are written again, in one commit that changes rows, before a restart."""
    recreated: dict[str, Partitions] = {}
    """Stream → the rows with which a restart makes its source again, which it deletes."""
    alter: dict[str, str] = {}
    """Stream → columns, in DDL, that its table gets, or gets with another type; of a restart before the query starts again."""
    checkpoint: Literal["moved", "copied", "new"] | None = None
    """In which other folder the query of a restart starts: its checkpoint is moved or copied there, or it is empty."""
    at: Literal["rest", "planned", "running", "emitted", "committed"] | None = None
    """The point at which ``kill`` waits."""
    nth: int = 1
    """The micro-batch of the step in which that point is; the first is 1."""
    plan: bool = False
    """Whether to report the plan after this step."""
    files: dict[str, str] | None = None
    """Stream → a file with rows as JSON, a line each, that arrive in place of those of ``batches``, which has only one."""
    keep: str | None = None
    """Where to copy ``directory`` before this step, while the query rests; None not to."""


class CaseRequest(Message):
    """A case without its expectations: the engine never sees what it is expected to answer."""

    case: str
    """Names this run of the case: no other request that is not done has the same."""
    directory: str
    """Holds checkpoint and input: an absolute path on the engine's file system. The driver makes it and removes it when done;
    if ``first`` is above 1, it exists already."""
    first: int = 1
    """The number of the first of ``steps``. ``query``, ``output_mode``, ``trigger`` and ``conf`` are those at that step."""
    restore: str | None = None
    """A directory to copy to ``directory`` first."""
    save: str | None = None
    """Where to move ``directory`` when done, instead of removing it."""
    discard: tuple[str, ...] = ()
    """Directories to remove first."""
    digests: bool = False
    """Whether to report, in place of the rows that a micro-batch emits, one that says how many they are, and their digest."""
    tell: bool = False
    """Whether to send ``Emitted`` for each micro-batch before it can be committed."""
    streams: dict[str, StreamRequest]
    query: list[dict[str, Json]]
    output_mode: str
    trigger: str
    interval: int | None = None
    """Of the trigger ``processingTime``: its interval in ms."""
    clock: int = 0
    """Of the same trigger: what the clock of the query shows at the first of ``steps``, in ms since the epoch."""
    conf: dict[str, str]
    steps: tuple[StepRequest, ...]
    sink: str | None = None
    """``module:function`` of the author's that gets each micro-batch before its rows are kept; ``files``, ``delta`` or ``iceberg``: what
    Spark itself writes, where the driver reads the rows."""
    read_sink: bool = False
    """Whether to report after each step all that such a sink has."""
    code: tuple[str, ...] | None = None
    """Folders of the modules that ``call`` names, on the engine's file system; None forbids calling."""
    kafka: str | None = None
    """``host:port`` of the broker that has the topics; several are separated by commas. ``SECRET@host:port`` of the broker of a run."""
    arrived: tuple[dict[str, Partitions], ...] | None = None
    """What arrived before the first step, one entry per arrival: the topics are made anew and get it, because no copy of ``directory``
    has them. None leaves them as they are."""


class ProgramRequest(Message):
    """Run a program of the author's without any rows, to see what it reads and starts."""

    case: str
    directory: str
    """Holds the streams that it reads meanwhile: an absolute path on the engine's file system, as for a case."""
    program: dict[str, Json]
    """As ``call`` names it: ``program``, a file or a module, and ``arguments``."""
    schemas: dict[str, str]
    """Source → its columns, for those whose columns are known from a sample."""
    code: tuple[str, ...]
    """Folders of the author's modules, on the engine's file system."""
    conf: dict[str, str] = {}
    record: int = 0
    """How many rows of each source to read from the source itself."""


class StateRequest(Message):
    """Read the state of a checkpoint with Spark's own reader."""

    case: str
    checkpoint: str
    """On the engine's file system."""
    conf: dict[str, str]
    reads: tuple[StateRead, ...]


class Hello(Message):
    """The driver introduces its engine."""

    kind: Literal["hello"]
    identity: Identity
    slots: int | None = None
    """Tasks that its cluster runs at once; None without a cluster."""


class DriverAnswer(Message):
    """What the driver sends about a request."""

    kind: str
    case: str | None
    """The run that it is about."""


class StepAnswer(DriverAnswer):
    """The observation of one step."""

    kind: Literal["step"]
    case: str
    step: StepSeen


class Emitted(DriverAnswer):
    """A micro-batch has passed its rows to the sink and is not committed yet; sent at any time while a step runs."""

    kind: Literal["emitted"]
    case: str
    batch: int
    rows: tuple[tuple[Json, ...], ...] = ()


class Reached(DriverAnswer):
    """The driver is at the point of a ``kill`` step and waits to be killed."""

    kind: Literal["reached"]
    case: str
    step: StepSeen
    """The step up to this point."""
    columns: tuple[Column, ...]
    missed: bool
    """Whether the engine had already gone past the point; if so, the run must be repeated."""
    executors_lost: int = 0
    """Executors that the cluster lost meanwhile; if any, the run must be repeated."""


class Done(DriverAnswer):
    """The request is carried out."""

    kind: Literal["done"]
    case: str
    columns: tuple[Column, ...]
    """What the query emits; empty if no query was built."""
    memory: int | None = None
    """Bytes the engine uses now; None if its operating system does not report it."""
    executors_lost: int = 0
    """Executors that the cluster lost while the case ran; if any, the run must be repeated."""


class SourceSeen(Message):
    """A source that a program reads."""

    name: str
    """Its topic, the last part of its path or table, or the name that the program gives it."""
    format: str
    """``kafka``, ``json``, ``table`` …"""
    ddl: str | None
    """Its columns; None if only its files or its table say them."""
    options: dict[str, str] = {}
    """What else the program says of it, its path, too."""
    at: str | None = None
    """The line that reads it, as that of a query."""
    rows: tuple[str, ...] | None = None
    """Its first rows, each as a JSON object, if the request asked for them and the source could be read."""
    unread: str | None = None
    """Why it could not."""


class QuerySeen(Message):
    """A query that a program starts."""

    name: str | None
    output_mode: str
    trigger: str
    """``default``, ``once``, ``availableNow``, ``realTime`` or ``continuous``."""
    sink: str
    """``parquet``, ``table`` or, for a function of the author's, ``foreachBatch`` or ``foreach``."""
    at: str | None
    """The line that starts it, ``job.py:12``; None if no line of the author's does."""
    reads: tuple[str, ...]
    """The sources that it reads."""
    options: dict[str, str] = {}
    """What else the program says of it: its options, ``path``, ``trigger``, ``partitionBy``, and the ``function`` of ``foreachBatch``."""


class ProgramSeen(DriverAnswer):
    """What a program does. Without an error, the last source has no columns only if the program could not go on without them."""

    kind: Literal["program"]
    case: str
    sources: tuple[SourceSeen, ...]
    queries: tuple[QuerySeen, ...]
    """In the order in which the program starts them."""
    passed_over: Mapping[str, str] = {}
    """Lines that read what a query would have written, where the program or a cell ended; with what Spark said if no package reads it."""
    error: OwnCodeError | None = None
    """What ended the program, an exception of its own or of Spark's; None if it got to its end, or lacks columns."""


class StateSeen(DriverAnswer):
    """What Spark's own reader says of the state of a checkpoint."""

    kind: Literal["state"]
    case: str
    values: tuple[tuple[int | None, ...], ...]
    """Of the expressions of each read."""
    error: str | None
    """Why Spark does not read it."""


class Failed(DriverAnswer):
    """The driver could not carry out the request, or did not start."""

    kind: Literal["failed"]
    case: str | None = None
    """None if it concerns every case in the engine, or none because the engine did not start."""
    message: str
    """A traceback if the reason is ``driver-error``."""
    reason: FailureReason = FailureReason.DRIVER_ERROR


ANSWERS: TypeAdapter[Hello | DriverAnswer] = TypeAdapter(
    Annotated[
        Hello | StepAnswer | Emitted | Reached | Done | ProgramSeen | StateSeen | Failed, Field(discriminator="kind")
    ],
    config=ConfigDict(defer_build=True),
)
"""Parses one line from the driver; raises pydantic's ValidationError for anything else."""


def schemas() -> Iterator[tuple[str, dict[str, Json]]]:
    """Each message's name and its JSON Schema; ``python -m tools.regenerate`` writes them."""
    requests, answers = (CaseRequest, ProgramRequest, StateRequest), (Reached, Done, ProgramSeen, StateSeen, Failed)
    for message in (*requests, Hello, StepAnswer, Emitted, *answers):
        yield message.__name__, {"$id": f"{message.__name__}/v{PROTOCOL}", **message.model_json_schema(by_alias=True)}
