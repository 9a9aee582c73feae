"""A checkpoint with transformWithState that is moved to another folder. Expected: (a, 1), then (a, 2)."""

import shutil
import tempfile
from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StatefulProcessor

PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Counts(StatefulProcessor):
    def init(self, handle):
        self.count = handle.getValueState("count", "count BIGINT")

    def handleInputRows(self, key, rows, timerValues):
        count = self.count.get()[0] if self.count.exists() else 0
        count += sum(len(frame) for frame in rows)
        self.count.update((count,))
        yield pd.DataFrame({"key": [key[0]], "count": [count]})

    def close(self):
        pass


def run(checkpoint):
    counts = rows.groupBy("key").transformWithStateInPandas(Counts(), "key STRING, count BIGINT", "update", "none")
    query = counts.writeStream.foreachBatch(lambda frame, _: print(frame.collect())).outputMode("update")
    query.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()


spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1).getOrCreate()
spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDER)
folder = Path(tempfile.mkdtemp())
(folder / "in").mkdir()
rows = spark.readStream.schema("key STRING").json(str(folder / "in"))
(folder / "in" / "1.json").write_text('{"key": "a"}')
run(folder / "began")
shutil.move(folder / "began", folder / "moved")
(folder / "in" / "2.json").write_text('{"key": "a"}')
run(folder / "moved")
