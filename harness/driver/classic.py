"""Spark in this process: one session with its JVM, whose internals can be reached."""

from __future__ import annotations

import json
import os
import threading
from contextlib import contextmanager
from functools import partial, reduce
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Optional, Set, Tuple

from . import outage, session
from .arrivals import Arrivals, FileArrivals, MemoryArrivals, MixedArrivals
from .backend import ROW_FROM, OnEmitted, identity
from .capture import Capture, LocalCapture, RealTimeCapture
from .errors import DriverFailure, FailureReason, method
from .files import HadoopFiles, LocalFiles, WritableFiles
from .jobs import main_program
from .jobs.query_starts import choose_manager, record_refusals
from .jobs.threads import SessionOfThread, of_thread
from .kill_point import Breakpoint, stop_after_commit, stop_before_commit
from .progress import native_operators
from .request import StreamRequest
from .tables import TableArrivals
from .topics import Broker, TopicArrivals


class Classic:
    """A ``Backend`` in local mode, unless the settings name another master. Raises ``DriverFailure`` if the storage cannot be written.

    ``work``: a directory for scratch files; ``conf``: static settings of the target; ``storage``: the URL of a directory that holds
    the directories of cases, None if they are on this machine; ``hidden``: more settings, which are secrets.
    """

    sends_functions = False

    def __init__(
        self, work: str, conf: Dict[str, str], storage: Optional[str] = None, hidden: Optional[Dict[str, str]] = None
    ) -> None:
        from py4j import protocol

        settings, hidden = dict(conf), dict(hidden or {})
        self._given = {**settings, **hidden}
        main_program.attach(settings)
        self._manager = hidden.pop(session.MANAGER, None) or settings.pop(session.MANAGER, None)
        record_refusals(protocol)
        self.spark = session.start(work, settings, hidden)
        self.files: WritableFiles = HadoopFiles(self.spark, storage) if storage else LocalFiles()
        self.makes_directories = self.spark.conf.get("spark.conformance.makeDirectories", "false") == "true"
        self._native = self.spark.conf.get("spark.conformance.native", None)
        self._session_class = session.session_class(self.spark)
        self._connecting = threading.Lock()
        self._broker: Optional[Broker] = None
        self._session_settings = session.settings_of_each(self.spark)
        type(self.spark)._instantiatedSession = SessionOfThread(self.spark)

    def identity(self) -> Dict[str, Any]:
        import pyspark
        from pyspark.sql import DataFrame, GroupedData

        jvm = self.spark.sparkContext._jvm
        scala, java = jvm.scala.util.Properties.versionNumberString(), jvm.System.getProperty("java.version")
        own = session.own_settings(
            self.spark.sparkContext.getConf().getAll(), self._given, self.spark.newSession().conf, self._default_of
        )
        if session.CLASS_PATH not in self._given:
            class_path = jvm.System.getProperty("java.class.path")
            own["fixed"] += session.own_jars(
                os.path.dirname(pyspark.__file__), jvm.System.getenv("SPARK_HOME") or "", class_path
            )
        return {**identity(self.spark.version, scala, java, DataFrame, GroupedData), **own}

    def _default_of(self, key: str) -> Optional[str]:
        entry = self.spark.sparkContext._jvm.org.apache.spark.internal.config.ConfigEntry.findEntry(key)
        return entry.defaultValueString() if entry is not None else None

    def slots(self) -> Optional[int]:
        """The first job waits for the first executor, so a cluster that provides none is noticed before any case."""
        if self._is_local():
            return None
        context = self.spark.sparkContext
        try:
            outage.first_executor(context)
        except TimeoutError as error:
            raise DriverFailure(str(error), FailureReason.NO_EXECUTORS) from error
        return int(context.defaultParallelism)

    def executors(self) -> FrozenSet[str]:
        if self._is_local():
            return frozenset()
        return frozenset(outage.executors(self.spark.sparkContext).split())

    def watch(self, lost: Callable[[DriverFailure], None]) -> None:
        self._lost = lost
        if not self._is_local():
            outage.watch(lambda: outage.no_executor(self.spark.sparkContext), lost, FailureReason.NO_EXECUTORS)

    def is_alive(self) -> bool:
        """Whether the JVM answers and its SparkContext still runs: code of a case may have stopped it, for all later cases."""
        try:
            return not self.spark.sparkContext._jsc.sc().isStopped()
        except Exception:  # py4j raises various classes when the connection is gone; a stopped context has no `_jsc`
            return False

    def _is_local(self) -> bool:
        return bool(self.spark.sparkContext.master.startswith("local["))

    def new_session(self, _files: int = 1) -> Any:
        """Make the active session of this thread, as a user's only session would be.

        Some checks read the active session's settings instead of the query's: the check for chained operators of 3.1.
        """
        session = self.spark.newSession()
        for key, value in self._session_settings.items():
            session.conf.set(key, value)
        choose_manager(session, self._manager)
        self._session_class.setActiveSession(session._jsparkSession)
        of_thread.session = session
        return session

    def end_session(self, session: Any) -> None:
        """A session holds no resources."""

    def arrivals(self, folder: str, streams: Dict[str, StreamRequest], kafka: Optional[str]) -> Arrivals:
        topics = {name: stream for name, stream in streams.items() if stream.topic is not None}
        in_memory = {name: stream for name, stream in streams.items() if stream.in_memory}
        tables = {name: stream for name, stream in streams.items() if stream.table is not None}
        elsewhere = {*topics, *in_memory, *tables}
        others = {name: stream for name, stream in streams.items() if name not in elsewhere}
        files = FileArrivals(folder, others, self.files)
        if topics:
            return MixedArrivals(files, TopicArrivals(folder, topics, self._kafka(kafka)))
        if tables:
            return MixedArrivals(files, TableArrivals(folder, tables, self.files, self.spark))
        return MixedArrivals(files, MemoryArrivals(self.spark, in_memory)) if in_memory else files

    def _kafka(self, address: Optional[str]) -> Broker:
        if address is None:
            raise DriverFailure("the request names topics and no broker", FailureReason.KAFKA_FAILED)
        with self._connecting:
            if self._broker is None or self._broker.address != address:
                self._broker = Broker(self.spark, address)
                look = partial(outage.none_listens, address.rpartition("@")[2], "the Kafka broker {}")
                outage.watch(look, self._lost, FailureReason.NO_BROKER)
            return self._broker

    def capture(self, emitted: Optional[OnEmitted], folder: str, real_time: bool) -> Capture:
        return RealTimeCapture(folder + "/emitted") if real_time else LocalCapture(emitted)

    def cause(self, _query: Any, capture: Capture, error: Exception) -> Exception:
        return capture.error() or error

    @contextmanager
    def planning_paused(self, query: Any) -> Iterator[None]:
        """Hold the progress lock, as Spark's own StreamTest does."""
        lock = query._jsq.streamingQuery().awaitProgressLock()
        lock.lock()
        try:
            yield
        finally:
            lock.unlock()

    def stop_after_commit(self, query: Any, breakpoint: Breakpoint, is_committed: Callable[[], bool]) -> None:
        lock = query._jsq.streamingQuery().awaitProgressLock()
        stop_after_commit(self.spark.sparkContext._gateway, lock, breakpoint.resume.set, is_committed)

    def stop_before_commit(self, query: Any, is_planned: Callable[[], bool]) -> None:
        lock = query._jsq.streamingQuery().awaitProgressLock()
        stop_before_commit(self.spark.sparkContext._gateway, lock, is_planned)

    def repartition(self, session: Any, checkpoint: str, partitions: int) -> None:
        # A property since 4.2, "evolving and currently supported in Spark Classic".
        method(session, "_streamingCheckpointManager").repartition(checkpoint, partitions)

    def recent(self, query: Any, known: int) -> Tuple[List[Dict[str, Any]], int]:
        entries = query._jsq.recentProgress()
        return [json.loads(entries[i].json()) for i in range(known, len(entries))], len(entries)

    def plan(self, query: Any, frame: Any, has_executed: bool) -> str:
        # An idle query reports progress too and has no physical plan yet, so progress entries do not tell.
        if not has_executed:
            return str(frame._jdf.queryExecution().analyzed().toString())
        return str(query._jsq.explainInternal(True))

    def rows_at(self, frame: Any, place: str) -> Any:
        name, number, child = place.split()
        plan = frame._jdf.queryExecution().analyzed()
        if name == "Query":
            return self._frame(self._numbered(plan, frame), frame)
        node = [node for node in _nodes(plan) if node.nodeName() == name][int(number)]
        below = self._numbered(node.children().apply(int(child)), frame)
        if name == "Aggregate":
            utils = self.spark._jvm.PythonUtils
            keys = [key for key in _listed(node.groupingExpressions()) if key.nodeName() != "AttributeReference"]
            made = [each for each in _listed(node.aggregateExpressions()) if each.nodeName() == "Alias"]
            computed = [each for each in made if any(key.semanticEquals(each.child()) for key in keys)]
            logical = self.spark._jvm.org.apache.spark.sql.catalyst.plans.logical
            below = logical.Project(utils.toSeq(_listed(below.output()) + computed), below)
        return self._frame(below, frame)

    def _frame(self, plan: Any, like: Any) -> Any:
        dataset = like._jdf.getClass().getName()  # of 4.0 and newer, org.apache.spark.sql.classic.Dataset
        made = reduce(getattr, dataset.split("."), self.spark._jvm).ofRows(like._jdf.sparkSession(), plan)
        return type(like)(made, getattr(like, "sparkSession", None) or like.sql_ctx)  # up to 3.2

    def _numbered(self, plan: Any, like: Any) -> Any:
        """A plan whose streams, and the projections above them, have the column ``ROW_FROM``."""
        if not plan.isStreaming():
            return plan
        from pyspark.sql import functions as F

        children, jvm = [self._numbered(child, like) for child in _listed(plan.children())], self.spark._jvm
        if not children:
            row = F.concat_ws(" ", F.input_file_name(), F.monotonically_increasing_id().cast("string"))
            numbered = self._frame(plan, like).select("*", row.alias(ROW_FROM))
            # Up to 3.3, Spark runs a filter above before it numbers the rows of a file, unless one that is not deterministic is between.
            return numbered.where(F.monotonically_increasing_id() >= 0)._jdf.queryExecution().analyzed()
        logical, seq = jvm.org.apache.spark.sql.catalyst.plans.logical, jvm.PythonUtils.toSeq
        rows = [column for column in _listed(children[0].output()) if column.name() == ROW_FROM]
        if plan.nodeName() == "Project":
            return logical.Project(seq(_listed(plan.projectList()) + rows), children[0])
        if plan.nodeName() == "Expand":  # of sliding windows
            made = [seq(_listed(projection) + rows) for projection in _listed(plan.projections())]
            return logical.Expand(seq(made), seq(_listed(plan.output()) + rows), children[0])
        return plan.withNewChildren(seq(children))

    def native(self, session: Any) -> Optional[Set[str]]:
        return native_operators(self._native, session.streams.active) if self._native is not None else None


def _nodes(plan: Any) -> Iterator[Any]:
    """The operators of a plan, from the top."""
    yield plan
    for child in _listed(plan.children()):
        yield from _nodes(child)


def _listed(scala: Any) -> List[Any]:
    return [scala.apply(at) for at in range(scala.size())]
