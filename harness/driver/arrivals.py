"""Rows on their way into the engine, as files or through its memory; through Kafka see ``topics``, through tables ``tables``.

A micro-batch of a stream is always the same number of files (an empty partition is a file with a blank line), so that
``maxFilesPerTrigger`` cuts a backlog exactly between its entries. A blank line and not an empty file, because Spark ignores empty files
and the offset would not advance.

The clock of a source in memory stands still. A real-time micro-batch then lasts until the source has had no row for some
milliseconds, instead of until a time, so that the rows of one arrival are read by one micro-batch however busy the machine is.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
import time
from typing import Any, Callable, Iterable, Iterator

from .errors import MissingName
from .files import SparkFiles, WritableFiles, one_file
from .request import ArrivingBatch, Partitions, RowsInFile, StreamRequest

JSON_OPTIONS = {
    "mode": "FAILFAST",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""The options with which Spark reads the rows that the host wrote as JSON."""

NEXT_SECOND_S = 1.1
"""A wait after which a new file's modification time, in whole seconds, is later."""


FIRST_MODIFIED_S = 1_767_225_600
"""The modification time of the first file, the same in every run, since a query may emit it: 2026-01-01, in seconds since the epoch."""


class Arrivals:
    """What the query's sources read, and how rows get there."""

    paced = True
    """Whether each micro-batch reads the rows of one arrival, however many wait. If not, the rows of the next one may be placed only
    while the micro-batch of those before it runs; and a query that finds nothing when it starts runs an empty micro-batch."""

    waits = False
    """Whether all that arrives in a first step is there when the query starts."""

    def read(self, reader: Any, stream: str) -> Any:
        """The streaming DataFrame of a stream, with the columns of its schema. ``reader``: a ``DataStreamReader``."""
        raise NotImplementedError

    def stream_of(self, source: dict[str, Any]) -> str | None:
        """The stream that a source of a progress entry reads."""
        raise NotImplementedError

    def stage(self, batches: list[ArrivingBatch]) -> Any:
        """Prepare what arrives in micro-batches where no source sees it; ``place`` takes the result."""
        raise NotImplementedError

    def place(self, staged: Any) -> None:
        """Show to the sources what is prepared."""
        raise NotImplementedError

    def renew(self, _arrived: list[ArrivingBatch]) -> None:
        """Make the topics anew, with what has arrived so far. The host lets no case without topics do it, nor ``grow`` or ``age_out``."""
        raise NotImplementedError("there is no topic")

    def grow(self, stream: str, _partitions: int) -> None:
        """Give the topic of a stream more partitions."""
        raise NotImplementedError("{} has no topic".format(stream))

    def age_out(self) -> None:
        """Remove all records of topics and all rows of tables, whether they are read or not."""
        raise NotImplementedError("there is no topic")

    def rewrite(self) -> None:
        """Write all rows of Delta tables again, in a commit that changes rows."""
        raise NotImplementedError("there is no table")

    def recreate(self, batch: ArrivingBatch) -> None:
        """Delete the sources of streams, and make them again with these rows."""
        raise NotImplementedError("sources stay as they are")

    def alter(self, stream: str, _ddl: str) -> None:
        """Give the table of a stream columns that it lacks, and columns that it has the types that they have here."""
        raise NotImplementedError("{} has no table".format(stream))

    def records(self, _source: dict[str, Any]) -> list[int] | None:
        """How many records of each partition a source of a progress entry read; None if it reads files."""
        return None

    def behind(self, _entry: dict[str, Any]) -> bool:
        """Whether rows wait in memory that the micro-batch of a progress entry, and those before it, have not read."""
        return False

    def close(self) -> None:
        """Remove what lies outside the case's directory."""


class DirectoryArrivals(Arrivals):
    """What ``Arrivals`` as files share, whoever writes them: each stream has a directory."""

    _root: str
    _streams: dict[str, StreamRequest]

    def directory(self, stream: str) -> str:
        raise NotImplementedError

    def stream_of(self, source: dict[str, Any]) -> str | None:
        return stream_at(source["description"], self.directory, self._streams)

    def read(self, reader: Any, stream: str) -> Any:
        declared = self._streams[stream]
        options = {"maxFilesPerTrigger": str(declared.files)} if declared.options is None else dict(declared.options)
        if options.get("cleanSource") == "archive":
            options["sourceArchiveDir"] = self._root + "/.archive"
        reader = reader.format("json").schema(declared.ddl).options(**options)
        return reader.options(**JSON_OPTIONS).load(self.directory(stream))


class FileArrivals(DirectoryArrivals):
    """``Arrivals`` as files; those in the directories already arrived before."""

    def __init__(self, root: str, streams: dict[str, StreamRequest], files: WritableFiles) -> None:
        self._root = root
        self._streams = streams
        self._files = files
        self._staging = root + "/.staging"
        before = []
        for name in streams:
            files.make_directory(self.directory(name))
            before += [self.directory(name) + "/" + file for file in files.names(self.directory(name))]
        self._placed = max((int(path.rpartition("/")[2].partition(".")[0]) for path in before), default=0)
        # Sources read files in the order of their modification times, which must not depend on how fast we write them.
        self._clock = max((files.modified(path) for path in before), default=FIRST_MODIFIED_S)
        files.remove(self._staging)  # files that a killed process had not placed yet
        files.make_directory(self._staging)

    def directory(self, stream: str) -> str:
        return self._root + "/" + stream

    def stage(self, batches: list[ArrivingBatch]) -> list[tuple[int, str, str]]:
        """The time of each file, and its path before and after it is shown."""
        staged = []
        for batch in batches:
            self._clock += 1
            staged += [self._write(stream, content) for stream, content in files_of(batch, self._streams)]
        return staged

    def place(self, staged: list[tuple[int, str, str]]) -> None:
        """Rename staged files into their sources' directories."""
        before = None
        for clock, hidden, visible in staged:
            if not self._files.keeps_times and before not in (None, clock):
                time.sleep(NEXT_SECOND_S)
            before = clock
            self._files.rename(hidden, visible)

    def recreate(self, batch: ArrivingBatch) -> None:
        """The new files are younger than all before, and have the names of the first ones."""
        names = {stream: sorted(self._files.names(self.directory(stream))) for stream in batch}
        staged = self.stage([batch])
        for stream, before in names.items():
            for name in before:
                self._files.remove(self.directory(stream) + "/" + name)
        for clock, hidden, visible in staged:
            folder, _, new = visible.rpartition("/")
            before = names[folder.rpartition("/")[2]]
            self.place([(clock, hidden, folder + "/" + (before.pop(0) if before else new))])

    def _write(self, stream: str, content: str | list[str]) -> tuple[int, str, str]:
        self._placed += 1
        name = "{:06d}.json".format(self._placed)
        hidden = self._staging + "/" + name
        if isinstance(content, str):
            shutil.copyfile(content, hidden)  # the host names files only where cases lie on a local disk
        else:
            self._files.write(hidden, "".join(line + "\n" for line in content).encode("utf-8"))
        self._files.set_modified(hidden, self._clock)
        return self._clock, hidden, self.directory(stream) + "/" + name


def files_of(batch: ArrivingBatch, streams: dict[str, StreamRequest]) -> Iterator[tuple[str, str | list[str]]]:
    """Yield the files of a micro-batch, ``StreamRequest.files`` of each stream, as the stream and its lines or the file with them."""
    for stream, partitions in batch.items():
        padding = streams[stream].files - len(partitions)
        for rows in list(partitions) + [[]] * padding:
            yield stream, rows.path if isinstance(rows, RowsInFile) else lines(rows)


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """Write rows as the lines of a file: a blank line for none."""
    return [json.dumps(row) for row in rows] or [""]


def stream_at(description: str, directory: Callable[[str], str], streams: Iterable[str]) -> str | None:
    """The stream whose directory a file source's description names: ``FileStreamSource[hdfs://host:8020/…/streams/events]``.

    Spark writes host and slashes before the path as the file system does, which may differ from ours.
    """
    paths = {name: re.sub(r"^[a-z][a-z0-9+.-]*:(//[^/]*)?", "", directory(name)) for name in streams}
    return next((name for name, path in paths.items() if description.rstrip("]").endswith(path)), None)


class JobArrivals(DirectoryArrivals):
    """``Arrivals`` through the session of an engine. ``root``: a URL.

    One job writes the files of one micro-batch. Its commit shows them one after another within milliseconds; the host has to check that
    no micro-batch was planned in between.
    """

    def __init__(self, root: str, streams: dict[str, StreamRequest], session: Any) -> None:
        self._root = root
        self._streams = streams
        self._session = session
        files = SparkFiles(session)
        for name in streams:
            # Sources ignore names that begin with _, so this only makes the directory.
            files.write_lines(self.directory(name) + "/_made", [])

    def directory(self, stream: str) -> str:
        return "{}/stream={}".format(self._root, stream)

    def stage(self, batches: list[ArrivingBatch]) -> list[list[tuple[str, Any]]]:
        """The stream and lines of each file, by micro-batch; nothing is written before ``place``."""
        return [list(files_of(batch, self._streams)) for batch in batches]

    def place(self, staged: list[list[tuple[str, Any]]]) -> None:
        """Write one micro-batch after another: the modification times are their order."""
        for number, files in enumerate(staged):
            if number:
                time.sleep(NEXT_SECOND_S)
            frames = [
                one_file(self._session, content).selectExpr("value", "'{}' AS stream".format(stream))
                for stream, content in files
            ]
            # Each partition of the union becomes a file.
            union = functools.reduce(lambda whole, frame: whole.union(frame), frames)
            union.write.mode("append").partitionBy("stream").text(self._root)


_SOURCE = "LowLatencyMemoryStream"


class RecordArrivals(Arrivals):
    """What ``Arrivals`` as records share, of topics, in memory or in tables."""

    paced = False
    _streams: dict[str, StreamRequest]

    def has(self, stream: str) -> bool:
        return stream in self._streams

    def stage(self, batches: list[ArrivingBatch]) -> list[Any]:
        return [
            record
            for batch in batches
            for name, partitions in batch.items()
            if name in self._streams
            for record in self._records(name, partitions)
        ]

    def _records(self, name: str, partitions: Partitions) -> list[Any]:
        """Prepare what arrives of a stream in one micro-batch."""
        raise NotImplementedError


class MemoryArrivals(RecordArrivals):
    """``Arrivals`` in the JVM of the driver. They outlive a query and end with the process."""

    def __init__(self, spark: Any, streams: dict[str, StreamRequest]) -> None:
        self._jvm = spark.sparkContext._jvm
        self._streams = streams
        self._sources: dict[str, Any] = {}
        self._waiting: dict[str, list[str]] = {}
        """Rows that arrived before the source was made, which the first query does."""
        self._placed: dict[str, int] = {}

    def stream_of(self, source: dict[str, Any]) -> str | None:
        return next((name for name, own in self._sources.items() if own.toString() == source["description"]), None)

    def read(self, reader: Any, stream: str) -> Any:
        from pyspark.sql import DataFrame
        from pyspark.sql import functions as F

        session = reader._spark
        if stream not in self._sources:
            self._sources[stream] = self._source(session._jsparkSession)
            self._add(stream, self._waiting.pop(stream, []))
        records = DataFrame(self._sources[stream].toDF(), session).where("value <> ''")
        return records.select(F.from_json("value", self._streams[stream].ddl, JSON_OPTIONS).alias("row")).select(
            "row.*"
        )

    def _records(self, name: str, partitions: Partitions) -> list[tuple[str, list[str]]]:
        return [(name, [line for rows in partitions for line in lines(rows)])]

    def place(self, staged: list[tuple[str, list[str]]]) -> None:
        for stream, values in staged:
            if stream in self._sources:
                self._add(stream, values)
            else:
                self._waiting.setdefault(stream, []).extend(values)

    def records(self, source: dict[str, Any]) -> list[int] | None:
        if self.stream_of(source) is None:
            return None
        before, after = (_offset(source.get(key)) for key in ("startOffset", "endOffset"))
        return [after - before]

    def behind(self, entry: dict[str, Any]) -> bool:
        read = {self.stream_of(source): _offset(source.get("endOffset")) for source in entry["sources"]}
        return any(read.get(stream, count) < count for stream, count in self._placed.items())

    def _source(self, session: Any) -> Any:
        """Raise ``MissingName`` if this release has no such source."""
        from py4j.java_gateway import JavaClass

        source = getattr(self._jvm.org.apache.spark.sql.execution.streaming.sources, _SOURCE)
        if not isinstance(source, JavaClass):
            raise MissingName(AttributeError("this release has no {}".format(_SOURCE)))
        clocks = getattr(self._jvm.org.apache.spark.sql.execution.datasources.v2, "LowLatencyClock$")
        getattr(clocks, "MODULE$").setClock(self._jvm.org.apache.spark.util.ManualClock(0))  # noqa: B009 - no Python name
        time = self._jvm.org.apache.spark.util.SystemClock()
        return source(0, session, 1, time, self._jvm.org.apache.spark.sql.Encoders.STRING())

    def _add(self, stream: str, values: list[str]) -> None:
        if values:
            rows = self._jvm.java.util.ArrayList()
            for value in values:
                rows.add(value)
            self._placed[stream] = self._placed.get(stream, 0) + len(values)
            self._sources[stream].addData(0, self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(rows))


def _offset(offset: Any) -> int:
    """The offset of the only partition; 0 before the first micro-batch."""
    return int(read_offset(offset).get("0", 0))


def read_offset(offset: Any) -> dict[str, Any]:
    """An offset of a progress entry, which Spark 3.0 reports as text; empty before the first micro-batch."""
    return (json.loads(offset) if isinstance(offset, str) else offset) or {}


class MixedArrivals(Arrivals):
    """``Arrivals`` of which some are files and others records, of topics or in memory: these alone answer what concerns records."""

    paced = False

    def __init__(self, files: FileArrivals, records: RecordArrivals) -> None:
        self._files = files
        self._records = records
        for name in ("renew", "grow", "age_out", "rewrite", "alter", "records", "behind", "close", "waits"):
            setattr(self, name, getattr(records, name))

    def stream_of(self, source: dict[str, Any]) -> str | None:
        return self._records.stream_of(source) or self._files.stream_of(source)

    def read(self, reader: Any, stream: str) -> Any:
        return (self._records if self._records.has(stream) else self._files).read(reader, stream)

    def stage(self, batches: list[ArrivingBatch]) -> tuple[Any, Any]:
        of_files = [{name: rows for name, rows in batch.items() if not self._records.has(name)} for batch in batches]
        return self._files.stage(of_files), self._records.stage(batches)

    def recreate(self, batch: ArrivingBatch) -> None:
        for arrivals in (self._records, self._files):
            own = {name: rows for name, rows in batch.items() if self._records.has(name) is (arrivals is self._records)}
            if own:
                arrivals.recreate(own)

    def place(self, staged: tuple[Any, Any]) -> None:
        self._files.place(staged[0])
        self._records.place(staged[1])
