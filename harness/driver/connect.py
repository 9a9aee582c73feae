"""An engine elsewhere, reached through Spark Connect (3.5 and newer): nothing of its insides can be touched.

What micro-batches emit is written to the case's directory by the server's own Python, one file each, and read by us. Where that is a
directory of this machine, its server has to see it at the same path; else everything in it is written and read by Spark's own jobs.
https://spark.apache.org/docs/latest/spark-connect-overview.html
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, FrozenSet, Iterator, List

from . import PROTOCOL
from .appended import Appended
from .arrivals import Arrivals
from .classic import APIS
from .encoding import encode_row
from .own_files import OwnFiles
from .places import operating_system
from .session import of_any_session
from .spark_files import SparkFiles

_SELDOM = "200ms"
"""How often an idle query looks for files. Those of one micro-batch come up one after another: seldom does it look in between."""


class Connect:
    """``url``: ``sc://host:15002/;token=…``; ``storage``: the URL of a directory that directories of cases are in, None where they are
    on this machine.

    Raises:
        StorageFails: nothing can be written to the storage.
    """

    makes_directories = False
    """What a new query's checkpoint begins with is the server's to make."""

    def __init__(self, url: str, storage: str | None = None) -> None:
        from pyspark.cloudpickle import register_pickle_by_value

        self._url = url
        self._elsewhere = storage is not None
        # What the server's Python workers run of ours goes there by value. They see no artifacts of our session: a streaming query
        # runs in a copy of it.
        register_pickle_by_value(sys.modules[__package__])
        self._ended: List[Any] = []
        self._settings = of_any_session()
        if self._elsewhere:
            self._settings["spark.sql.streaming.pollingDelay"] = _SELDOM
        self._first = self.new_session()
        self._is_3 = self._first.version.startswith("3.")
        if self._is_3:
            # Else nothing is told of what caused an error.
            self._settings["spark.sql.pyspark.jvmStacktrace.enabled"] = "true"
        self.files: Any = SparkFiles(self._first, storage) if storage else OwnFiles()
        """Those that directories of cases are among."""

    def identity(self) -> dict[str, Any]:
        """The fields of ``Identity``; Scala and Java are the server's, Python and operating system ours."""
        from pyspark.sql.connect.dataframe import DataFrame
        from pyspark.sql.connect.group import GroupedData

        holders = {"DataFrame": DataFrame, "GroupedData": GroupedData}
        scala = "java_method('scala.util.Properties', 'versionNumberString')"
        java = "java_method('java.lang.System', 'getProperty', 'java.version')"
        scala, java = self._first.sql("SELECT {}, {}".format(scala, java)).collect()[0]
        return {
            "protocol": PROTOCOL,
            "spark": self._first.version,
            "scala": scala,
            "java": java,
            "python": platform.python_version(),
            "os": operating_system(),
            "apis": sorted(name for name, holder in APIS.items() if hasattr(holders[holder], name)),
        }

    def slots(self) -> None:
        """Unknown: how many queries a server bears is for whoever runs it to say."""

    def executors(self) -> "FrozenSet[str]":
        """None: nobody tells a client of its server's executors."""
        return frozenset()

    def is_alive(self) -> bool:
        """Whether the server still answers, asked by another session: that of a case may have been what it lost."""
        try:
            self._first.sql("SELECT 1").collect()
        except Exception:  # whatever gRPC makes of a connection that is gone
            return False
        return True

    def new_session(self) -> Any:
        """A session of its own for one case."""
        from pyspark.sql import SparkSession

        # `create` and not `getOrCreate`: a session of its own on the server.
        session = SparkSession.builder.remote(self._url).create()
        for key, value in self._settings.items():
            session.conf.set(key, value)
        return session

    def end_session(self, session: Any) -> None:
        if self._is_3:
            # A session that is stopped, or forgotten, takes along the threads by which others of this process get their answers.
            self._ended.append(session)
        else:
            session.stop()

    def cause(self, query: Any, capture: Any, error: Exception) -> Exception:
        """What a query failed of that ended with an error, as far as the server tells.

        3.5 tells what failed in ``foreachBatch`` to nobody, and of the rest more when it is asked again.
        """
        if not self._is_3:
            return error
        text = capture.failure()
        return FailedElsewhere(text) if text else query.exception() or error

    def arrivals(self, folder: str, streams: dict[str, Any]) -> Any:
        """What lets rows arrive. ``folder``: for the directories of the streams; ``streams``: as of ``Arrivals``."""
        return Appended(folder, streams, self._first) if self._elsewhere else Arrivals(folder, streams, self.files)

    def capture(self, _emitted: "Callable[[int, List[List[Any]]], None] | None", folder: str) -> Any:
        """What ``foreachBatch`` is made of. ``folder``: of the case. Nobody is told of a micro-batch before it is committed."""
        return ElsewhereCapture(folder + "/emitted", self.files, self._elsewhere)

    @contextmanager
    def still(self, _query: Any) -> Iterator[None]:
        """The server cannot be held: whether rows were seen together is proved afterwards, by the host."""
        yield

    def recent(self, query: Any, seen: int) -> "tuple[List[Dict[str, Any]], int]":
        """The progress entries since the first ``seen``, and how many there are now."""
        entries = query.recentProgress
        new = [entry if type(entry) is dict else json.loads(entry.json) for entry in entries[seen:]]
        for entry in new:
            # The server leaves out what Spark's progress derives from the sources.
            entry.setdefault("numInputRows", sum(source.get("numInputRows", 0) for source in entry.get("sources", [])))
        return new, len(entries)

    def plan(self, *_: Any) -> str:
        raise NotImplementedError("the host asks for no plan through Connect")


class FailedElsewhere(Exception):
    """What went wrong in the server's Python, as text."""


class ElsewhereCapture:
    """The rows of each micro-batch, in files that the server writes.

    ``folder``: for them; ``files``: those it is among; ``by_spark``: whether they are written by a job, and not by the server's Python.
    """

    hold = None

    def __init__(self, folder: str, files: Any, by_spark: bool) -> None:
        self._folder = folder
        self._files = files
        if by_spark:
            self.function = _writing_by_spark(folder)
        else:
            files.make(folder)
            self.function = _writing(folder)

    def rows(self, batch_id: int) -> list[list[Any]]:
        """The rows of a batch as lists of JSON values."""
        try:
            rows: list[list[Any]] = json.loads(self._files.read(_file(self._folder, batch_id)))
            return rows
        except FileNotFoundError:
            return []

    def failure(self) -> str | None:
        """The text of the error that the last micro-batch ended with; None where there was none."""
        try:
            text: str = json.loads(self._files.read(_failure(self._folder)))
            return text
        except FileNotFoundError:
            return None


def _writing(folder: str) -> "Callable[[Any, int], None]":
    def write(frame: Any, batch_id: int) -> None:
        _told(frame, _file(folder, batch_id), _failure(folder), put)

    def put(path: str, text: str) -> None:
        hidden = path + ".hidden"
        with open(hidden, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(hidden, path)

    return write


def _writing_by_spark(folder: str) -> "Callable[[Any, int], None]":
    def write(frame: Any, batch_id: int) -> None:
        files = SparkFiles(frame.sparkSession)
        _told(frame, _file(folder, batch_id), _failure(folder), lambda path, text: files.write_lines(path, [text]))

    return write


def _told(frame: Any, path: str, failure: str, put: "Callable[[str, str], None]") -> None:
    """Write the rows of a micro-batch, or what became of the attempt to get them."""
    try:
        os.environ["TZ"] = "UTC"  # collect() gives naive local times
        time.tzset()
        schema = frame.schema
        put(path, json.dumps([encode_row(row, schema) for row in frame.collect()]))
    except Exception as error:
        put(failure, json.dumps(str(error)))
        raise


def _file(folder: str, batch_id: int) -> str:
    return "{}/{}.json".format(folder, batch_id)


def _failure(folder: str) -> str:
    return folder + "/failure.json"
