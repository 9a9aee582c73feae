"""Rows on their way into the engine through Kafka: one record a row, in the partitions of a topic.

An arrival without rows is a record without a value, which no row comes of: its offset moves, as that of an empty file does.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from .arrivals import JSON_OPTIONS, FileArrivals
from .kafka import Broker, Record
from .memory_arrivals import MemoryArrivals
from .progress import milliseconds
from .request import Batch, Stream

_TIMESTAMP = "__timestamp"
_SUBSCRIBED = re.compile(r"Subscribe\[(.+?)\]")
_CONNECTOR = {
    "startingOffsets": "earliest",
    # Otherwise the broker answers a fetch that finds nothing only after half a second.
    "kafka.fetch.max.wait.ms": "1",
}


class TopicArrivals:
    """``Arrivals`` as records. ``folder``: names the topics, which exist already if another process ran earlier steps there."""

    paced = False

    def __init__(self, folder: str, streams: dict[str, Stream], broker: Broker) -> None:
        self._streams = streams
        self._broker = broker
        place = hashlib.sha256(folder.encode("utf-8")).hexdigest()[:16]
        self._topics = {name: "conformance-{}-{}".format(place, name) for name in streams}
        for name, stream in streams.items():
            broker.create(self._topics[name], _partitions(stream))

    def has(self, stream: str) -> bool:
        return stream in self._streams

    def stream_of(self, description: str) -> str | None:
        found = _SUBSCRIBED.search(description)
        return next((name for name, topic in self._topics.items() if found and topic == found.group(1)), None)

    def read(self, reader: Any, stream: str) -> Any:
        from pyspark.sql import functions as F

        declared = self._streams[stream]
        records = (
            reader.format("kafka")
            .option("kafka.bootstrap.servers", self._broker.servers)
            .option("subscribe", self._topics[stream])
            .options(**_CONNECTOR, **((declared.topic and declared.topic.options) or {}))
            .load()
            .where("value IS NOT NULL")
        )
        value = F.from_json(F.col("value").cast("string"), declared.ddl, JSON_OPTIONS)
        column = declared.topic.timestamp if declared.topic else None
        if column is None:
            return records.select(value.alias("row")).select("row.*")
        rows = records.select(value.alias("row"), F.col("timestamp").alias(_TIMESTAMP)).select("row.*", _TIMESTAMP)
        return rows.withColumn(column, F.col(_TIMESTAMP)).drop(_TIMESTAMP)

    def stage(self, batches: list[Batch]) -> list[Record]:
        return [
            record
            for batch in batches
            for name, partitions in batch.items()
            if name in self._streams
            for record in self._records(name, partitions)
        ]

    def place(self, staged: list[Record]) -> None:
        self._broker.send(staged)

    def renew(self, arrived: list[Batch]) -> None:
        for name, stream in self._streams.items():
            self._broker.replace(self._topics[name], _partitions(stream))
        self.place(self.stage(arrived))

    def grow(self, stream: str, partitions: int) -> None:
        self._broker.grow(self._topics[stream], partitions)

    def age_out(self) -> None:
        for topic in self._topics.values():
            self._broker.age_out(topic)

    def records(self, source: dict[str, Any]) -> list[int] | None:
        stream = self.stream_of(source["description"])
        if stream is None:
            return None
        topic = self._topics[stream]
        before, after = (_offsets(source.get(key), topic) for key in ("startOffset", "endOffset"))
        return [after.get(at, 0) - before.get(at, 0) for at in range(max(after, default=-1) + 1)]

    def behind(self, _entry: dict[str, Any]) -> bool:
        return False

    def close(self) -> None:
        self._broker.delete(sorted(self._topics.values()))

    def _records(self, name: str, partitions: list[list[dict[str, Any]]]) -> list[Record]:
        topic, declared = self._topics[name], self._streams[name].topic
        column = declared.timestamp if declared else None
        found = []
        for partition, rows in enumerate(partitions):
            for row in rows:
                timestamp = milliseconds(row[column]) if column else None
                value = {key: one for key, one in row.items() if key != column}
                found.append(Record(topic, partition, timestamp, json.dumps(value)))
        return found or [Record(topic, 0, None, None)]


class MixedArrivals:
    """``Arrivals`` of which some are files and others records, of topics or in memory."""

    paced = False

    def __init__(self, files: FileArrivals, records: TopicArrivals | MemoryArrivals) -> None:
        self._files = files
        self._records: Any = records

    def stream_of(self, description: str) -> str | None:
        return self._records.stream_of(description) or self._files.stream_of(description)

    def read(self, reader: Any, stream: str) -> Any:
        return (self._records if self._records.has(stream) else self._files).read(reader, stream)

    def stage(self, batches: list[Batch]) -> tuple[Any, Any]:
        of_files = [{name: rows for name, rows in batch.items() if not self._records.has(name)} for batch in batches]
        return self._files.stage(of_files), self._records.stage(batches)

    def place(self, staged: tuple[Any, Any]) -> None:
        self._files.place(staged[0])
        self._records.place(staged[1])

    def renew(self, arrived: list[Batch]) -> None:
        self._records.renew(arrived)

    def grow(self, stream: str, partitions: int) -> None:
        self._records.grow(stream, partitions)

    def age_out(self) -> None:
        self._records.age_out()

    def records(self, source: dict[str, Any]) -> list[int] | None:
        found: list[int] | None = self._records.records(source)
        return found

    def behind(self, entry: dict[str, Any]) -> bool:
        return bool(self._records.behind(entry))

    def close(self) -> None:
        self._records.close()


def _partitions(stream: Stream) -> int:
    return stream.topic.partitions if stream.topic else 1


def _offsets(offset: Any, topic: str) -> dict[int, int]:
    """By partition; nothing before the first micro-batch. Spark 3.0 reports text."""
    known = json.loads(offset) if isinstance(offset, str) else offset
    return {int(partition): int(at) for partition, at in ((known or {}).get(topic) or {}).items()}
