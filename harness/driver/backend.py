"""What the driver asks of Spark: ``classic.Classic`` answers in this process, ``connect.Connect`` through a server."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Dict, FrozenSet, List, Optional, Set, Tuple

from . import PROTOCOL
from .request import StreamRequest

if TYPE_CHECKING:
    from typing import Protocol  # novermin

    from .arrivals import Arrivals
    from .capture import Capture
    from .errors import DriverFailure
    from .files import ReadableFiles
    from .kill_point import Breakpoint
else:
    Protocol = object  # `typing` has it from CPython 3.8 on, and Spark 2.4 runs on 3.7

OnEmitted = Callable[[int, List[List[Any]]], None]
"""Called with a micro-batch's id and rows before the engine can commit it, from another thread."""


ROWS_AT = "spark.conformance.rowsAt"
"""The setting of a case that runs an input of an operator in place of the query: ``Join 0 1``, the second input of the first join of the
analysed plan, from the top; ``Query 0 0``, the query itself. The rows have two kinds of columns more: ``ROW_FROM``, unless
an operator loses it, and the keys that an aggregation computes."""
ROW_FROM = "spark_conformance_row_from"
"""The file of the sample that a row comes from, a space, and which of its rows that is."""
DEFAULTS = "spark.conformance.defaults"
"""The setting of a case that names settings, separated by spaces, which its session does not take from its engine."""
DELAY = "spark.conformance.delay"
"""The setting of a case in whose query each watermark that Python marks has this delay in place of its own."""


class Backend(Protocol):
    """A running Spark. Queries, frames and sessions are pyspark's own objects."""

    makes_directories: bool
    """Whether to make the first directories of a new checkpoint in advance."""

    sends_functions: bool
    """Whether Python workers see none of this machine's modules, so that functions are sent to them whole."""

    @property
    def files(self) -> ReadableFiles: ...

    def identity(self) -> Dict[str, Any]:
        """The fields of the protocol's ``Identity``."""

    def slots(self) -> Optional[int]:
        """Tasks that the cluster runs at once; None without a cluster, or if unknown."""

    def executors(self) -> FrozenSet[str]:
        """The ids of the cluster's executors; empty without a cluster, or if unknown."""

    def watch(self, lost: Callable[[DriverFailure], None]) -> None:
        """Call ``lost``, once, from another thread, if what runs the queries does not come back: a server, or all executors."""

    def is_alive(self) -> bool:
        """Whether Spark still answers; an error of a dead one says nothing about its semantics."""

    def new_session(self, files: int = 1) -> Any:
        """A session of its own. ``files``: how many arrive in one micro-batch of its query."""

    def end_session(self, session: Any) -> None: ...

    def arrivals(self, folder: str, streams: Dict[str, StreamRequest], kafka: Optional[str]) -> Arrivals:
        """Delivers rows. ``folder``: holds the directories of the streams; ``kafka``: the broker of their topics, as for `Broker`."""

    def capture(self, emitted: Optional[OnEmitted], folder: str, real_time: bool) -> Capture:
        """Collects what a query emits. ``folder``: the case's directory; ``real_time``: whether its trigger is ``realTime``."""

    def cause(self, query: Any, capture: Capture, error: Exception) -> Exception:
        """The error that made a query fail."""

    def planning_paused(self, query: Any) -> ContextManager[None]:
        """A context in which no micro-batch of the query is planned, if the backend can prevent it."""

    def stop_after_commit(self, query: Any, breakpoint: Breakpoint, is_committed: Callable[[], bool]) -> None:
        """Resume from the breakpoint, and keep the query from planning another micro-batch once this one is committed."""

    def stop_before_commit(self, query: Any, is_planned: Callable[[], bool]) -> None:
        """Let the query run a micro-batch once it is planned, until its sink has the rows and before its commit is logged."""

    def repartition(self, session: Any, checkpoint: str, partitions: int) -> None:
        """Divide the state of the stopped query with this checkpoint into partitions. Raises ``MissingName`` if this release cannot."""

    def recent(self, query: Any, known: int) -> Tuple[List[Dict[str, Any]], int]:
        """The progress entries after the first ``known``, and how many there are now."""

    def plan(self, query: Any, frame: Any, has_executed: bool) -> str:
        """The extended plan of the last micro-batch, or the logical plan if none has run."""

    def rows_at(self, frame: Any, place: str) -> Any:
        """The DataFrame that is an input of an operator of a query. ``place``: as in ``ROWS_AT``."""

    def native(self, session: Any) -> Optional[Set[str]]:
        """The operators that an accelerator runs of the micro-batches that run now in a session; None without an accelerator."""


def identity(spark: str, scala: str, java: str, frame: type, grouped: type) -> Dict[str, Any]:
    """The fields of the protocol's ``Identity``. ``frame``, ``grouped``: the ``DataFrame`` and ``GroupedData`` of this client."""
    newer = {
        frame: ["dropDuplicatesWithinWatermark"],
        grouped: ["applyInPandasWithState", "transformWithState", "transformWithStateInPandas"],
    }
    return {
        "protocol": PROTOCOL,
        "spark": spark,
        "scala": scala,
        "java": java,
        "python": platform.python_version(),
        "os": _operating_system(),
        "apis": sorted(name for holder, names in newer.items() for name in names if hasattr(holder, name)),
    }


def _operating_system() -> str:
    """Name the system as in ``Debian GNU/Linux 12 (bookworm), Linux 6.1.0``."""
    kernel = "{} {}".format(platform.system(), platform.release())
    try:
        with open("/etc/os-release", encoding="utf-8") as lines:
            fields = dict(line.rstrip("\n").split("=", 1) for line in lines if "=" in line)
        return "{}, {}".format(fields["PRETTY_NAME"].strip('"'), kernel)
    except (OSError, KeyError):
        return kernel
