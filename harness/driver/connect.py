"""An engine elsewhere, reached through Spark Connect (3.5 and newer): nothing of its insides can be touched.

Its server has to see the case's directory at the same path. What micro-batches emit is written there by the server's own Python, one
file each, and read by us: https://spark.apache.org/docs/latest/spark-connect-overview.html
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List

from . import PROTOCOL
from .classic import APIS
from .encoding import encode_row
from .places import operating_system
from .session import of_any_session


class Connect:
    """``url``: ``sc://host:15002/;token=…``."""

    def __init__(self, url: str) -> None:
        from pyspark.cloudpickle import register_pickle_by_value

        self._url = url
        # What the server's Python workers run of ours goes there by value. They see no artifacts of our session: a streaming query
        # runs in a copy of it.
        register_pickle_by_value(sys.modules[__package__])
        self._first = self._session()

    def _session(self) -> Any:
        from pyspark.sql import SparkSession

        # `create` and not `getOrCreate`: a session of its own on the server.
        session = SparkSession.builder.remote(self._url).create()
        for key, value in of_any_session().items():
            session.conf.set(key, value)
        return session

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

    def is_alive(self) -> bool:
        """Whether the server still answers, asked by another session: that of a case may have been what it lost."""
        try:
            self._first.sql("SELECT 1").collect()
        except Exception:  # whatever gRPC makes of a connection that is gone
            return False
        return True

    def new_session(self) -> Any:
        """A session of its own for one case."""
        return self._session()

    def end_session(self, session: Any) -> None:
        session.stop()

    def capture(self, _emitted: "Callable[[int, List[List[Any]]], None] | None", folder: str) -> Any:
        """What ``foreachBatch`` is made of. ``folder``: of the case. Nobody is told of a micro-batch before it is committed."""
        return ElsewhereCapture(folder + "/emitted")

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


class ElsewhereCapture:
    """The rows of each micro-batch, in files that the server writes."""

    hold = None
    error = None

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)
        self._folder = folder
        self.function = _writer(folder)

    def rows(self, batch_id: int) -> list[list[Any]]:
        """The rows of a batch as lists of JSON values."""
        try:
            with open(os.path.join(self._folder, "{}.json".format(batch_id)), encoding="utf-8") as file:
                rows: list[list[Any]] = json.load(file)
                return rows
        except FileNotFoundError:
            return []


def _writer(folder: str) -> "Callable[[Any, int], None]":
    def write(frame: Any, batch_id: int) -> None:
        os.environ["TZ"] = "UTC"  # collect() gives naive local times
        time.tzset()
        schema = frame.schema
        rows = [encode_row(row, schema) for row in frame.collect()]
        hidden = os.path.join(folder, ".{}.json".format(batch_id))
        with open(hidden, "w", encoding="utf-8") as file:
            json.dump(rows, file)
        os.replace(hidden, os.path.join(folder, "{}.json".format(batch_id)))

    return write
