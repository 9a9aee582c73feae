"""A lost snapshot of transformWithState ends the query since Spark 4.1. Needs pyspark alone."""

import pathlib
import tempfile

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StatefulProcessor

store = "spark.sql.streaming.stateStore."
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.sql.shuffle.partitions", "1")
    .config(store + "providerClass", "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    .config(store + "rocksdb.changelogCheckpointing.enabled", "true")
    .getOrCreate()
)
folder = pathlib.Path(tempfile.mkdtemp())
(folder / "in").mkdir()


class Count(StatefulProcessor):
    def init(self, handle):
        self.count = handle.getValueState("count", "n INT")

    def handleInputRows(self, key, rows, timers):  # noqa: ARG002, N802 - the names of the API
        self.count.update(((self.count.get()[0] if self.count.exists() else 0) + sum(map(len, rows)),))
        yield pd.DataFrame({"n": [self.count.get()[0]]})

    def close(self):
        pass


def run(number):
    (folder / f"in/{number}.json").write_text('{"k": "a"}\n')
    counted = spark.readStream.schema("k STRING").json(f"{folder}/in").groupBy("k")
    counted = counted.transformWithStateInPandas(Count(), "n INT", "Append", "None")
    writer = counted.writeStream.option("checkpointLocation", f"{folder}/checkpoint")
    query = writer.foreachBatch(lambda frame, id: print(id, frame.collect())).start()
    query.processAllAvailable()
    query.stop()


run(1)
next((folder / "checkpoint/state/0/0").glob("*.zip")).unlink()
run(2)  # fails since 4.1
