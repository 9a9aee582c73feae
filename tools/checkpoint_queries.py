"""Runs the queries whose checkpoints the tests read, on the pyspark of the Python that runs it: CPython 3.7 and newer.

    python checkpoint_queries.py FOLDER outer_join-rocksdb …

Writes a checkpoint to FOLDER/outer_join-rocksdb/checkpoint for each name. ``tools.checkpoints`` calls it once for each release.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 — as everybody names it

STATE = "org.apache.spark.sql.execution.streaming.state."
PROVIDERS = {"hdfs": STATE + "HDFSBackedStateStoreProvider", "rocksdb": STATE + "RocksDBStateStoreProvider"}
SETTINGS = {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC", "spark.ui.enabled": "false"}
ARRIVALS = (
    {"clicks": [("a", "2024-01-01 12:00:00")], "orders": [("a", "2024-01-01 12:01:00")]},
    {
        "clicks": [("b", "2024-01-01 12:30:00"), ("a", "2024-01-01 12:31:00")],
        "orders": [("c", "2024-01-01 12:29:00")],
    },
)
"""Stream → the rows that arrive before a start of the query: (id, time)."""


def stream(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    (folder / name).mkdir(parents=True, exist_ok=True)
    schema = f"{name}_id STRING, {name}_time TIMESTAMP"
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", "1").json(str(folder / name))


def clicks_with_watermark(spark: SparkSession, folder: Path) -> DataFrame:
    return stream(spark, folder, "clicks").withWatermark("clicks_time", "10 minutes")


def query(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    if name == "filter_only":
        return stream(spark, folder, "clicks").where("clicks_id <> 'z'")
    clicks = clicks_with_watermark(spark, folder)
    if name == "window_aggregation":
        return clicks.groupBy(F.window("clicks_time", "10 minutes"), "clicks_id").count()
    if name == "session_window":
        return clicks.groupBy(F.session_window("clicks_time", "5 minutes"), "clicks_id").count()
    if name == "deduplication":
        return clicks.dropDuplicates()
    if name == "within_watermark":
        return clicks.dropDuplicatesWithinWatermark(["clicks_id"])
    if name == "outer_join":
        orders = stream(spark, folder, "orders").withWatermark("orders_time", "20 minutes")
        near = "clicks_id = orders_id AND orders_time BETWEEN clicks_time AND clicks_time + INTERVAL 5 MINUTES"
        return clicks.join(orders, F.expr(near), "leftOuter")
    raise ValueError(f"{name} is not a query")


def run(spark: SparkSession, folder: Path, name: str, provider: str) -> None:
    """Start the query twice, each time after new rows."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS[provider])
    frame = query(spark, folder, name)
    for number, arrival in enumerate(ARRIVALS):
        for source, rows in arrival.items():
            (folder / source).mkdir(parents=True, exist_ok=True)
            lines = [json.dumps({f"{source}_id": id_, f"{source}_time": time}) + "\n" for id_, time in rows]
            (folder / source / f"{number}.json").write_text("".join(lines))
        # Spark 2.4 has no format `noop`.
        writer = frame.writeStream.foreachBatch(lambda micro_batch, _: micro_batch.collect() and None)
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        started = writer.start()
        started.processAllAvailable()
        started.stop()


def main(folder: Path, names: list[str]) -> None:
    builder = SparkSession.builder.master("local[1]")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    for query in names:
        name, provider = query.rsplit("-", 1)
        run(spark, folder / query, name, provider)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
