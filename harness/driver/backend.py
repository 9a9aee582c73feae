"""What the driver asks of Spark: ``classic.Classic`` answers in this process, ``connect.Connect`` through a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, ContextManager, Dict, FrozenSet, List, Optional, Tuple

from .breakpoint import Breakpoint
from .request import Batch, Stream

if TYPE_CHECKING:
    from typing import Protocol  # novermin
else:
    Protocol = object  # `typing` has it from CPython 3.8 on, and Spark 2.4 runs on 3.7

Emitted = Callable[[int, List[List[Any]]], None]
"""Called with a micro-batch's id and rows before the engine can commit it, from another thread."""


class ReadableFiles(Protocol):
    """The file system that holds the directories of cases. Paths are absolute; a missing one raises ``FileNotFoundError``."""

    def names(self, path: str) -> List[str]:
        """The entries of a directory."""

    def exists(self, path: str) -> bool: ...

    def read(self, path: str) -> bytes: ...

    def discard(self, path: str) -> None:
        """Remove the directory of a case that is over."""


class Files(ReadableFiles, Protocol):
    """A file system in which files can be written, renamed and removed one by one."""

    keeps_times: bool
    """Whether ``set_modified`` has an effect."""

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents, unless it exists."""

    def files_below(self, path: str) -> List[str]:
        """The paths of all files in a directory, at any depth; none if it does not exist."""

    def is_directory(self, path: str) -> bool: ...

    def modified(self, path: str) -> int:
        """When a file was last modified, in seconds since the epoch."""

    def set_modified(self, path: str, seconds: int) -> None: ...

    def write(self, path: str, content: bytes) -> None:
        """Write a file, replacing an existing one."""

    def rename(self, path: str, to: str) -> None:
        """Atomically."""

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with everything in it; nothing happens if it does not exist."""


class Arrivals(Protocol):
    """What the query's sources read, and how rows get there."""

    paced: bool
    """Whether each micro-batch reads the rows of one arrival, however many wait. If not, the rows of the next one may be placed only
    while the micro-batch of those before it runs; and a query that finds nothing when it starts runs an empty micro-batch."""

    def read(self, reader: Any, stream: str) -> Any:
        """The streaming DataFrame of a stream, with the columns of its schema. ``reader``: a ``DataStreamReader``."""

    def stream_of(self, description: str) -> Optional[str]:
        """The stream that a progress entry's source description names."""

    def stage(self, batches: List[Batch]) -> Any:
        """Prepare what arrives in micro-batches where no source sees it; ``place`` takes the result."""

    def place(self, staged: Any) -> None:
        """Show to the sources what is prepared."""

    def renew(self, arrived: List[Batch]) -> None:
        """Make the topics anew, with what has arrived so far."""

    def grow(self, stream: str, partitions: int) -> None:
        """Give the topic of a stream more partitions."""

    def age_out(self) -> None:
        """Remove all records of topics, whether they are read or not."""

    def records(self, source: Dict[str, Any]) -> Optional[List[int]]:
        """How many records of each partition a source of a progress entry read; None if it does not read a topic."""

    def behind(self, entry: Dict[str, Any]) -> bool:
        """Whether rows wait in memory that the micro-batch of a progress entry, and those before it, have not read."""

    def close(self) -> None:
        """Remove what lies outside the case's directory."""


class Capture(Protocol):
    """What each micro-batch emitted."""

    breakpoint: Optional[Breakpoint]
    sink: Optional[Callable[[Any, int], None]]
    """Gets each micro-batch too, once its rows are kept."""
    running: Callable[[], None]
    """Called while a micro-batch runs, before its rows are kept."""

    def attach(self, writer: Any, schema: Any) -> Any:
        """Let a ``DataStreamWriter`` of rows with this schema write here; returns the writer."""

    def rows(self, batch_id: int) -> List[List[Any]]:
        """The rows of a batch as lists of JSON values."""

    def error(self) -> Optional[Exception]:
        """What the last micro-batch failed with inside ``foreachBatch``."""


class Backend(Protocol):
    """A running Spark. Queries, frames and sessions are pyspark's own objects."""

    makes_directories: bool
    """Whether to make the first directories of a new checkpoint in advance."""

    sends_functions: bool
    """Whether Python workers see none of this machine's modules, so that functions are sent to them whole."""

    @property
    def files(self) -> ReadableFiles:
        """The file system that holds the directories of cases."""

    def identity(self) -> Dict[str, Any]:
        """The fields of the protocol's ``Identity``."""

    def slots(self) -> Optional[int]:
        """Tasks that the cluster runs at once; None without a cluster, or if unknown."""

    def executors(self) -> FrozenSet[str]:
        """The ids of the cluster's executors; empty without a cluster, or if unknown."""

    def is_alive(self) -> bool:
        """Whether Spark still answers; an error of a dead one says nothing about its semantics."""

    def new_session(self) -> Any:
        """A session for one case."""

    def end_session(self, session: Any) -> None: ...

    def arrivals(self, folder: str, streams: Dict[str, Stream], kafka: Optional[str]) -> Arrivals:
        """Delivers rows. ``folder``: holds the directories of the streams; ``kafka``: ``host:port`` of the broker of their topics."""

    def capture(self, emitted: Optional[Emitted], folder: str, real_time: bool) -> Capture:
        """Collects what a query emits. ``folder``: the case's directory; ``real_time``: whether its trigger is ``realTime``."""

    def cause(self, query: Any, capture: Capture, error: Exception) -> Exception:
        """The error that made a query fail."""

    def planning_paused(self, query: Any) -> ContextManager[None]:
        """A context in which no micro-batch of the query is planned, if the backend can prevent it."""

    def stop_after_commit(self, query: Any, breakpoint: Breakpoint, is_committed: Callable[[], bool]) -> None:
        """Resume from the breakpoint, and keep the query from planning another micro-batch once this one is committed."""

    def repartition(self, session: Any, checkpoint: str, partitions: int) -> None:
        """Divide the state of the stopped query with this checkpoint into this many partitions.

        Raises:
            MissingName: this release cannot do that.
        """

    def recent(self, query: Any, seen: int) -> Tuple[List[Dict[str, Any]], int]:
        """The progress entries after the first ``seen``, and how many there are now."""

    def plan(self, query: Any, frame: Any, has_executed: bool) -> str:
        """The extended plan of the last micro-batch, or the logical plan if none has run."""
