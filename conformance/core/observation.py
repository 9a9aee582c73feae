"""What an engine did with a case, on which its verdict is based.

The driver inside the engine sends these as JSON. Every instant is in milliseconds since the epoch unless a field says
otherwise. Values of rows are JSON: a TIMESTAMP is ``1970-01-01T12:05:00.500000Z`` (always six digits, UTC), a
TIMESTAMP_NTZ the same without ``Z``, DATE ``2024-03-01``, DECIMAL a string, BINARY base64, a struct and an array a
list, a map a list of pairs, NaN and the infinities the strings ``NaN``, ``Infinity`` and ``-Infinity``. Outside the years 1 to 9999
an instant is ``1772366400000.000000 s`` and a date ``20513500 d``, seconds and days since 1970.

Of the messages of an error and its causes, `reason` is the one that tells why, without what surrounds it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Set
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

from conformance.core.case import BatchKind, ErrorStage
from conformance.core.data import Json, text_digest

WRAPPERS = frozenset(
    {
        "ServerFailure",  # of the driver: what a Connect server sends of an exception
        *("CapturedException", "PySparkException", "PythonException", "PYTHON_EXCEPTION"),
        *("Py4JError", "Py4JException", "Py4JJavaError", "Py4JNetworkError"),
        *("FOREACH_BATCH_USER_FUNCTION_ERROR", "ForeachBatchUserFuncException", "INTERNAL_ERROR", "STREAM_FAILED"),
        *("SparkException", "SparkRuntimeException", "StreamingQueryException"),
    }
)
"""Classes of an error that only passes on another one."""

_BROAD = frozenset(
    {
        *("ExtendedAnalysisException", "IllegalStateException"),
        *("SparkUnsupportedOperationException", "UnsupportedOperationException"),
    }
)
"""Types that say less than another type of the same error."""

GENERIC = (
    WRAPPERS
    | _BROAD
    | {
        *("AnalysisException", "ArithmeticException", "ClassCastException", "IOException", "IllegalArgumentException"),
        *("MatchError", "NoSuchElementException", "ParseException", "SparkIllegalArgumentException"),
        *("AssertionError", "AttributeError", "KeyError", "NotImplementedError"),
        *("RuntimeError", "TypeError", "ValueError"),
        *("PySparkAttributeError", "PySparkRuntimeError", "PySparkTypeError", "PySparkValueError"),
    }
)
"""Classes of so many errors that they alone do not tell which error a case expects. A ``NullPointerException`` has no message."""

_PLACEHOLDER = "_LEGACY_ERROR_TEMP_"
"""Spark numbers errors that have no name yet; the numbers are not part of its interface (``common/utils/.../error/README.md``)."""


@lru_cache
def most_specific(classes: tuple[str, ...]) -> str:
    """Return the class to search for, of an error and its causes, outermost first: Spark's error condition if there is one, else the type
    that says most; empty without classes."""
    known = [name for name in classes if not name.startswith(_PLACEHOLDER)]
    conditions = [name for name in known if name.isupper() and name not in WRAPPERS]
    types = [name for name in known if name not in WRAPPERS]
    specific = [name for name in types if name not in _BROAD]
    return next(iter([*conditions, *specific, *types, *known, *classes]), "")


EmittedRow: TypeAlias = tuple[Json, ...]

DROPPED_ROWS = "numRowsDroppedByWatermark"
"""The metric of a stateful operator."""


_json = json.JSONEncoder(check_circular=False).encode
"""A faster ``json.dumps`` for what was read from JSON and so holds no cycle."""


class FrozenRecord(BaseModel):
    # The docstrings of records are in the published schemas of results and of messages.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


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


class ErrorBehaviour(NamedTuple):
    """The part of an error that two answers are compared by."""

    stage: ErrorStage
    name: str

    def __str__(self) -> str:
        return f"{self.name or 'an error without a class'} at {self.stage}"


class StepBehaviour(NamedTuple):
    """The part of a step that two answers are compared by: no durations, no progress, no error texts."""

    batches: tuple[BatchBehaviour, ...]
    watermark: int
    error: ErrorBehaviour | None

    def without_instants(self) -> StepBehaviour:
        """Return the same without watermarks, for cases whose event time is the engine's clock."""
        batches = tuple(batch._replace(watermark=None, next_watermark=None) for batch in self.batches)
        return self._replace(batches=batches, watermark=0)


class Column(FrozenRecord):
    """An output column; ``type`` is Spark's simple string, ``struct<start:timestamp,end:timestamp>``."""

    name: str
    type: str


class SourceRead(FrozenRecord):
    """What one micro-batch read from one source."""

    stream: str
    rows: int
    """According to the progress, which may count a stream twice that the query reads twice."""
    moved: bool
    """Whether the offset of the source moved, even without rows."""


class TopicRead(SourceRead):
    """What one micro-batch read from a topic."""

    records: tuple[int, ...]
    """How many records it read of each partition; an arrival without rows is a record, too."""


class EventTime(FrozenRecord):
    """Event-time statistics of a micro-batch, in milliseconds since the epoch."""

    min: int
    max: int
    avg: int


MOST_LINES = 20
"""Lines of the output of the author's code that a verdict shows: the last ones."""


class OwnCodeError(FrozenRecord):
    """A mistake in the code of the case's author, which says nothing about Spark."""

    raised: str
    """The error as Python shows it: ``KeyError('MY_ENV_VAR')``."""
    at: str | None
    """The file and line in the author's code, ``acme_jobs/totals.py:12``; None if no line of it raised the error."""
    during: str
    """When it was raised: ``while building the query``, ``in a UDF`` or ``in the sink``."""
    traceback: str = ""
    """The frames in the author's code, and the error."""
    printed: str = ""
    """The end of what the function printed."""

    def __str__(self) -> str:
        return f"your code raised {self.raised}{f' at {self.at}' if self.at else ''}, {self.during}"

    @property
    def missing_module(self) -> str | None:
        """The module that the code did not get; None if it is one of Spark, which a version has or has not."""
        missing = re.match(r"ModuleNotFoundError\(.*No module named '(?!pyspark\b)([\w.]+)'", self.raised)
        return missing[1] if missing else None

    def lines(self) -> tuple[str, ...]:
        return (str(self), *self.evidence())

    def evidence(self) -> tuple[str, ...]:
        printed = self.printed.splitlines() if self.printed.strip() else []
        more = [f"it printed {len(printed) - MOST_LINES} lines before"] if len(printed) > MOST_LINES else []
        missing = self.missing_module
        remedy = f"{missing}: --code FOLDER if it is yours, --requirements FILE if it is a package" if missing else ""
        said = (f"it printed: {line}" for line in printed[-MOST_LINES:])
        return (*self.traceback.splitlines(), *([remedy] if remedy else []), *more, *said)


class ErrorSeen(FrozenRecord):
    """An error of the engine, or of the code of the case's author."""

    stage: ErrorStage
    classes: tuple[str, ...]
    """Error classes (``STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION``) and simple type names of the error and its causes."""
    message: str
    own_code: OwnCodeError | None = None

    @property
    def name(self) -> str:
        """The class that says what it is; empty if it has none."""
        return most_specific(self.classes)

    @property
    def title(self) -> str:
        """What to call it: the mistake in the author's code, or the class."""
        return str(self.own_code) if self.own_code is not None else self.name or "an error without a class"

    @property
    def reason(self) -> tuple[str, ...]:
        """The lines of the message that say what is wrong, without those of the errors that only pass it on."""
        said = reason(self.message, WRAPPERS)
        # Java shows an error without a message as null behind those that pass it on.
        return said or (("it has no message",) if self.message.strip() else ())

    @property
    def first_line(self) -> str:
        """The first line of the reason; empty if there is none."""
        return next(iter(self.reason), "")

    @property
    def behaviour(self) -> ErrorBehaviour:
        return ErrorBehaviour(self.stage, self.name)


class BatchSeen(FrozenRecord):
    """One executed micro-batch."""

    id: int
    kind: BatchKind
    """``data`` if the offset of some source moved, even without rows."""
    sources: tuple[TopicRead | SourceRead, ...]
    watermark: int | None
    """The watermark it ran with, from the progress; None if the query has none."""
    logged: int
    """The same from the offset log of the checkpoint, as a cross-check; 0 if the query has no watermark."""
    next_watermark: int | None
    """The watermark for the next batch, from the commit log; None if the batch was not committed."""
    rows: tuple[EmittedRow, ...]
    dropped: int | None
    """Late rows dropped, summed over all operators; None if the version has no such metric."""
    state: tuple[int, ...]
    """State rows per stateful operator, in the order of ``stateOperators``."""
    event_time: EventTime | None
    duration_ms: int
    """The time measured by the engine, ``triggerExecution``."""
    progress: dict[str, Json]

    @property
    def dropped_by_operator(self) -> tuple[int, ...] | None:
        """Late rows that each stateful operator dropped; None if the version has no such metric, or the progress is not kept."""
        counts = [operator.get(DROPPED_ROWS) for operator in self.progress.get("stateOperators", ())]
        known = tuple(count for count in counts if count is not None)
        return known if len(known) == len(counts) == len(self.state) else None

    @property
    def behaviour(self) -> BatchBehaviour:
        return BatchBehaviour._make(self.compared())

    def compared(self) -> tuple[int, str, int | None, int | None, tuple[str, ...], int | None, tuple[int, ...]]:
        """Return the fields of ``behaviour`` as a plain tuple, for digests, which are made of every cell of a file that is read."""
        rows = tuple(sorted(map(_json, self.rows))) if self.rows else ()
        return self.id, self.kind, self.watermark, self.next_watermark, rows, self.dropped, self.state


class StoredState(FrozenRecord):
    """The state of one operator in the checkpoint, as Spark's data source ``statestore`` reads it."""

    operator: str
    """As in the metadata of the state: ``stateStoreSave``, ``symmetricHashJoin``, ``dedupe`` …"""
    rows: int | None
    """The number of rows; None if it keeps variables of a processor, which are not counted."""


class Interrupted(FrozenRecord):
    """A micro-batch that had emitted its rows, but was not committed, when the engine was killed."""

    id: int
    rows: tuple[EmittedRow, ...]


class Written(FrozenRecord):
    """A micro-batch in a sink that Spark itself writes, with the rows that a reader finds."""

    id: int
    rows: tuple[EmittedRow, ...]


class StepSeen(FrozenRecord):
    """One step of the case, observed when the engine was idle again."""

    number: int
    """Steps are numbered from 1, as in the case."""
    batches: tuple[BatchSeen, ...]
    watermark: int
    """The watermark for the next batch, from the commit log; 0 before the first batch."""
    plan: str | None
    """Extended plan of the last executed batch, or the logical plan if none has run; None unless requested."""
    error: ErrorSeen | None
    wall_ms: int
    columns: tuple[Column, ...] = ()
    """What the query of this step emits; empty if that is what the last query of the case emits."""
    interrupted: Interrupted | None = None
    """For a step in which the engine was killed. ``batches`` has those that ran before the kill and those of the next engine."""
    stored: tuple[StoredState, ...] | None = None
    """The state after the last micro-batch, of each stateful operator in the order of ids; None if it was not read."""
    written: tuple[Written, ...] | None = None
    """All micro-batches with rows in the sink after the step; None if they were not asked for."""
    native: tuple[str, ...] | None = None
    """The operators of its micro-batches that an accelerator ran; None without an accelerator."""

    @property
    def behaviour(self) -> StepBehaviour:
        batches = tuple([batch.behaviour for batch in self.batches])
        return StepBehaviour(batches, self.watermark, self.error.behaviour if self.error is not None else None)


_Numbered = TypeVar("_Numbered", BatchSeen, Interrupted)


class Observation(FrozenRecord):
    """Everything one engine did with one case; a failed step is the last one."""

    case: str
    columns: tuple[Column, ...]
    """What the last query of the case emits; a restart may have changed it."""
    steps: tuple[StepSeen, ...]

    @classmethod
    def of(cls, case: str, columns: tuple[Column, ...], steps: tuple[StepSeen, ...]) -> Observation:
        """Return an observation whose steps name their columns only if they are not those of the last query."""
        kept = tuple(step.model_copy(update={"columns": ()}) if step.columns == columns else step for step in steps)
        return cls(case=case, columns=columns, steps=kept)

    @property
    def error(self) -> ErrorSeen | None:
        """The error that ended the case, if one did."""
        return self.steps[-1].error if self.steps else None

    @property
    def batches(self) -> tuple[BatchSeen, ...]:
        """The micro-batches of all steps."""
        return tuple(batch for step in self.steps for batch in step.batches)

    @property
    def complete(self) -> bool:
        """Whether the case got to its end: it has steps, and no error ended it."""
        return bool(self.steps) and self.error is None

    @property
    def own_code_error(self) -> OwnCodeError | None:
        """The mistake in the author's code that ended the case, if one did."""
        return self.error.own_code if self.error is not None else None

    @property
    def all_columns(self) -> tuple[tuple[Column, ...], ...]:
        """The output columns of the last query, then those of each step whose query has others."""
        return self.columns, *(step.columns for step in self.steps)

    def columns_of(self, step: StepSeen) -> tuple[Column, ...]:
        return step.columns or self.columns

    def comparable(self, in_no_order: Set[str], not_fixed: Set[str]) -> Observation:
        """Return the same with the elements of arrays sorted in some columns, whose order is not promised, and null in columns that no
        rows fix."""

        def rows_of(step: StepSeen, rows: tuple[EmittedRow, ...]) -> tuple[EmittedRow, ...]:
            columns = self.columns_of(step)
            sort = [column.name in in_no_order and "array<" in column.type for column in columns]
            null = [column.name in not_fixed for column in columns]
            return tuple(
                tuple(None if null[at] else _sorted(value) if sort[at] else value for at, value in enumerate(row))
                for row in rows
            )

        def of(step: StepSeen) -> StepSeen:
            batches = (batch.model_copy(update={"rows": rows_of(step, batch.rows)}) for batch in step.batches)
            return step.model_copy(update={"batches": tuple(batches)})

        return self.model_copy(update={"steps": tuple(map(of, self.steps))})

    def without_progress(self) -> Observation:
        """Return the same without the raw ``progress`` of its micro-batches, which is the bulk of it."""

        def without(step: StepSeen) -> StepSeen:
            batches = tuple(batch.model_copy(update={"progress": {}}) for batch in step.batches)
            return step.model_copy(update={"batches": batches})

        return self.model_copy(update={"steps": tuple(map(without, self.steps))})

    def with_consecutive_ids(self) -> Observation:
        """Return the same, its micro-batches numbered from 0: how many others ran between them is not its behaviour."""
        ids: dict[int, int] = {}

        def numbered(batch: _Numbered) -> _Numbered:
            return batch.model_copy(update={"id": ids.setdefault(batch.id, len(ids))})

        steps = []
        for step in self.steps:
            batches, cut = tuple(map(numbered, step.batches)), step.interrupted and numbered(step.interrupted)
            steps.append(step.model_copy(update={"batches": batches, "interrupted": cut}))
        return self.model_copy(update={"steps": tuple(steps)})

    @property
    def behaviour_digest(self) -> str:
        return self.digest()

    def digest(self, *, instants: bool = True) -> str:
        """Return the digest of the behaviour of every step, with or without its watermarks. Results files carry these values."""
        steps = [
            ([batch.compared() for batch in step.batches], step.watermark, step.error and step.error.behaviour)
            if instants
            else step.behaviour.without_instants()
            for step in self.steps
        ]
        return text_digest(_json(steps))


class Identity(FrozenRecord):
    """The engine, as reported by the driver that runs in it."""

    protocol: int
    spark: str
    scala: str
    java: str
    python: str
    os: str
    apis: tuple[str, ...]
    """The DataFrame and stream methods used by the case language that exist in this version."""
    settings: tuple[str, ...] = ()
    """Settings that differ from Spark's defaults and that nobody asked for here, such as those of a ``spark-defaults.conf``, without
    secrets: ``spark.sql.streaming.noDataMicroBatches.enabled=false (by default true)``."""
    fixed: tuple[str, ...] = ()
    """What else it has of its own, which no session changes: settings, and jars on its class path that are not pyspark's, ``jar x.jar``."""


def _sorted(value: Json) -> Json:
    """The same value, of whose arrays the elements are in the order of their text."""
    if isinstance(value, Mapping):
        return {key: _sorted(item) for key, item in value.items()}
    return sorted(map(_sorted, value), key=_json) if isinstance(value, list | tuple) else value


CAUSED_BY = "Caused by: "
"""What the driver, and Java, write before the message of a cause."""
_TEXTS = re.compile(
    rf"^{CAUSED_BY}|Traceback \(most recent call last\):(?:\n[ \t].*)*"
    # The state of a query, with the tree of its plan: Spark puts it between the message and that of the cause.
    r"|^=== Streaming Query ===\n(?:.*\n)*?Thread State:.*(?:\n\s*Logical Plan:\n.*(?:\n[ :+|-].*)*)?|^=== Streaming Query ===[\s\S]*",
    re.MULTILINE,
)
_TREE = re.compile(r"[\s:|]*[+:]- ")
"""How a line of the tree of a plan begins, below its root."""
_NOISE = re.compile(r"\s+(?:at\b|\.\.\. \d+ more)|Driver stacktrace:")
_PASSED_ON = re.compile(
    r"(?:\[[A-Z_]+\] )?(?:(?:Writing job|Job) aborted\W*$|The Spark SQL phase \w+ failed|Execution of the stream \S+ failed\.)"
)
"""A line that says nothing of the reason where another follows it."""
_CLASS = r"(?:[\w$]+\.)+[A-Z]\w*"
_QUOTED = re.compile(
    rf"(?:^|: )(?:\[(?P<condition>[A-Z][A-Z0-9_.]*)\]|(?P<name>{_CLASS}|[A-Z]\w*(?:Error|Exception))(?=: )|{_CLASS}$)"
)
"""Where a message begins that another one quotes: with a condition of Spark, or with a class."""
_WRAPPING = re.compile(r"(?:\[[A-Z_]+\] )?Query .*\bterminated with exception: ")
_SQLSTATE = re.compile(r"(?:\s+SQLSTATE: \w{5})+")


def reason(message: str, wrappers: Collection[str]) -> tuple[str, ...]:
    """Return the lines of the innermost message that names a condition of Spark; without a condition, of the innermost with words.

    In the second case, messages below it without words, such as a path, follow. Empty if there is no message.

    Args:
        message: the messages of an error and its causes, as the driver sends them.
        wrappers: conditions that say nothing of the reason.
    """
    texts = [lines for text in _TEXTS.split(message) if (lines := [*_lines(text, wrappers)])]
    named = [
        at for at, lines in enumerate(texts) if re.match(r"\[[A-Z]", lines[0]) and ".UNCATEGORIZED]" not in lines[0]
    ]
    worded = [at for at, lines in enumerate(texts) if re.search(r"[A-Za-z]{2}[\w,:.]* \w", " ".join(lines))]
    at = (named or worded or [0])[-1]
    below = [line for lines in texts[at + 1 :] for line in lines] if not named else []
    return tuple(dict.fromkeys([*texts[at], *below])) if texts else ()


def _lines(text: str, wrappers: Collection[str]) -> Iterator[str]:
    """Yield the lines of one message, from the message that it quotes on."""
    raw = [line for line in text.splitlines() if line.strip() and not _NOISE.match(line)]
    lines = [line for line, below in pairwise([*raw, ""]) if not _TREE.match(line) and not _TREE.match(below)]
    lines[:1] = [_quoted(_SQLSTATE.sub("", line), wrappers) for line in lines[:1]]
    lines = [line for line in (_SQLSTATE.sub("", line).strip(" \t;") for line in lines) if line not in ("", "null")]
    yield from [line for line in lines if not _PASSED_ON.match(line)] or lines


def _quoted(line: str, wrappers: Collection[str]) -> str:
    """Return what the first line of a message quotes last, without the name of a class before it."""
    line = _WRAPPING.sub("", line.strip())
    quotes = [*_QUOTED.finditer(line)]
    if not quotes or quotes[-1].group() == line != f"[{quotes[-1]['condition']}]":
        return line
    last = quotes[-1]
    text = line[last.end() :].removeprefix(": ").strip()
    if last["condition"] is None:
        return text or last.group().rpartition(".")[2]
    return text if last["condition"] in wrappers else line[last.start() :].removeprefix(": ")
