"""Rows on their way into the engine as commits to tables: an arrival is one commit, which one micro-batch reads.

A table has the columns of its stream and a BOOLEAN column, true for each row of the case. An arrival without rows is a commit with one
row in which it is false, so that the offset moves; the query does not see that row. Where a query reads the change feed of its table, the
rows of the case that are inserted, or come of an update, are appended. Commits to Delta are an hour apart.
"""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any, Dict, List, NamedTuple, Optional, Type, Union

from .arrivals import FIRST_MODIFIED_S, JSON_OPTIONS, RecordArrivals, read_offset, stream_at
from .files import WritableFiles
from .request import Partitions, StreamRequest

_IS_ROW = "conformance_row"
_FEED = ("_change_type", "_commit_version", "_commit_timestamp")
"""The columns that a change feed has beside those of its table: https://docs.delta.io/delta-change-data-feed/"""


class Commit(NamedTuple):
    """What is appended to the table of a stream: the files with the rows."""

    stream: str
    files: List[str]


class TableArrivals(RecordArrivals):
    """``Arrivals`` as commits to tables below a directory; another process may have made the tables before."""

    def __init__(self, root: str, streams: Dict[str, StreamRequest], files: WritableFiles, spark: Any) -> None:
        self._root = root
        self._streams = streams
        self._files = files
        self._spark = spark
        self._staged = 0
        self._staging = root + "/.commits"
        self._altered = {name for name in streams if files.exists(self.directory(name))}
        """The streams whose tables may have other columns than their streams."""
        files.remove(self._staging)  # of a killed process
        files.make_directory(self._staging)
        self._tables: Dict[str, Union[DeltaTables, IcebergTables]] = {
            name: _FORMATS[str(stream.table)](spark, files) for name, stream in streams.items()
        }
        self._columns = {name: spark.createDataFrame([], stream.ddl).schema for name, stream in streams.items()}
        self.waits = any(stream.options is not None for stream in streams.values())
        self._feeds = {name for name, stream in streams.items() if "readChangeFeed" in (stream.options or {})}
        for name in streams:
            if not files.exists(self.directory(name)):
                self._create(name)

    def directory(self, stream: str) -> str:
        return self._root + "/" + stream

    def read(self, reader: Any, stream: str) -> Any:
        from pyspark.sql import functions as F

        records = self._tables[stream].read(reader, self.directory(stream), self._streams[stream].options)
        records = records.where(_IS_ROW)
        types = {field.name: field.dataType for field in records.schema.fields}
        columns = []
        for field in self._columns[stream].fields:
            column = F.col("`{}`".format(field.name.replace("`", "``")))
            same = types[field.name] == field.dataType
            columns.append(column if same else column.cast(field.dataType).alias(field.name))
        return records.select(columns)

    def stream_of(self, source: Dict[str, Any]) -> Optional[str]:
        return next((name for name, table in self._tables.items() if table.is_read(source, self.directory(name))), None)

    def _records(self, name: str, partitions: Partitions) -> List[Commit]:
        files = []
        for of_partition in partitions:
            gone = ("delete", "update_preimage") if name in self._feeds else ()
            rows = [row for row in of_partition if row.get(_FEED[0]) not in gone]
            if rows:
                files.append(self._write([dict(row, **{_IS_ROW: True}) for row in rows]))
        return [Commit(name, files or [self._write([{_IS_ROW: False}])])]

    def _write(self, rows: List[Dict[str, Any]]) -> str:
        self._staged += 1
        path = "{}/{:06d}.json".format(self._staging, self._staged)
        self._files.write(path, "".join(json.dumps(row) + "\n" for row in rows).encode("utf-8"))
        return path

    def place(self, staged: List[Commit]) -> None:
        for commit in staged:
            table, directory = self._tables[commit.stream], self.directory(commit.stream)
            frame = self._frame(commit.stream, commit.files)
            if commit.stream in self._altered:
                frame = _with_columns(frame, self._spark.read.format(table.name).load(directory).schema)
            table.append(directory, frame)
            table.date(directory)

    def _create(self, stream: str) -> None:
        feed = ["delta.enableChangeDataFeed"] if stream in self._feeds else []
        self._tables[stream].create(self.directory(stream), self._frame(stream, []), **dict.fromkeys(feed, "true"))
        self._tables[stream].date(self.directory(stream))

    def rewrite(self) -> None:
        for name, table in self._tables.items():
            table.rewrite(self.directory(name))

    def age_out(self) -> None:
        """Delete all rows of all tables, and the versions that had them."""
        for name, table in self._tables.items():
            table.age_out(self.directory(name))

    def recreate(self, batch: Dict[str, Partitions]) -> None:
        for name in batch:
            self._altered.discard(name)
            self._files.remove(self.directory(name))
            self._create(name)
        self.place(self.stage([batch]))

    def alter(self, stream: str, ddl: str) -> None:
        self._altered.add(stream)
        table, directory = self._tables[stream], self.directory(stream)
        has = {field.name for field in self._spark.read.format(table.name).load(directory).schema.fields}
        for field in self._spark.createDataFrame([], ddl).schema.fields:
            (table.widen if field.name in has else table.add_column)(directory, field)

    def _frame(self, stream: str, files: List[str]) -> Any:
        """The rows of files, as the source for files reads them."""
        from pyspark.sql.types import BooleanType, StructField, StructType

        feed = _FEED if stream in self._feeds else ()
        fields = [field for field in self._columns[stream].fields if field.name not in feed]
        schema = StructType([*fields, StructField(_IS_ROW, BooleanType())])
        if not files:
            return self._spark.createDataFrame([], schema)
        return self._spark.read.schema(schema).options(**JSON_OPTIONS).json(files)

    def records(self, source: Dict[str, Any]) -> Optional[List[int]]:
        stream = self.stream_of(source)
        if stream is None:
            return None
        table, directory = self._tables[stream], self.directory(stream)
        offsets = [read_offset(source.get(key)) for key in ("startOffset", "endOffset")]
        before, after = (table.commits_before(offset, directory) if offset else 0 for offset in offsets)
        return [after - before]


def _with_columns(frame: Any, schema: Any) -> Any:
    """The frame with the columns of a schema, null where it lacks them."""
    from pyspark.sql import functions as F

    columns = [F.col(field.name) if field.name in frame.columns else F.lit(None) for field in schema.fields]
    return frame.select(
        [column.cast(field.dataType).alias(field.name) for column, field in zip(columns, schema.fields)]
    )


class _Table:
    """Tables of one format."""

    name: str

    def __init__(self, spark: Any, files: WritableFiles) -> None:
        self._spark = spark
        self._files = files

    def append(self, path: str, frame: Any) -> None:
        frame.write.format(self.name).mode("append").save(path)

    def rewrite(self, path: str) -> None:
        """Write all rows again, in a commit that changes rows, if the format can."""

    def date(self, path: str) -> None:
        """Let the newest commit be an hour younger than the one before it, if the format can."""

    def read(self, reader: Any, path: str, options: Optional[Dict[str, str]]) -> Any:
        """The stream of all commits from the first on, or of what the options say."""
        return reader.format(self.name).options(**(options or {})).load(path)


class DeltaTables(_Table):
    """https://docs.delta.io/delta-streaming/"""

    name = "delta"

    def create(self, path: str, frame: Any, **settings: str) -> None:
        """Make an empty table with the columns of a frame without rows."""
        # The times of commits are long past, and old ones stay.
        frame.write.format("delta").options(**settings, **{"delta.enableExpiredLogCleanup": "false"}).save(path)

    def rewrite(self, path: str) -> None:
        self._spark.sql("UPDATE delta.`{0}` SET {1} = {1}".format(path, _IS_ROW))
        self.date(path)

    def date(self, path: str) -> None:
        newest = max(name for name in self._files.names(path + "/_delta_log") if name.endswith(".json"))
        self._files.set_modified("{}/_delta_log/{}".format(path, newest), FIRST_MODIFIED_S + int(newest[:-5]) * 3600)

    def read(self, reader: Any, path: str, options: Optional[Dict[str, str]]) -> Any:
        # Else the first micro-batch reads the table as it is then, whose files have another order than the commits.
        options = {"startingVersion": "0"} if options is None else dict(options)
        if "startingTimestamp" in options:
            time = datetime.fromtimestamp(FIRST_MODIFIED_S + int(options["startingTimestamp"]) * 3600, timezone.utc)
            options["startingTimestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ")
        return super().read(reader, path, options)

    def age_out(self, path: str) -> None:
        """Delete all rows, and the versions that had them, as when their retention has ended.

        https://docs.delta.io/delta-utility/#remove-files-no-longer-referenced-by-a-delta-table
        """
        table = self._spark.sparkContext._jvm.io.delta.tables.DeltaTable.forPath(self._spark._jsparkSession, path)
        table.delete()
        table.vacuum(0.0)

    def add_column(self, path: str, field: Any) -> None:
        """Give the table another column at its end, a ``StructField``: https://docs.delta.io/delta-batch/#update-table-schema"""
        self._alter(path, "ADD COLUMNS (`{}` {})", field)

    def widen(self, path: str, field: Any) -> None:
        """Give a column of the table another type: https://docs.delta.io/delta-type-widening/"""
        self._spark.sql("ALTER TABLE delta.`{}` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')".format(path))
        self._alter(path, "ALTER COLUMN `{}` TYPE {}", field)

    def _alter(self, path: str, change: str, field: Any) -> None:
        text = change.format(field.name, field.dataType.simpleString())
        self._spark.sql("ALTER TABLE delta.`{}` {}".format(path, text))

    def is_read(self, source: Dict[str, Any], path: str) -> bool:
        """Whether a source of a progress entry reads the table."""
        return stream_at(source["description"], str, [path]) is not None

    def commits_before(self, offset: Dict[str, Any], path: str) -> int:
        """How many commits with rows a query has read that has come to an offset.

        Version 0 made the table, and one that adds no file alters it. An offset without the index of a file is before the first file of
        its version.
        """
        version, index = int(offset["reservoirVersion"]), int(offset["index"])
        return sum(self._adds(path, number) for number in range(1, version if index < 0 else version + 1))

    def _adds(self, path: str, version: int) -> bool:
        try:
            return b'"add":' in self._files.read("{}/_delta_log/{:020d}.json".format(path, version))
        except FileNotFoundError:  # of an offset beyond the newest version
            return False


class IcebergTables(_Table):
    """https://iceberg.apache.org/docs/latest/spark-structured-streaming/

    Tables in a directory without a catalog. The first snapshot has no rows, so that every offset names one: its sources have no description
    that says what they read.
    """

    name = "iceberg"

    def __init__(self, spark: Any, files: WritableFiles) -> None:
        super().__init__(spark, files)
        self._iceberg = spark.sparkContext._jvm.org.apache.iceberg
        self._catalog = self._iceberg.hadoop.HadoopTables(spark.sparkContext._jsc.hadoopConfiguration())

    def create(self, path: str, frame: Any, **settings: str) -> None:
        schema = self._iceberg.spark.SparkSchemaUtil.convert(frame._jdf.schema())
        # Snapshots of the first version of the format have no numbers.
        settings = {"format-version": "2", **settings}
        table = self._catalog.create(schema, self._iceberg.PartitionSpec.unpartitioned(), settings, path)
        table.newAppend().commit()

    def read(self, reader: Any, path: str, options: Optional[Dict[str, str]]) -> Any:
        given = {_OF_ICEBERG[key]: value for key, value in (options or {}).items()}
        for key in given.keys() & {"stream-from-timestamp"}:
            snapshots = self._catalog.load(path).snapshots()
            given[key] = str(
                next(at.timestampMillis() for at in snapshots if at.sequenceNumber() == int(given[key]) + 1)
            )
        return super().read(reader, path, given)

    def age_out(self, path: str) -> None:
        """https://iceberg.apache.org/docs/latest/maintenance/#expire-snapshots"""
        table = self._catalog.load(path)
        table.newDelete().deleteFromRowFilter(self._iceberg.expressions.Expressions.alwaysTrue()).commit()
        newest = table.currentSnapshot().timestampMillis()
        table.expireSnapshots().expireOlderThan(newest).retainLast(1).commit()

    def add_column(self, path: str, field: Any) -> None:
        """https://iceberg.apache.org/docs/latest/evolution/#schema-evolution"""
        self._catalog.load(path).updateSchema().addColumn(field.name, self._type(field)).commit()

    def widen(self, path: str, field: Any) -> None:
        self._catalog.load(path).updateSchema().updateColumn(field.name, self._type(field)).commit()

    def _type(self, field: Any) -> Any:
        schema = self._spark.createDataFrame([], field.name + " " + field.dataType.simpleString())._jdf.schema()
        return self._iceberg.spark.SparkSchemaUtil.convert(schema).findType(field.name)

    def is_read(self, source: Dict[str, Any], path: str) -> bool:
        return self._snapshot(read_offset(source.get("endOffset")), path) is not None

    def commits_before(self, offset: Dict[str, Any], path: str) -> int:
        """The snapshot with number 1 made the table. An offset has the number of files of its snapshot that were read."""
        number = int(self._snapshot(offset, path).sequenceNumber())
        return max(number - 1 if int(offset["position"]) > 0 else number - 2, 0)

    def _snapshot(self, offset: Dict[str, Any], path: str) -> Any:
        """The snapshot of an offset; None if it is of another table."""
        return self._catalog.load(path).snapshot(int(offset["snapshot_id"])) if "snapshot_id" in offset else None


_OF_ICEBERG = {
    "startingTimestamp": "stream-from-timestamp",
    "maxFilesPerTrigger": "streaming-max-files-per-micro-batch",
}
_FORMATS: Dict[str, Union[Type[DeltaTables], Type[IcebergTables]]] = {"delta": DeltaTables, "iceberg": IcebergTables}
