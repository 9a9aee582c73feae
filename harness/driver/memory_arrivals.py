"""Rows on their way into the engine through its memory: Spark's own ``LowLatencyMemoryStream``, which a real-time query can read.

Its clock stands still. A real-time micro-batch then lasts until the source has had no row for some milliseconds, instead of until a time,
so that the rows of one arrival are read by one micro-batch however busy the machine is.
"""

from __future__ import annotations

import json
from typing import Any

from .arrivals import JSON_OPTIONS, WithoutTopics, lines
from .origin import MissingName
from .request import Batch, Stream

_SOURCE = "LowLatencyMemoryStream"


class MemoryArrivals(WithoutTopics):
    """``Arrivals`` in the JVM of the driver. They outlive a query and end with the process."""

    paced = False

    def __init__(self, spark: Any, streams: dict[str, Stream]) -> None:
        self._jvm = spark.sparkContext._jvm
        self._streams = streams
        self._sources: dict[str, Any] = {}
        self._waiting: dict[str, list[str]] = {}
        """Rows that arrived before the source was made, which the first query does."""
        self._placed: dict[str, int] = {}
        """How many rows each source was given."""

    def has(self, stream: str) -> bool:
        return stream in self._streams

    def stream_of(self, description: str) -> str | None:
        return next((name for name, source in self._sources.items() if source.toString() == description), None)

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

    def stage(self, batches: list[Batch]) -> list[tuple[str, list[str]]]:
        return [
            (name, [line for rows in partitions for line in lines(rows)])
            for batch in batches
            for name, partitions in batch.items()
            if name in self._streams
        ]

    def place(self, staged: list[tuple[str, list[str]]]) -> None:
        for stream, values in staged:
            if stream in self._sources:
                self._add(stream, values)
            else:
                self._waiting.setdefault(stream, []).extend(values)

    def records(self, source: dict[str, Any]) -> list[int] | None:
        if self.stream_of(source["description"]) is None:
            return None
        before, after = (_offset(source.get(key)) for key in ("startOffset", "endOffset"))
        return [after - before]

    def behind(self, entry: dict[str, Any]) -> bool:
        read = {self.stream_of(source["description"]): _offset(source.get("endOffset")) for source in entry["sources"]}
        return any(read.get(stream, count) < count for stream, count in self._placed.items())

    def close(self) -> None:
        """The rows are gone with the sources."""

    def _source(self, session: Any) -> Any:
        """
        Raises:
            MissingName: this release has no such source.
        """
        from py4j.java_gateway import JavaClass

        found = getattr(self._jvm.org.apache.spark.sql.execution.streaming.sources, _SOURCE)
        if not isinstance(found, JavaClass):
            raise MissingName(AttributeError("this release has no {}".format(_SOURCE)))
        clocks = getattr(self._jvm.org.apache.spark.sql.execution.datasources.v2, "LowLatencyClock$")
        getattr(clocks, "MODULE$").setClock(self._jvm.org.apache.spark.util.ManualClock(0))  # noqa: B009 - no Python name
        time = self._jvm.org.apache.spark.util.SystemClock()
        return found(0, session, 1, time, self._jvm.org.apache.spark.sql.Encoders.STRING())

    def _add(self, stream: str, values: list[str]) -> None:
        if values:
            rows = self._jvm.java.util.ArrayList()
            for value in values:
                rows.add(value)
            self._placed[stream] = self._placed.get(stream, 0) + len(values)
            self._sources[stream].addData(0, self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(rows))


def _offset(offset: Any) -> int:
    """Of the only partition; 0 before the first micro-batch."""
    known = json.loads(offset) if isinstance(offset, str) else offset
    return int((known or {}).get("0", 0))
