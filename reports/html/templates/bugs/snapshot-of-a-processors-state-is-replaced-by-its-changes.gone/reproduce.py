"""The first snapshot of transformWithState is lost, its changelog is there. Expected: (a, 1), (a, 2), (a, 3)."""

import tempfile
from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StatefulProcessor

PREFIX = "spark.sql.streaming.stateStore"
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


def run(number):
    (folder / "in" / f"{number}.json").write_text('{"key": "a"}')
    counts = rows.groupBy("key").transformWithStateInPandas(Counts(), "key STRING, count BIGINT", "update", "none")
    query = counts.writeStream.foreachBatch(lambda frame, _: print(frame.collect())).outputMode("update")
    query = query.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()


spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1).getOrCreate()
spark.conf.set(f"{PREFIX}.providerClass", PROVIDER)
spark.conf.set(f"{PREFIX}.rocksdb.changelogCheckpointing.enabled", True)
folder = Path(tempfile.mkdtemp())
(folder / "in").mkdir()
rows = spark.readStream.schema("key STRING").json(str(folder / "in"))
run(1)
run(2)
snapshots = [*(folder / "checkpoint" / "state").rglob("*.zip")]
print("deletes", *(path.name for path in snapshots))
for path in snapshots:
    path.unlink()
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
# As in another process, which has no copy of the state.
spark._jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
run(3)
