"""Runs a processor with three variables and timers, on the pyspark of the Python that runs it, 4.0 and newer.

    python variables_here.py FOLDER

Leaves its checkpoint in FOLDER/checkpoint: the watermark of the next micro-batch, which has not run, is 12:11.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StatefulProcessor

ARRIVALS = (
    [("a", "2024-01-01 12:00:00"), ("b", "2024-01-01 12:03:00")],
    [("b", "2024-01-01 12:20:00"), ("c", "2024-01-01 12:21:00")],
)
"""Rows of each micro-batch: (id, time)."""
STREAMING = "spark.sql.streaming."
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    f"{STREAMING}noDataMicroBatches.enabled": "false",
    f"{STREAMING}stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}


class Counts(StatefulProcessor):
    """Keeps the number of rows, their times as a list, and each text with its number; a timer ten minutes after each row."""

    def init(self, handle) -> None:
        self.handle = handle
        self.number = handle.getValueState("number", "n INT")
        self.times = handle.getListState("times", "t TIMESTAMP")
        self.texts = handle.getMapState("texts", "text STRING", "n INT")

    def handleInputRows(self, key, rows, timerValues) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 — Spark's names
        for time in (time for frame in rows for time in frame["t"]):
            self.times.appendValue((time,))
            self.texts.updateValue((str(time),), (1,))
            self.number.update((1,))
            self.handle.registerTimer(int(time.timestamp() * 1000) + 600_000)
        yield pd.DataFrame({"id": [key[0]]})

    def close(self) -> None:
        pass


def main(folder: Path) -> None:
    (folder / "in").mkdir(parents=True)
    builder = SparkSession.builder.master("local[1]")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    rows = spark.readStream.schema("id STRING, t TIMESTAMP").json(str(folder / "in")).withWatermark("t", "10 minutes")
    counts = rows.groupBy("id").transformWithStateInPandas(Counts(), "id STRING", "Append", "EventTime")
    started = counts.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint")).start()
    for number, arrived in enumerate(ARRIVALS):
        lines = [json.dumps({"id": id_, "t": time}) + "\n" for id_, time in arrived]
        (folder / "in" / f"{number}.json").write_text("".join(lines))
        started.processAllAvailable()
    started.stop()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
