"""Only the harness starts queries, and a sink that the case names: a job that starts its own would write to its own checkpoint and sink.

A query of the author's that started here would run with the checkpoint, the paths and the tables that stand in the code: those of the
real job.
"""

from __future__ import annotations

import functools
import sys
import threading
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Callable, Dict, Iterator, Set

from .threads import of_thread

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


def guard(writer: type) -> None:
    """Let the methods of a ``DataStreamWriter`` that start a query raise ``QueryStarted``, unless ``allowed`` includes the caller."""
    with _guarding:
        if writer not in _guarded:
            _guarded.add(writer)
            for name in _STARTS:
                if hasattr(writer, name):
                    setattr(writer, name, _checked(name, getattr(writer, name)))


def _checked(name: str, start: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(start)
    def checked(self: Any, *arguments: Any, **options: Any) -> Any:
        if not allowed.includes(self):
            if of_thread.code is not None:
                of_thread.code.refuse()
            raise QueryStarted(name)
        return start(self, *arguments, **options)

    return checked
