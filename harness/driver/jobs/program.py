"""Runs a program of the author's unchanged: its sources are streams of the case, and of the queries that it starts none runs.

While it runs, the methods of PySpark that make a session, read a stream, start a query or wait for its end do in its thread what this
module says, and for everybody else what they always do. What the program reads and writes without streams it really reads and writes.
"""

from __future__ import annotations

import atexit
import functools
import gc
import inspect
import os
import re
import runpy
import signal
import sys
import threading
import traceback
import uuid
import weakref
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from ..session import MANAGER
from . import flows, glue, notebook
from .query_starts import CLASSIC, CONNECT, QueryStarted, guard_pyspark
from .threads import CodeRun, belonging_to, of_thread, refuse

KAFKA = "kafka"
KAFKA_COLUMNS = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
}
"""The columns of a source of Kafka, in its order, with their types."""
_HEADERS = "array<struct<key:string,value:binary>>"
_KNOWN = {
    KAFKA: ", ".join("{} {}".format(name, type) for name, type in KAFKA_COLUMNS.items()),
    "rate": "timestamp TIMESTAMP, value BIGINT",
    "rate-micro-batch": "timestamp TIMESTAMP, value BIGINT",
    "socket": "value STRING",
    "text": "value STRING",
}
"""Format → the columns that its sources have, whatever the program says."""
_FILES = ("csv", "json", "orc", "parquet", "text", "xml")
"""The methods of a ``DataStreamReader`` that read files of a format."""
OF_TABLES = ("table", "changes")
"""The methods of a ``DataStreamReader`` that read a table by its name; also the formats of their sources."""
_MOST_WAITS = 1000
_MOST_QUERIES = 50
"""A program that waits so often for queries that have ended, or starts so many, never ends."""
_UNWRITTEN = re.compile(
    r"TABLE_OR_VIEW_NOT_FOUND|Table or view not found|PATH_NOT_FOUND|Path does not exist|SCHEMA_NOT_FOUND|is not a Delta table"
    r"|DELTA_\w*(NOT_FOUND|MISSING)|requires a single-part namespace|CATALOG_NOT_FOUND"
)
"""What Spark says of a table or a path that is not there."""
_UNREADABLE = re.compile(r"(No FileSystem for scheme|FileSystem not found|Failed to find (the )?data source).*")
"""What Hadoop and Spark say if no package reads it."""
_USE = re.compile(r"\s*(USE|SET\s+CATALOG)\b", re.IGNORECASE)
LEFT_OUT = ("spark.sql.shuffle.partitions", "spark.sql.streaming.checkpointLocation", MANAGER)
"""Settings of the program that are left out: more partitions cost time, and no checkpoint of its own is used."""


@dataclass(frozen=True)
class ProgramCall:
    """``path``: a file ending in .py, relative to a folder of the author's, or a dotted module; or a notebook, with its ``cells``."""

    path: str
    arguments: Tuple[str, ...] = ()
    cells: Dict[str, Sequence[str]] = field(default_factory=dict)
    values: Dict[str, str] = field(default_factory=dict)

    def file(self, folders: Sequence[str]) -> Optional[str]:
        """The file, if it is one. Raises ``FileNotFoundError`` if it lies in none of the folders."""
        if self.cells or not self.path.endswith(".py"):
            return None
        paths = [os.path.join(folder, self.path) for folder in folders]
        for path in paths:
            if os.path.isfile(path):
                return path
        raise FileNotFoundError("there is no {} in {}".format(self.path, ", ".join(folders)))


@dataclass(frozen=True)
class ProgramSource:
    name: str
    format: str
    schema: Any = None
    """What the program says: a ``StructType``, text, or None."""
    given: Optional[str] = None
    """The name that the program gives it, ``DataStreamReader.name``."""
    headers: bool = False
    """Whether it reads the headers of Kafka's records."""
    path: Optional[str] = None
    """The folder of its files, or the name of its table."""
    options: Optional[Dict[str, str]] = None
    at: Optional[str] = None
    """Where the program reads it, as of ``Started``."""

    @property
    def known_schema(self) -> Any:
        return _KNOWN.get(self.format, self.schema)


@dataclass(frozen=True)
class Started:
    """A query that the program would have started."""

    frame: Any
    output_mode: str
    trigger: str
    """``default``, ``once``, ``availableNow``, ``realTime`` or ``continuous``."""
    name: Optional[str]
    sink: str
    """``parquet``, ``table`` or, for a function of the author's, ``foreachBatch`` or ``foreach``."""
    at: Optional[str]
    """Where the program starts it: ``job.py:12``."""
    function: Any = None
    """The author's function of ``foreachBatch``, or function or object of ``foreach``; None for another sink."""
    options: Dict[str, str] = field(default_factory=dict)
    """What else the program says of it: its options, and ``trigger``, ``partitionBy``, ``path`` …"""


class WithoutEnd(BaseException):
    """The program waits or starts queries for ever. No ``Exception``, which the loop of a program may catch."""

    def __init__(self) -> None:
        super().__init__("the program starts queries, or waits for their end, again and again, and never ends itself")


class EndedQuery:
    """Stands for a query that the program has started: it has ended."""

    isActive = False  # noqa: N815
    lastProgress = None  # noqa: N815
    recentProgress: List[Any] = []  # noqa: N815, RUF012
    status = {"message": "Stopped", "isDataAvailable": False, "isTriggerActive": False}  # noqa: RUF012

    def __init__(self, run: ProgramRun, name: Optional[str]) -> None:
        self._run = run
        self.name = name
        self.id, self.runId = str(uuid.uuid4()), str(uuid.uuid4())

    def awaitTermination(self, timeout: Any = None) -> Optional[bool]:  # noqa: N802
        return self._run.waited(timeout)

    def processAllAvailable(self) -> None:  # noqa: N802
        self._run.waited(None)

    def stop(self) -> None: ...

    def exception(self) -> None: ...

    def explain(self, extended: bool = False) -> None: ...


class ProgramRun:
    """One run of a program.

    ``read``: makes the DataFrame of a source; ``place``: names the author's line that calls; ``thread``: the number of its main thread,
    0 if queries count in the order in which they start, whichever thread does it; ``is_own``: whether a frame runs code of the program,
    which the next run loads again.
    """

    def __init__(
        self,
        session: Any,
        read: Callable[[ProgramSource], Any],
        place: Callable[[], Optional[str]],
        thread: int = 0,
        is_own: Callable[[Any], bool] = lambda _: False,
    ) -> None:
        self.session = session
        self.sources: List[ProgramSource] = []
        self.started: List[Started] = []
        """Those of its main thread in order, then, once it has ended, those of its other threads, by line and name."""
        self._of_threads: List[Started] = []
        self._thread = thread
        self._ended = False
        self._read = read
        self._place = place
        self._names: Set[str] = set()
        self._views: Dict[str, Callable[[], Any]] = {}
        self._frames: Dict[str, Any] = {}
        self._waits = 0
        self._process = os.getpid()
        self.at_exit = ExitStack()
        self.is_own = is_own
        self.passed_over: Dict[str, str] = {}
        """Lines that read what the queries would have written, where their cell or the program ends; with what a missing package says."""

    def waited(self, timeout: Any) -> Optional[bool]:
        self._waits += 1
        if self._waits > _MOST_WAITS:
            raise WithoutEnd
        return None if timeout is None else True

    def add_view(self, name: str, function: Callable[[], Any]) -> None:
        """Add a view of a declarative pipeline."""
        self._views[name] = function

    def view(self, table: str) -> Any:
        """The DataFrame of a view of a declarative pipeline, the same for all that read it; None if this is the name of none."""
        name = table.replace("`", "").rpartition(".")[2]
        if name not in self._frames and name in self._views:
            self._frames[name] = self._views[name]()
        return self._frames.get(name)

    def load(self, noted: Dict[str, Any], format: str, path: Optional[str], schema: Any) -> Any:
        options = {key.lower(): str(value) for key, value in noted.get("options", {}).items()}
        given = noted.get("name")
        name = base = given or _name(format, path or options.get("path"), options)
        number = 1
        while name in self._names:
            number += 1
            name = "{}_{}".format(base, number)
        self._names.add(name)
        headers = options.get("includeheaders", "").lower() == "true"
        said = {key: _text_of(value) for key, value in noted.get("options", {}).items() if value is not None}
        source = ProgramSource(
            name,
            format,
            schema if schema is not None else noted.get("schema"),
            given,
            headers,
            path,
            said,
            self._place(),
        )
        self.sources.append(source)
        with _as_others():
            frame = self._read(source)
            return _of_kafka(frame, source) if format == KAFKA else frame

    def start(self, writer: Any, noted: Dict[str, Any], format: Optional[str], arguments: Dict[str, Any]) -> EndedQuery:
        name = arguments.pop("queryName", None) or noted.get("queryName")
        mode, given = (arguments.pop(key, None) or noted.get(key) for key in ("outputMode", "format"))
        if len(self.started) + len(self._of_threads) == _MOST_QUERIES:
            raise WithoutEnd
        if self._ended or os.getpid() != self._process:
            refuse()
            raise QueryStarted("start")
        said = {**noted.get("options", {}), **arguments}
        started = Started(
            frame=_frame_of(writer),
            output_mode=(mode or "append").lower(),
            trigger=noted.get("trigger", "default"),
            name=name,
            sink=noted.get("function") or format or given or "parquet",
            at=noted.get("at") or self._place(),
            function=noted.get("called"),
            options={key.lower(): str(value) for key, value in said.items() if value is not None},
        )
        (self.started if self._thread in (0, threading.get_ident()) else self._of_threads).append(started)
        return EndedQuery(self, name)

    def end(self) -> None:
        """No query counts that starts from here on. Call it when the threads of the program have ended, or wait."""
        self._ended = True
        self.started += sorted(self._of_threads, key=lambda each: (each.at or "", each.name or "", str(each.options)))


def _frame_of(writer: Any) -> Any:
    """The DataFrame that a ``DataStreamWriter`` writes."""
    if hasattr(writer, "_df"):
        return writer._df
    frames = import_module("pyspark.sql.connect.dataframe").DataFrame
    made: Callable[[Any, Any], Any] = getattr(
        frames, "withPlan", frames
    )  # 3.5 has the method, newer ones a constructor
    return made(writer._write_stream._child, writer._session)


def _name(format: str, path: Optional[str], options: Dict[str, str]) -> str:
    """The name of a source: its topic or stream, the last part of its path or table that says something, else its format."""
    named = (path, *map(options.get, ("subscribe", "streamname", "kinesis.streamname")))
    text = next((name for name in named if name), "")
    parts = (part for part in text.split("/") if part and not re.search(r"[*?\[\]{}:]", part))
    last = [format.rpartition(".")[2], *parts][-1]
    if format in (*OF_TABLES, "iceberg"):
        last = last.rstrip("`").rpartition(".")[2]
    name = re.sub(r"\W+", "_", last, flags=re.ASCII).strip("_") or re.sub(r"\W+", "_", format)
    return "_" + name if name[0].isdigit() else name


def _of_kafka(frame: Any, source: ProgramSource) -> Any:
    """The rows of a stream as Kafka's records. Without a column ``value``, all columns that Kafka does not have are a JSON object in it."""
    from pyspark.sql import functions

    def column(name: str, type: str) -> Any:
        if name in names:
            return functions.col("`{}`".format(name)).cast(type).alias(name)
        if name == "value":
            return functions.to_json(functions.struct(*others)).cast(type).alias(name)
        return functions.lit(None).cast(type).alias(name)

    names = frame.columns
    others = ["`{}`".format(name.replace("`", "``")) for name in names if name not in KAFKA_COLUMNS]
    columns = dict(KAFKA_COLUMNS, headers=_HEADERS) if source.headers else KAFKA_COLUMNS
    return frame.select(*[column(name, type) for name, type in columns.items()])


def read_once(session: Any, source: ProgramSource, folder: str) -> Any:
    """What a source has now, as a batch DataFrame. ``folder``: from which the program sees relative paths."""
    reader = session.read
    left_out = _OF_STREAMS_OF_KAFKA if source.format == KAFKA else ()
    options = {key: value for key, value in (source.options or {}).items() if key.lower() not in left_out}
    if source.format in OF_TABLES:
        return getattr(reader if source.format == "table" else reader.options(**options), source.format)(source.path)
    reader = reader.format(source.format).options(**options)
    if source.format != KAFKA and source.schema is not None:
        reader = reader.schema(source.schema)
    path = source.path
    if path is not None and os.path.exists(os.path.join(folder, path)):
        # The JVM has another working directory.
        path = os.path.abspath(os.path.join(folder, path))
    frame = reader.load(path) if path is not None else reader.load()
    if source.format != KAFKA:
        return frame
    from pyspark.sql import functions

    text = [functions.col(name).cast("string").alias(name) for name in ("key", "value")]
    return frame.select(*text, *[name for name in KAFKA_COLUMNS if name not in ("key", "value")])


_OF_STREAMS_OF_KAFKA = ("startingoffsets", "startingtimestamp", "startingoffsetsbytimestamp", "failondataloss")
"""Options of a source that may say ``latest`` for a stream, where a batch DataFrame has no rows."""


def as_json(frame: Any) -> List[str]:
    """The rows of a DataFrame, each as a JSON object with all its columns."""
    from pyspark.sql import functions

    names = ["`{}`".format(name.replace("`", "``")) for name in frame.columns]
    whole = functions.to_json(functions.struct(*names), {"ignoreNullFields": "false"})
    return [row[0] for row in frame.select(whole).collect()]


def for_each(function: Any, frame: Any, batch_id: int) -> None:
    """Do with a micro-batch what ``foreach`` does with a function for each row, or an object with ``open``, ``process`` and ``close``."""

    def write(rows: Iterator[Any]) -> None:
        from pyspark import TaskContext

        process: Callable[[Any], None] = getattr(function, "process", function)
        task, error = TaskContext.get(), None
        wanted = function.open(task.partitionId() if task else 0, batch_id) if hasattr(function, "open") else True
        try:
            for row in rows if wanted else ():
                process(row)
        except Exception as failed:
            error = failed
            raise
        finally:
            if hasattr(function, "close"):
                function.close(error)

    frame.foreachPartition(write)


def _as_others() -> Any:
    """In the block PySpark does what it always does, as for code that is none of the author's."""
    return belonging_to(program=None, code=None)


_one_at_a_time = threading.RLock()
"""A program has ``sys.argv``, ``__main__`` and the working directory of the process for itself."""
_changed: Set[Tuple[Any, str]] = set()
_NOTED = "_noted_by_conformance"

Instead = Callable[..., Any]
"""Called with the run, the original method, the object and the arguments."""


def _change(owner: Any, name: str, instead: Instead) -> None:
    """Let a method do something else in the thread of a program, once for each class, or a function of a module."""
    if owner is None or (owner, name) in _changed or not hasattr(owner, name):
        return
    _changed.add((owner, name))
    original = getattr(owner, name)

    @functools.wraps(original)
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        run = of_thread.program
        return original(self, *arguments, **named) if run is None else instead(run, original, self, *arguments, **named)

    setattr(owner, name, method)


def _noted(holder: Any) -> Dict[str, Any]:
    """What the program has said to a reader or writer."""
    noted: Dict[str, Any] = vars(holder).setdefault(_NOTED, {})
    return noted


def _noting(key: str) -> Instead:
    def instead(_: ProgramRun, original: Any, self: Any, *value: Any, **named: Any) -> Any:
        (_noted(self)[key],) = (*value, *named.values())
        return original(self, *value, **named)

    return instead


def _option(_: ProgramRun, original: Any, self: Any, key: str, value: Any) -> Any:
    _noted(self).setdefault("options", {})[key] = value
    return original(self, key, value)


def _options(_: ProgramRun, original: Any, self: Any, **options: Any) -> Any:
    _noted(self).setdefault("options", {}).update(options)
    return original(self, **options)


def _loading(format: Optional[str] = None) -> Instead:
    """``format``: of the method; None if the program says it."""

    def instead(run: ProgramRun, original: Any, self: Any, *arguments: Any, **named: Any) -> Any:
        given = dict(inspect.signature(original).bind(self, *arguments, **named).arguments)
        given.update(given.pop("options", {}))
        path, table, schema, said, _ = (
            given.pop(key, None) for key in ("path", "tableName", "schema", "format", "self")
        )
        view = run.view(table) if table is not None else None
        if view is not None:
            return view
        noted = _noted(self)
        noted.setdefault("options", {}).update(given)
        return run.load(noted, (format or said or noted.get("format") or "parquet").lower(), path or table, schema)

    return instead


def _columns(key: str) -> Instead:
    def instead(_: ProgramRun, original: Any, self: Any, *columns: Any) -> Any:
        _noted(self).setdefault("options", {})[key] = columns
        return original(self, *columns)

    return instead


def _trigger(_: ProgramRun, original: Any, self: Any, *arguments: Any, **named: Any) -> Any:
    kind, value = next(((name, value) for name, value in named.items() if value is not None), ("processingTime", ""))
    _noted(self).setdefault("options", {})["trigger"] = "{}={}".format(kind, value)
    _noted(self)["trigger"] = "default" if kind == "processingTime" else kind
    return original(self, *arguments, **named)


def _function(name: str) -> Instead:
    def instead(_: ProgramRun, __: Any, self: Any, *function: Any, **named: Any) -> Any:
        (called,) = (*function, *named.values())
        _noted(self).update(function=name, called=called)
        named_so = getattr(called, "__qualname__", type(called).__qualname__)
        line = getattr(getattr(called, "__code__", None), "co_firstlineno", "")
        _noted(self).setdefault("options", {})["function"] = "{}:{}".format(named_so, line)
        return self

    return instead


_START = ("path", "format", "outputMode", "partitionBy", "queryName")


def _starting(format: Optional[str] = None) -> Instead:
    def instead(run: ProgramRun, _: Any, self: Any, *arguments: Any, **named: Any) -> Any:
        return run.start(self, _noted(self), format, dict(zip(_START, arguments), **named))

    return instead


def _session(run: ProgramRun, _: Any, self: Any) -> Any:
    """The session of the case, with the settings that the program gives it and a running session can have."""
    before = _shared_options.before
    with _as_others():
        set_options(run.session, {key: value for key, value in dict(self._options).items() if before.get(key) != value})
    return run.session


def _text_of(value: Any) -> str:
    """The value of an option or setting as PySpark hands it on."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def set_options(session: Any, options: Dict[str, Any]) -> None:
    """Give a session the settings of a program that a running session can have."""
    for key, value in options.items():
        if key.startswith("spark.sql.") and key not in LEFT_OUT:
            with suppress(Exception):  # a static one, which Spark refuses here
                session.conf.set(key, _text_of(value))


class _SharedOptions:
    """Up to 3.3 all builders of a process share their options: a program must not leave its own behind."""

    def __init__(self) -> None:
        self.before: Dict[str, Any] = {}

    @contextmanager
    def kept(self) -> Iterator[None]:
        from pyspark.sql import SparkSession

        options = SparkSession.builder._options
        self.before = dict(options)
        try:
            yield
        finally:
            options.clear()
            options.update(self.before)


_shared_options = _SharedOptions()


def _context(run: ProgramRun, _: Any, self: Any, *arguments: Any, **named: Any) -> None:
    """The context that runs, as another object, with the settings that a running session can have."""
    vars(self).update(vars(run.session.sparkContext))
    for conf in (*arguments, *named.values()):
        if hasattr(conf, "getAll"):
            set_options(run.session, dict(conf.getAll()))


def _sql(_: ProgramRun, original: Any, self: Any, *said: Any, **named: Any) -> Any:
    """A catalog or schema of the platform that a trial does not have is not used: the streams are those of the samples."""
    try:
        return original(self, *said, **named)
    except Exception:
        if _USE.match(str(next(iter((*said, *named.values())), ""))) is None:
            raise
        return original(self, "SELECT 1 WHERE false")


@contextmanager
def _methods_of_a_platform() -> Iterator[None]:
    """In the block, a DataFrame has ``display``, which shows nothing, and a writer ``table``, as Databricks gives them."""
    added: List[Tuple[Any, str]] = []
    for streaming, frames in ((CLASSIC, "pyspark.sql.dataframe"), (CONNECT, "pyspark.sql.connect.dataframe")):
        frame = getattr(sys.modules.get(frames), "DataFrame", None)
        writer = getattr(sys.modules.get(streaming), "DataStreamWriter", None)
        shows = None if frame is None else lambda *_, **__: None
        for owner, name, method in ((frame, "display", shows), (writer, "table", getattr(writer, "toTable", None))):
            if method is not None and not hasattr(owner, name):
                setattr(owner, name, method)
                added.append((owner, name))
    try:
        yield
    finally:
        for owner, name in added:
            delattr(owner, name)


@contextmanager
def _without_event_hubs() -> Iterator[None]:
    """In the block, ``EventHubsUtils.encrypt`` of Azure's connector, which need not be loaded, gives back what it is given.

    It makes a connection string ready for an option of a source, and a trial connects none.
    """
    packages = getattr(sys.modules.get("py4j.java_gateway"), "JavaPackage", None)

    def call(package: Any, *arguments: Any) -> Any:
        if package._fqn != "org.apache.spark.eventhubs.EventHubsUtils.encrypt":
            raise TypeError("'JavaPackage' object is not callable")  # as without this method
        return arguments[0]

    if packages is not None:
        packages.__call__ = call
    try:
        yield
    finally:
        if packages is not None:
            del packages.__call__


def _set_conf(_: ProgramRun, original: Any, self: Any, key: str, value: Any) -> None:
    if key != MANAGER:
        original(self, key, value)


def _nothing(_: ProgramRun, __: Any, ___: Any, *____: Any, **_____: Any) -> None:
    """Stops nothing, and listens to nothing: no listener, no signal."""


def _at_exit(run: ProgramRun, original: Any, function: Any, *arguments: Any, **named: Any) -> Any:
    """Keep what the program's own code registers; what a library does, which stays imported, serves later programs too."""
    return (run.at_exit.callback if run.is_own(sys._getframe(2)) else original)(function, *arguments, **named)


def _finalize(run: ProgramRun, original: Any, self: Any, *referent: Any, **named: Any) -> None:
    original(self, *referent, **named)
    if run.is_own(sys._getframe(2)):
        run.at_exit.callback(lambda: self() if self.atexit else None)


def _change_pyspark() -> None:
    """Change the classes of this PySpark, those of Connect as far as a session has loaded them."""
    guard_pyspark()
    for streaming, sessions, loaded in (
        (CLASSIC, "pyspark.sql", "pyspark.sql.dataframe"),
        (CONNECT, "pyspark.sql.connect.session", "pyspark.sql.connect.session"),
    ):
        if loaded not in sys.modules:
            continue
        readers, session = import_module(streaming), import_module(sessions).SparkSession
        manager = getattr(import_module(streaming.replace("readwriter", "query")), "StreamingQueryManager", None)
        changes: List[Tuple[Any, Dict[str, Instead]]] = [
            (readers.DataStreamReader, {name: _noting(name) for name in ("format", "schema", "name")}),
            (readers.DataStreamReader, {name: _loading(name) for name in (*_FILES, *OF_TABLES)}),
            (readers.DataStreamReader, {"option": _option, "options": _options, "load": _loading()}),
            (readers.DataStreamWriter, {name: _noting(name) for name in ("format", "outputMode", "queryName")}),
            (readers.DataStreamWriter, {"option": _option, "options": _options}),
            (readers.DataStreamWriter, {name: _columns(name) for name in ("partitionBy", "clusterBy")}),
            (readers.DataStreamWriter, {name: _function(name) for name in ("foreachBatch", "foreach")}),
            (readers.DataStreamWriter, {"trigger": _trigger, "start": _starting(), "toTable": _starting("table")}),
            (session.Builder, dict.fromkeys(("getOrCreate", "create"), _session)),
            (session, {"stop": _nothing, "sql": _sql}),
            (manager, {"awaitAnyTermination": lambda run, _, __, timeout=None: run.waited(timeout)}),
            (manager, dict.fromkeys(("addListener", "removeListener", "resetTerminated"), _nothing)),
        ]
        for owner, methods in changes:
            for name, instead in methods.items():
                _change(owner, name, instead)
    _change(getattr(sys.modules.get("pyspark.sql.conf"), "RuntimeConfig", None), "set", _set_conf)
    # Only the main thread of a process may set what a signal does, and this is none.
    _change(signal, "signal", _nothing)
    _change(atexit, "register", _at_exit)
    _change(weakref.finalize, "__init__", _finalize)
    context = getattr(import_module("pyspark"), "SparkContext", None)
    _change(context, "stop", _nothing)
    _change(context, "__init__", _context)


def run(
    program: ProgramCall,
    session: Any,
    read: Callable[[ProgramSource], Any],
    folders: Sequence[str],
    inside: Callable[[str, Sequence[str]], Optional[str]],
    code: CodeRun,
) -> ProgramRun:
    """Run a program to its end, and return what it read and would have started. What it raises, this raises, but ``sys.exit(0)``.

    ``folders``: of the author's modules; ``inside``: the path of a file in a folder, None if it lies in none.
    """

    def is_own(frame: Any) -> bool:
        return frame.f_globals.get("__name__") == "__main__" or bool(inside(frame.f_code.co_filename, folders))

    program_run = ProgramRun(session, read, code.place, threading.get_ident(), is_own)

    def passes_over(error: Exception) -> bool:
        """Whether it only says that no query has written yet what the program reads behind it."""
        unreadable = _UNREADABLE.search(str(error))
        if not program_run.started or not (unreadable or _UNWRITTEN.search(str(error))):
            return False
        places = [(inside(each.filename, folders), each.lineno) for each in traceback.extract_tb(error.__traceback__)]
        own = ["{}:{}".format(*place) for place in places if place[0]]
        program_run.passed_over[own[-1] if own else program.path] = unreadable[0] if unreadable else ""
        return True

    with _one_at_a_time:
        _change_pyspark()
        file = program.file(folders)
        as_process = _as_a_process(program, file, folders, inside)
        shims = glue.shim(program_run), flows.shim(program_run)
        with as_process, shims[0], shims[1] as pipeline, _shared_options.kept(), belonging_to(program=program_run):
            platform = notebook.Platform(session, program.cells, program.values, os.getcwd(), passes_over)
            try:
                with platform.importable(), _without_event_hubs():
                    if program.cells:
                        with _methods_of_a_platform():
                            platform.run()
                    elif file is not None and flows.defines(file):
                        runpy.run_path(file, {"spark": session}, os.path.splitext(os.path.basename(file))[0])
                    elif file is not None:
                        runpy.run_path(file, run_name="__main__")
                    else:
                        runpy.run_module(program.path, run_name="__main__", alter_sys=True)
                    pipeline.start()
            except SystemExit as ended:
                if ended.code not in (None, 0):
                    raise
            except Exception as error:
                if not passes_over(error):
                    raise
            code.settle()
            with suppress(Exception):  # as at the end of a process
                program_run.at_exit.close()
            gc.collect()  # objects of the program may start queries when they go
            program_run.end()
    return program_run


def ddl(schema: Any) -> str:
    """The columns of a ``StructType`` as text."""
    columns = ("`{}` {}".format(f.name.replace("`", "``"), f.dataType.simpleString()) for f in schema.fields)
    return ", ".join(columns)


@contextmanager
def _as_a_process(
    program: ProgramCall,
    file: Optional[str],
    folders: Sequence[str],
    inside: Callable[[str, Sequence[str]], Optional[str]],
) -> Iterator[None]:
    """Give the program its arguments, path and working directory, and forget its modules, so that the next run loads them again."""
    before = sys.argv, list(sys.path), os.getcwd(), set(sys.modules)
    sys.argv = [file or program.path, *program.arguments]
    first = [os.path.dirname(file)] if file is not None else []
    sys.path[:0] = first + [folder for folder in folders if folder not in sys.path]
    os.chdir(folders[0] if folders else before[2])
    try:
        yield
    finally:
        sys.argv = before[0]
        sys.path[:] = before[1]
        os.chdir(before[2])
        for name in set(sys.modules) - before[3]:
            if inside(getattr(sys.modules[name], "__file__", None) or "", folders):
                del sys.modules[name]
