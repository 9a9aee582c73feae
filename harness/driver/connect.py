"""Spark behind a Spark Connect server (3.5 and newer), whose internals cannot be reached.

The server's own Python writes what micro-batches emit to the case's directory, one file each, and the driver reads it. If that directory
is on this machine, the server must see it at the same path; otherwise Spark's own jobs write and read everything in it.
https://spark.apache.org/docs/latest/spark-connect-overview.html
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Optional, Tuple, Union
from urllib.parse import urlsplit

from . import outage
from .arrivals import Arrivals, FileArrivals, JobArrivals
from .backend import OnEmitted, identity
from .capture import Capture
from .errors import DriverFailure, FailureReason, grpc_details, raised_by_driver
from .files import LocalFiles, ReadableFiles, SparkFiles
from .kill_point import Breakpoint
from .request import StreamRequest
from .session import SESSION_SETTINGS, own_settings
from .values import encode_row

_PORT = 15002
"""Of an address without one."""
_POLLING_DELAY = "500ms"
"""How often an idle query looks for files if those of one micro-batch are several. They appear one by one, and Spark lists the directories
of its sources one after another: a query that looks seldom rarely sees only some of them."""


class Connect:
    """A ``Backend``. ``url``: ``sc://host:15002/;token=…``; ``lost``: as of ``watch``, for the time until there is a session, too;
    ``storage``: the URL of a directory that holds the directories of cases, None if they are on this machine.

    Raises:
        DriverFailure: the server did not open a session, or the storage cannot be written.
    """

    makes_directories = False
    sends_functions = True

    def __init__(self, url: str, lost: outage.Lost, storage: Optional[str] = None) -> None:
        from pyspark.cloudpickle import register_pickle_by_value

        self._url = url
        self._watch(lost)
        # The server's Python workers get our functions by value. They do not see artifacts of our session: a streaming query runs in a
        # copy of it.
        register_pickle_by_value(sys.modules[__package__])
        self._ended: List[Any] = []
        self._settings = dict(SESSION_SETTINGS)
        with _refusals():
            self._first = self.new_session()
            self._is_3 = self._first.version.startswith("3.")
        if self._is_3:
            # Without it the server sends no causes of an error.
            self._settings["spark.sql.pyspark.jvmStacktrace.enabled"] = "true"
        self.files: Union[SparkFiles, LocalFiles] = SparkFiles(self._first, storage) if storage else LocalFiles()

    def identity(self) -> Dict[str, Any]:
        """Scala and Java are the server's; Python and the operating system are the client's."""
        from pyspark.sql.connect.dataframe import DataFrame
        from pyspark.sql.connect.group import GroupedData

        scala = "java_method('scala.util.Properties', 'versionNumberString')"
        java = "java_method('java.lang.System', 'getProperty', 'java.version')"
        try:
            scala, java = self._first.sql("SELECT {}, {}".format(scala, java)).collect()[0]
        except Exception:  # its class varies
            with _refusals():
                self._first.sql("SELECT 1").collect()
            scala = java = "none"  # a server that is no JVM answers all else
        return {**identity(self._first.version, scala, java, DataFrame, GroupedData), **self._own_settings()}

    def _own_settings(self) -> Dict[str, List[str]]:
        """What the server's sessions begin with. Which jars it has it does not tell."""
        own: Dict[str, List[str]] = {}
        session = self.new_session()

        def default_of(key: str) -> Optional[str]:
            with suppress(Exception):  # it has none, or the server does not know the setting
                return str(session.conf.get(key)) if session.conf.isModifiable(key) else None
            return None

        with suppress(Exception):  # a server that is no Spark may know no such statement
            own = own_settings(session.sql("SET").collect(), self._settings, session.conf, default_of)
        self.end_session(session)
        return own

    def slots(self) -> None:
        """Unknown: only the operator of a server knows how many queries it can run."""

    def executors(self) -> FrozenSet[str]:
        """Empty: a client does not know them."""
        return frozenset()

    def watch(self, lost: Callable[[DriverFailure], None]) -> None:
        """It has watched from its beginning."""

    def _watch(self, lost: outage.Lost) -> None:
        """The client itself tries to connect again for minutes. Through a proxy nobody can say what the server does."""
        server = urlsplit(self._url)
        address = "{}:{}".format(server.hostname or "", server.port or _PORT)
        look = partial(outage.none_listens, address, "the server {}")
        if look() is None:
            outage.watch(look, lost, FailureReason.ENGINE_LOST)

    def is_alive(self) -> bool:
        """Ask through a session of its own: the case may have lost only its session."""
        try:
            self._first.sql("SELECT 1").collect()
        except Exception:  # gRPC raises various classes when the connection is gone
            return False
        return True

    def new_session(self, files: int = 1) -> Any:
        from pyspark.sql import SparkSession

        # `create`, not `getOrCreate`: a new session on the server.
        session = SparkSession.builder.remote(self._url).create()
        settings = (
            {**self._settings, "spark.sql.streaming.pollingDelay": _POLLING_DELAY} if files > 1 else self._settings
        )
        for key, value in settings.items():
            session.conf.set(key, value)
        return session

    def end_session(self, session: Any) -> None:
        if self._is_3:
            # Stopping or forgetting a session would also stop the threads through which others of this process get their answers.
            self._ended.append(session)
        else:
            session.stop()

    def cause(self, query: Any, capture: Capture, error: Exception) -> Exception:
        """3.5 tells the client nothing about failures in ``foreachBatch``, and more about others when asked again."""
        captured = capture.error()
        if isinstance(captured, DriverFailure):
            return captured
        return (captured or query.exception() or error) if self._is_3 else error

    def arrivals(self, folder: str, streams: Dict[str, StreamRequest], _kafka: Optional[str]) -> Arrivals:
        if isinstance(self.files, SparkFiles):
            return JobArrivals(folder, streams, self._first)
        return FileArrivals(folder, streams, self.files)

    def capture(self, _emitted: Optional[OnEmitted], folder: str, _real_time: bool) -> ServerCapture:
        """The callback is never called: the host kills no engine through Connect."""
        return ServerCapture(folder + "/emitted", self.files)

    @contextmanager
    def planning_paused(self, _query: Any) -> Iterator[None]:
        """A client cannot pause the server: the host checks afterwards that rows were seen together."""
        yield

    def stop_after_commit(self, query: Any, breakpoint: Breakpoint, is_committed: Callable[[], bool]) -> None:
        raise NotImplementedError("the host kills no engine through Connect")

    def stop_before_commit(self, query: Any, is_planned: Callable[[], bool]) -> None:
        raise NotImplementedError("the host kills no engine through Connect")

    def repartition(self, _session: Any, _checkpoint: str, _partitions: int) -> None:
        """The host sends no case that asks for it."""
        raise DriverFailure("state can only be divided anew where the JVM can be reached")

    def recent(self, query: Any, known: int) -> Tuple[List[Dict[str, Any]], int]:
        entries = query.recentProgress
        new = [entry if type(entry) is dict else json.loads(entry.json) for entry in entries[known:]]
        for entry in new:
            # The server leaves out what Spark's progress derives from the sources.
            entry.setdefault("numInputRows", sum(source.get("numInputRows", 0) for source in entry.get("sources", [])))
        return new, len(entries)

    def rows_at(self, frame: Any, place: str) -> Any:
        raise NotImplementedError("the host asks for no part of a plan through Connect")

    def plan(self, query: Any, frame: Any, has_executed: bool) -> str:
        raise NotImplementedError("the host asks for no plan through Connect")

    def native(self, _session: Any) -> None:
        """Unknown: Connect returns no plan of a micro-batch."""


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # ImportError, ValueError, one of gRPC's: whatever keeps a session from being opened
        raise DriverFailure(grpc_details(error), FailureReason.CONNECT_REFUSED) from error


_FAILURE = "failure"


class ServerFailure(Exception):
    """The text of what went wrong in the server's Python."""


class ServerCapture(Capture):
    """The rows of each micro-batch, in files that the server writes: by its Python, or by a job if the files are Spark's."""

    def __init__(self, folder: str, files: Union[SparkFiles, LocalFiles]) -> None:
        self._folder = folder
        self._files: ReadableFiles = files
        if isinstance(files, LocalFiles):
            files.make_directory(folder)

    def attach(self, writer: Any, _schema: Any) -> Any:
        return writer.foreachBatch(_writer(self._folder, by_python=isinstance(self._files, LocalFiles)))

    def rows(self, batch_id: int) -> List[List[Any]]:
        return list(self._read(batch_id) or [])

    def error(self) -> Optional[Exception]:
        failure = self._read(_FAILURE)
        if failure is None:
            return None
        return DriverFailure(failure["text"]) if failure["of_the_driver"] else ServerFailure(failure["text"])

    def _read(self, name: object) -> Any:
        with suppress(FileNotFoundError):
            return json.loads(self._files.read(_file(self._folder, name)))
        return None


def _writer(folder: str, *, by_python: bool) -> Callable[[Any, int], None]:
    """Write the rows of each micro-batch, or the error raised while collecting them."""

    def write(frame: Any, batch_id: int) -> None:
        def put(path: str, text: str) -> None:
            if by_python:
                hidden = path + ".hidden"
                with open(hidden, "w", encoding="utf-8") as file:
                    file.write(text)
                os.replace(hidden, path)
            else:
                SparkFiles(frame.sparkSession).write_lines(path, [text])

        try:
            os.environ["TZ"] = "UTC"  # collect() returns naive local times
            time.tzset()
            schema = frame.schema
            put(_file(folder, batch_id), json.dumps([encode_row(row, schema) for row in frame.collect()]))
        except Exception as error:
            put(_file(folder, _FAILURE), json.dumps({"text": str(error), "of_the_driver": raised_by_driver(error)}))
            raise

    return write


def _file(folder: str, name: object) -> str:
    """The file with the rows of a micro-batch, named after its id, or with its failure."""
    return "{}/{}.json".format(folder, name)
