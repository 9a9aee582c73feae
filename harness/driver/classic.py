"""The engine in this process: one Spark session with its JVM, whose insides can be reached."""

from __future__ import annotations

import json
import platform
from contextlib import contextmanager
from typing import Any, Callable, Dict, FrozenSet, Iterator, List

from . import PROTOCOL, session
from .arrivals import Arrivals
from .capture import Capture
from .hadoop_files import HadoopFiles
from .own_files import OwnFiles
from .places import operating_system

APIS = {
    "dropDuplicatesWithinWatermark": "DataFrame",
    "applyInPandasWithState": "GroupedData",
    "transformWithState": "GroupedData",
    "transformWithStateInPandas": "GroupedData",
}
"""What not every version has → the class that has it."""


class Classic:
    """Spark in local mode, unless the settings name another master.

    ``work``: a directory for its scratch files; ``conf``: static settings of the target; ``storage``: the URL of a directory that
    directories of cases are in, None where they are on this machine.

    Raises:
        StorageFails: nothing can be written to the storage.
    """

    def __init__(self, work: str, conf: dict[str, str], storage: str | None = None) -> None:
        self.spark = session.start(work, conf)
        self.files: Any = HadoopFiles(self.spark, storage) if storage else OwnFiles()
        """Those that directories of cases are among."""
        self.makes_directories = self.spark.conf.get("spark.conformance.makeDirectories", "false") == "true"
        """Whether what a new query's checkpoint begins with is made beforehand."""
        self._active = _holder_of_the_active(self.spark)

    def identity(self) -> dict[str, Any]:
        """The fields of ``Identity``."""
        from pyspark.sql import DataFrame, GroupedData

        holders = {"DataFrame": DataFrame, "GroupedData": GroupedData}
        jvm = self.spark.sparkContext._jvm
        return {
            "protocol": PROTOCOL,
            "spark": self.spark.version,
            "scala": jvm.scala.util.Properties.versionNumberString(),
            "java": jvm.System.getProperty("java.version"),
            "python": platform.python_version(),
            "os": operating_system(),
            "apis": sorted(name for name, holder in APIS.items() if hasattr(holders[holder], name)),
        }

    def slots(self) -> int | None:
        """Tasks the cluster runs at once, as far as its executors are there; None in local mode.

        The first job waits for the first executor: a cluster that gives none is known of before any case.
        """
        if self._is_local():
            return None
        context = self.spark.sparkContext
        context.parallelize([0], 1).count()
        return int(context.defaultParallelism)

    def executors(self) -> "FrozenSet[str]":
        """The ids of the cluster's executors that are there; none in local mode."""
        if self._is_local():
            return frozenset()
        ids: str = self.spark.sparkContext._jsc.sc().getExecutorIds().mkString(" ")
        return frozenset(ids.split())

    def is_alive(self) -> bool:
        """Whether the JVM still answers; an error of a dead one says nothing about Spark's semantics."""
        try:
            self.spark.sparkContext._jvm.System.currentTimeMillis()
        except Exception:  # whatever py4j makes of a connection that is gone
            return False
        return True

    def _is_local(self) -> bool:
        return bool(self.spark.sparkContext.master.startswith("local["))

    def new_session(self) -> Any:
        """A session of its own for one case, active in this thread as a user's only session would be.

        Some checks read the active session's settings and not those of the query's (the chained-operator check of 3.1, for one).
        """
        session = self.spark.newSession()
        self._active.setActiveSession(session._jsparkSession)
        return session

    def end_session(self, session: Any) -> None:
        """Nothing is held by one."""

    def arrivals(self, folder: str, streams: dict[str, Any]) -> Arrivals:
        """What lets rows arrive. ``folder``: for the directories of the streams; ``streams``: as of ``Arrivals``."""
        return Arrivals(folder, streams, self.files)

    def capture(self, emitted: "Callable[[int, List[List[Any]]], None] | None", _folder: str) -> Any:
        """What is given to ``foreachBatch``. ``_folder``: of the case, where this engine puts nothing."""
        return Capture(emitted)

    def cause(self, _query: Any, capture: Any, error: Exception) -> Exception:
        """What a query failed of that ended with an error."""
        return capture.error or error

    @contextmanager
    def still(self, query: Any) -> Iterator[None]:
        """While no micro-batch is being planned, as Spark's own StreamTest does it."""
        lock = query._jsq.streamingQuery().awaitProgressLock()
        lock.lock()
        try:
            yield
        finally:
            lock.unlock()

    def recent(self, query: Any, seen: int) -> "tuple[List[Dict[str, Any]], int]":
        """The progress entries since the first ``seen``, and how many there are now."""
        entries = query._jsq.recentProgress()
        return [json.loads(entries[i].json()) for i in range(seen, len(entries))], len(entries)

    def plan(self, query: Any, frame: Any, has_executed: bool) -> str:
        """The extended plan of the last micro-batch, or the logical one where none has run."""
        # Not by the progress there is: an idle query reports some too, and has no physical plan yet.
        if not has_executed:
            return str(frame._jdf.queryExecution().analyzed().toString())
        return str(query._jsq.explainInternal(True))


def _holder_of_the_active(spark: Any) -> Any:
    """What sets the active session. It is looked up once: for each part of a name the JVM looks through all jars."""
    from py4j.java_gateway import JavaClass

    jvm = spark.sparkContext._jvm
    companion = jvm.org.apache.spark.sql.classic.SparkSession  # 4.0 and newer
    # Before, the name is a package.
    return companion if isinstance(companion, JavaClass) else jvm.org.apache.spark.sql.SparkSession
