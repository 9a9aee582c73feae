"""What each micro-batch emitted, keyed by batch id, also of real-time queries."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any, Callable, Iterator

from .kill_point import Breakpoint
from .sinks import DirectorySink
from .values import collected, encode_row


class Capture:
    """What each micro-batch of one run of a query emitted."""

    breakpoint: Breakpoint | None = None
    sink: Callable[[Any, int], None] | None = None
    """Gets each micro-batch first: the rows are kept of the partitions that it reads, and no others are computed."""
    read_in_part: list[int] = []
    """Gets the ids of stateful micro-batches of which ``sink`` reads a partition in part: Spark does not commit its state then."""
    running: Callable[[], None] | None = None
    """Called while a micro-batch runs, before its rows are kept."""
    digests = False
    """Whether to keep, in place of the rows of a micro-batch, one that says how many they are, and their digest."""

    def attach(self, writer: Any, schema: Any) -> Any:
        """Let a ``DataStreamWriter`` of rows with this schema write here; returns the writer."""
        raise NotImplementedError

    def rows(self, batch_id: int) -> list[list[Any]]:
        """The rows of a micro-batch as lists of JSON values."""
        raise NotImplementedError

    def error(self) -> Exception | None:
        """What the last micro-batch failed with inside ``foreachBatch``."""
        return None


class SinkCapture(Capture):
    """What a query emitted, as a reader finds it in its sink."""

    def __init__(self, sink: DirectorySink) -> None:
        self.written = sink

    def attach(self, writer: Any, schema: Any) -> Any:
        self.written.prepare(schema)
        return writer.format(self.written.format).option("path", self.written.path)

    def rows(self, batch_id: int) -> list[list[Any]]:
        return self.written.content().get(batch_id, [])


class RowWriter:
    """Writes rows for ``foreach``, in a worker: one file for each task."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file: Any = None

    def open(self, partition: int, batch_id: int) -> bool:
        self._file = tempfile.NamedTemporaryFile(
            dir=self._folder, prefix="{}-{}-".format(batch_id, partition), delete=False
        )
        return True

    def process(self, row: Any) -> None:
        pickle.dump(tuple(row), self._file)
        self._file.flush()

    def close(self, _error: Any) -> None:
        if self._file is not None:
            self._file.close()


class RealTimeCapture(Capture):
    """The capture of a real-time query. ``folder``: a directory on this machine for the rows."""

    def __init__(self, folder: str) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._folder = tempfile.mkdtemp(dir=folder)
        self._schema: Any = None

    def attach(self, writer: Any, schema: Any) -> Any:
        self._schema = schema
        # So that the logs are written when the progress says that the micro-batch is over.
        return writer.foreach(RowWriter(self._folder)).option("asyncProgressTrackingEnabled", "false")

    def rows(self, batch_id: int) -> list[list[Any]]:
        files = sorted(Path(self._folder).glob("{}-*".format(batch_id)))
        return [encode_row(row, self._schema) for file in files for row in _unpickled(file)]


def _unpickled(file: Path) -> Iterator[Any]:
    with file.open("rb") as content:
        while True:
            try:
                row = pickle.load(content)
            except EOFError:
                return
            yield row


class LocalCapture(Capture):
    """The rows that ``foreachBatch`` is given in this process, in no-data batches too. ``emitted``: called before the commit of each."""

    def __init__(self, emitted: Callable[[int, list[list[Any]]], None] | None = None) -> None:
        self._rows: dict[int, list[list[Any]]] = {}
        self._emitted = emitted
        self._error: Exception | None = None

    def function(self, frame: Any, batch_id: int) -> None:
        stop = self.breakpoint
        try:
            point = stop.point_in(batch_id) if stop else None
            if stop and point == "planned":
                stop.block_forever()
            if stop and point == "running":
                _run_one_partition(frame)
                stop.block_forever()
            if self.running is not None:
                self.running()
            if self.sink is None:
                self._keep(frame, batch_id)
            else:
                self._write(self.sink, frame, batch_id)
            if stop and point == "emitted":
                stop.block_forever()
            if stop and point == "committed":
                stop.reached.set()
                stop.resume.wait()
        except Exception as error:
            self._error = error  # Spark passes it on as text only
            raise

    def _write(self, sink: Callable[[Any, int], None], frame: Any, batch_id: int) -> None:
        """Give a micro-batch to a sink, and keep the rows of the partitions that it reads.

        To collect all rows would compute the other partitions, too, and commit their state, which Spark misses without that.
        """
        from pyspark.sql import functions as F

        planned, schema, spark = frame._jdf.queryExecution().toRdd(), frame._jdf.schema(), frame._jdf.sparkSession()
        session = getattr(frame, "sparkSession", None) or frame.sql_ctx  # up to 3.2
        named = frame.toDF(*("c{}".format(place) for place in range(len(frame.columns))))  # names may be there twice
        # A partition, and with it its state, is computed once, however often the sink reads it.
        kept = named.withColumn("id", F.monotonically_increasing_id()).persist()
        newest = "max(CASE WHEN shiftright(id, 33) = {} THEN id END)"  # 3.0 cannot observe a set
        ids = [F.expr(newest.format(index)).alias(str(index))._jc for index in range(planned.getNumPartitions())]
        observed = kept._jdf.observe("read", F.count("id")._jc, frame._jseq(ids)).drop("id").queryExecution()

        def of_rows(rows: Any) -> Any:
            # As in a micro-batch of Spark's, no plan is seen, and what the sink persists or releases is its own.
            return type(frame)(spark.internalCreateDataFrame(rows, schema, False), session)

        try:
            sink(of_rows(observed.toRdd()), batch_id)
        finally:
            read = observed.observedMetrics().get("read").get().mkString(",").split(",")[1:]
            rows_read = {index: int(id) % 2**33 + 1 for index, id in enumerate(read) if id != "null"}
            only = frame._jseq(list(rows_read)).toSet()
            pruned = frame._sc._jvm.org.apache.spark.rdd.PartitionPruningRDD.create(observed.toRdd(), only)
            self._keep(of_rows(pruned), batch_id)
            if "StateStore" in planned.toDebugString() and pruned.count() > sum(rows_read.values()):
                self.read_in_part.append(batch_id)
            kept.unpersist()

    def _keep(self, frame: Any, batch_id: int) -> None:
        # Collect even empty output: a stateful query whose output nobody reads commits no state (4.1 and newer say so).
        self._rows[batch_id] = digest(frame) if self.digests else collected(frame)
        if self._emitted is not None:
            self._emitted(batch_id, self._rows[batch_id])

    def attach(self, writer: Any, _schema: Any) -> Any:
        return writer.foreachBatch(self.function)

    def rows(self, batch_id: int) -> list[list[Any]]:
        return self._rows.get(batch_id, [])

    def error(self) -> Exception | None:
        return self._error


def digest(frame: Any) -> list[list[Any]]:
    """How many rows a frame has, and a digest that does not depend on their order, as one row; none without rows."""
    from pyspark.sql import functions as F

    # Names may be there twice.
    named = frame.toDF(*("c{}".format(place) for place in range(len(frame.columns))))
    fields = named.schema.fields
    numbered = named.select(*(F.col(field.name).cast(_numbered(field.dataType)).alias(field.name) for field in fields))
    row = "xxhash64(concat({}))".format(", ',', ".join(_text(field.name, field.dataType) for field in fields))
    hashes = numbered.select(F.expr(row).cast("decimal(20,0)").alias("hash"))
    ((count, total),) = hashes.agg(F.count("hash"), F.sum("hash")).collect()
    return [["{} rows".format(count), "digest {}".format(total)]] if count else []


def _numbered(type: Any) -> Any:
    """The type, with fields of structs named by their places: a name may be there twice."""
    from pyspark.sql import types as t

    if isinstance(type, t.StructType):
        fields = enumerate(type.fields)
        return t.StructType([t.StructField("f{}".format(place), _numbered(field.dataType)) for place, field in fields])
    if isinstance(type, t.ArrayType):
        return t.ArrayType(_numbered(type.elementType))
    if isinstance(type, t.MapType):
        return t.MapType(_numbered(type.keyType), _numbered(type.valueType))
    return type


def _text(value: str, type: Any, depth: int = 0) -> str:
    """The SQL of a text that differs for each value of a type, null too: one of a value, of which Spark's hashes say nothing of null, of
    what an array or a struct has in it, and of the sign of a zero. Integers of all sizes are compared."""
    from pyspark.sql import types as t

    item = "x{}".format(depth)
    if isinstance(type, t.StructType):
        fields = [_text("{}.f{}".format(value, at), field.dataType, depth) for at, field in enumerate(type.fields)]
        text = "concat('(', {}, ')')".format(", ',', ".join(fields) or "''")
    elif isinstance(type, t.ArrayType):
        text = "concat('[', array_join(transform({}, {} -> {}), ','), ']')".format(
            value, item, _text(item, type.elementType, depth + 1)
        )
    elif isinstance(type, t.MapType):
        parts = (
            _text("{}.{}".format(item, part), of, depth + 1)
            for part, of in (("key", type.keyType), ("value", type.valueType))
        )
        entries = "transform(map_entries({}), {} -> concat({}))".format(value, item, ", ':', ".join(parts))
        text = "concat('{{', array_join(array_sort({}), ','), '}}')".format(entries)
    elif isinstance(type, (t.FloatType, t.DoubleType)):
        # Versions differ in whether both zeros have one hash.
        text = "if({0} = 0, cast({0} as string), cast(xxhash64({0}) as string))".format(value)
    else:
        text = "cast(xxhash64({}) as string)".format(_hashed(value, type))
    return "if({} is null, 'n', {})".format(value, text)


def _hashed(value: str, type: Any) -> str:
    """The SQL of a value as a type of which other values have other hashes, and equal values of other sizes the same."""
    from pyspark.sql import types as t

    if isinstance(type, (t.ByteType, t.ShortType, t.IntegerType)):
        return "cast({} as bigint)".format(value)
    if isinstance(type, t.StringType):
        return "cast({} as binary)".format(value)  # whatever its collation
    if isinstance(type, t.DecimalType):
        return "{1}, cast({0} as decimal(38,{1}))".format(value, type.scale)
    if type.typeName() == "variant":
        return "to_json({0}), schema_of_variant({0})".format(value)
    return value


def _run_one_partition(frame: Any) -> None:
    """Run only the first partition of the micro-batch, so that it writes its state."""
    rows = frame.rdd
    rows.context.runJob(rows, lambda partition: [sum(1 for _ in partition)], [0])
