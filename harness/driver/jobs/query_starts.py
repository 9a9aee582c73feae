"""Only the harness starts queries, and a sink that the case names: a job that starts its own would write to its own checkpoint and sink.

A query of the author's that started here would run with the checkpoint, the paths and the tables that stand in the code: those of the
real job. PySpark's own methods are guarded in Python; who goes another way, through py4j, Scala, Java or SQL, the JVM stops.
"""

from __future__ import annotations

import functools
import sys
import threading
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Callable, Dict, Iterable, Iterator, Optional, Set

from ..session import MANAGER, NO_STARTS
from .threads import refuse

_STARTS = ("start", "toTable")
"""The methods of a ``DataStreamWriter`` that start a query; ``toTable`` since 3.1."""


STARTS_ITSELF = (
    "starts a query itself{}, with the checkpoint and the sink that stand in the code. Nothing was started. "
    "Let it return the DataFrame instead: it gets a checkpoint and a sink of its own here"
)


class QueryStarted(Exception):
    """The author's code was about to start a query; nothing was started."""

    def __init__(self, method: str) -> None:
        super().__init__("the function " + STARTS_ITSELF.format(" ({})".format(method)))


THROUGH_THE_JVM = (
    "the code starts a query through the JVM, by py4j, Scala, Java or SQL, with the checkpoint and the sink that stand there, or reads the "
    "log of one. Nothing was started. Start the query with PySpark's DataStreamWriter"
)


def no_starts(session: Any) -> Any:
    """In the block let no query start in a session, whatever starts it. The sessions of cases are the only ones in which any can."""
    return _with_manager(session, NO_STARTS)


@contextmanager
def _with_manager(session: Any, named: Optional[str], instead_of: Optional[str] = None) -> Iterator[None]:
    conf = _settings(session)
    before = None if conf is None else conf.get(MANAGER, "")
    changes = instead_of in (None, before)
    try:
        if changes:
            choose_manager(session, named)
        yield
    finally:
        if changes:
            choose_manager(session, before)


def choose_manager(session: Any, named: Optional[str]) -> None:
    """Let a session have the manager that the user names, or Spark's own."""
    conf = _settings(session)
    if conf is not None:
        conf.set(MANAGER, named) if named else conf.unset(MANAGER)


def _settings(session: Any) -> Any:
    """Those that the JVM has; None through Connect, where the author's code does not reach it."""
    java = getattr(session, "_jsparkSession", None)
    return None if java is None else java.conf()


class _Allowed:
    def __init__(self) -> None:
        self._thread = threading.local()
        self._sessions: Dict[int, Any] = {}

    @contextmanager
    def this_thread(self) -> Iterator[None]:
        """Let this thread start queries in the block: it runs the harness's own code."""
        before = getattr(self._thread, "allowed", False)
        self._thread.allowed = True
        try:
            yield
        finally:
            self._thread.allowed = before

    def session(self, session: Any) -> None:
        """Let whoever has DataFrames of this session start queries, in any thread: the case names a sink that does."""
        self._sessions[id(session)] = session

    def forget(self, session: Any) -> None:
        self._sessions.pop(id(session), None)

    def includes(self, writer: Any) -> bool:
        """Whether the query that this ``DataStreamWriter`` starts may start."""
        if getattr(self._thread, "allowed", False):
            return True
        return id(_session_of(writer)) in self._sessions


def _session_of(writer: Any) -> Any:
    frame = getattr(writer, "_df", None)
    if frame is None:  # a writer of Connect
        return writer._session
    # Up to 3.2 a DataFrame knows its session by its SQLContext.
    return getattr(frame, "sparkSession", None) or frame.sql_ctx.sparkSession


allowed = _Allowed()
_guarded: Set[type] = set()
_guarding = threading.Lock()
CLASSIC, CONNECT = "pyspark.sql.streaming", "pyspark.sql.connect.streaming.readwriter"


def guard_pyspark() -> None:
    """Guard every class of this PySpark that starts streaming queries; a part of it that no session has loaded starts none."""
    for module, loaded in ((CLASSIC, "pyspark.sql.dataframe"), (CONNECT, "pyspark.sql.connect.session")):
        if loaded in sys.modules:
            guard(import_module(module).DataStreamWriter)
    if "pyspark.sql.readwriter" in sys.modules:
        guard_reader(sys.modules["pyspark.sql.readwriter"].DataFrameReader)


def guard(writer: type) -> None:
    """Let the methods of a ``DataStreamWriter`` that start a query raise ``QueryStarted``, unless ``allowed`` includes the caller."""
    _change(writer, _STARTS, _checked)


def guard_reader(reader: type) -> None:
    """Let the methods of a ``DataFrameReader`` read the log of a file sink, where ``no_starts`` forbids it."""
    _change(reader, ("load", "csv", "json", "orc", "parquet", "text", "table"), _reading)


def _change(owner: type, names: Iterable[str], changed: Callable[[str, Callable[..., Any]], Any]) -> None:
    with _guarding:
        if owner not in _guarded:
            _guarded.add(owner)
            for name in names:
                if hasattr(owner, name):
                    setattr(owner, name, changed(name, getattr(owner, name)))


def record_refusals(protocol: Any) -> None:
    """Note each start that the JVM refuses to code of the author's, which may catch the error. ``protocol``: py4j's, before Spark runs."""
    answer = protocol.get_return_value

    @functools.wraps(answer)
    def noting(*arguments: Any, **named: Any) -> Any:
        try:
            return answer(*arguments, **named)
        except Exception as error:
            if NO_STARTS in str(error):
                refuse()
            raise

    protocol.get_return_value = noting


_one_at_a_time = threading.RLock()


def _reading(_: str, read: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(read)
    def reading(self: Any, *arguments: Any, **options: Any) -> Any:
        session = getattr(self._spark, "sparkSession", self._spark)  # up to 3.2 a reader has the SQLContext
        with _one_at_a_time, _with_manager(session, None, instead_of=NO_STARTS):
            return read(self, *arguments, **options)

    return reading


def _checked(name: str, start: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(start)
    def checked(self: Any, *arguments: Any, **options: Any) -> Any:
        if not allowed.includes(self):
            refuse()
            raise QueryStarted(name)
        return start(self, *arguments, **options)

    return checked
