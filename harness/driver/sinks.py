"""Sinks of Spark's own into which a query writes: files with their log, and tables. What a reader finds there is what the query emitted.

Each sink has a log that says which micro-batch added which files: https://spark.apache.org/docs/latest/streaming/apis-on-dataframes-and-datasets.html#output-sinks
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Callable, Dict, List, Optional, Tuple

from .files import WritableFiles
from .tables import IcebergTables

_FILE = "conformance_file"
"""The column that a reader of a sink gets beside those of the query."""
_NO_BATCH = -1


class RowsChanged(Exception):
    """A reader finds other rows of a micro-batch in the sink than it found before, or rows of none."""


class SinkUnreadable(Exception):
    """The sink cannot be read as it should be; ``cause``: what says so."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class DirectorySink:
    """A sink that Spark itself writes, in a directory."""

    format: str
    log: str
    file = "input_file_name()"

    def __init__(self, path: str, files: WritableFiles, session: Any) -> None:
        self.path = path
        self.appends = True
        """Whether what it has stays: not of a query in complete mode."""
        self._files = files
        self._session = session
        self._schema: Any = None
        self._read: Tuple[List[str], Dict[int, List[List[Any]]]] = ([], {})
        """The files of the log, and the rows of each micro-batch that a reader found then."""

    def prepare(self, schema: Any) -> None:
        """Make ready for rows with this schema."""
        self._schema = schema

    def content(self) -> Dict[int, List[List[Any]]]:
        """The rows that a reader finds, by the micro-batch that wrote them.

        Raises:
            SinkUnreadable: the reader fails, or finds other rows of a micro-batch than before, though the query only appends.
        """
        files, before = self._read
        now = self._names()
        if now == files:
            return before
        try:
            content = self._found()
        except Exception as error:
            raise SinkUnreadable(error) from error
        if _NO_BATCH in content:
            strange = "a reader of the sink finds rows of no micro-batch: {}".format(content[_NO_BATCH])
            raise SinkUnreadable(RowsChanged(strange))
        changed = [batch for batch, rows in before.items() if _sorted(rows) != _sorted(content.get(batch, []))]
        if self.appends and changed:
            first, text = changed[0], "micro-batch {} had the rows {} in the sink, and a reader now finds {}"
            raise SinkUnreadable(RowsChanged(text.format(first, before[first], content.get(first, []))))
        self._read = (now, content)
        return content

    def remove_log(self) -> None:
        self._files.remove(self.path + "/" + self.log)

    def batches(self) -> Dict[str, int]:
        """The micro-batch of each file, by the name of the file."""
        raise NotImplementedError

    def reader(self) -> Any:
        return self._session.read.format(self.format)

    def _found(self) -> Dict[int, List[List[Any]]]:
        from pyspark.sql import functions as F

        from .values import encode_row

        of_file = self.batches()
        content: Dict[int, List[List[Any]]] = {}
        frame = self.reader().load(self.path)
        columns = [F.col("`{}`".format(field.name.replace("`", "``"))) for field in self._schema.fields]
        for row in frame.select(*columns, F.expr(self.file).alias(_FILE)).collect():
            batch = of_file.get(row[-1].rpartition("/")[2], _NO_BATCH)
            content.setdefault(batch, []).append(encode_row(row[:-1], self._schema))
        return content

    def _names(self) -> List[str]:
        folder = self.path + "/" + self.log
        return sorted(self._files.names(folder)) if self._files.exists(folder) else []

    def _entries(self) -> List[str]:
        """The names of the entries of the log, without checksums and what is being written."""
        return [name for name in self._names() if not name.startswith((".", "_"))]

    def _lines(self, name: str) -> List[Dict[str, Any]]:
        """The JSON objects in an entry of the log, a line each; without a torn one, of which only Spark decides what it means."""
        text = self._files.read("{}/{}/{}".format(self.path, self.log, name)).decode("utf-8")
        objects = []
        for line in text.splitlines():
            with suppress(ValueError):
                objects += [json.loads(line)] if line.startswith("{") else []
        return objects


def _sorted(rows: List[List[Any]]) -> List[str]:
    return sorted(map(str, rows))


class FileSink(DirectorySink):
    """Parquet files. A reader reads the files that the log ``_spark_metadata`` lists, or all files without this log."""

    format = "parquet"
    log = "_spark_metadata"

    def reader(self) -> Any:
        return super().reader().schema(self._schema)

    def batches(self) -> Dict[str, int]:
        """An entry ``9.compact`` has those before it, too."""
        of_file: Dict[str, int] = {}
        for batch, name in sorted((int(name.partition(".")[0]), name) for name in self._entries()):
            for entry in self._lines(name):
                of_file.setdefault(entry["path"].rpartition("/")[2], batch)
        return of_file


class DeltaSink(DirectorySink):
    """https://docs.delta.io/delta-streaming/#delta-table-as-a-sink: each commit of a query has a transaction with its micro-batch."""

    format = "delta"
    log = "_delta_log"

    def batches(self) -> Dict[str, int]:
        of_file: Dict[str, int] = {}
        for name in self._entries():
            actions = self._lines(name) if name.endswith(".json") else []
            for batch in [int(action["txn"]["version"]) for action in actions if "txn" in action]:
                of_file.update(
                    {action["add"]["path"].rpartition("/")[2]: batch for action in actions if "add" in action}
                )
        return of_file


class IcebergSink(DirectorySink):
    """https://iceberg.apache.org/docs/latest/spark-structured-streaming/: the summary of each snapshot of a query names its micro-batch."""

    format = "iceberg"
    log = "metadata"
    file = "_file"

    def prepare(self, schema: Any) -> None:
        super().prepare(schema)
        if not self._files.exists(self.path):
            IcebergTables(self._session, self._files).create(self.path, self._session.createDataFrame([], schema))

    def batches(self) -> Dict[str, int]:
        written = "summary['spark.sql.streaming.epochId'] AS batch"
        snapshots = self.reader().load(self.path + "#snapshots").selectExpr("snapshot_id", written).collect()
        of_snapshot = {row.snapshot_id: int(row.batch) for row in snapshots if row.batch is not None}
        entries = self.reader().load(self.path + "#entries").selectExpr("snapshot_id", "data_file.file_path AS path")
        return {row.path.rpartition("/")[2]: of_snapshot.get(row.snapshot_id, _NO_BATCH) for row in entries.collect()}


SINKS: Dict[Optional[str], Callable[..., DirectorySink]] = {
    "files": FileSink,
    "delta": DeltaSink,
    "iceberg": IcebergSink,
}
