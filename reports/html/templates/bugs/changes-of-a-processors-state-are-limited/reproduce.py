"""Two changes of the state of transformWithState where two are allowed. Expected: (a, 1), (a, 2), (a, 3)."""

import tempfile
from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StatefulProcessor

PREFIX = "spark.sql.streaming.stateStore"
PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Counts(StatefulProcessor):
    def __init__(self, *more):
        self.more = more

    def init(self, handle):
        columns = ["count BIGINT", *(f"{name} STRING" for name in self.more)]
        self.count = handle.getValueState("count", ", ".join(columns))

    def handleInputRows(self, key, rows, timerValues):
        count = self.count.get()[0] if self.count.exists() else 0
        count += sum(len(frame) for frame in rows)
        self.count.update((count, *(None for _ in self.more)))
        yield pd.DataFrame({"key": [key[0]], "count": [count]})

    def close(self):
        pass


spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1).getOrCreate()
spark.conf.set(f"{PREFIX}.providerClass", PROVIDER)
spark.conf.set(f"{PREFIX}.encodingFormat", "avro")
spark.conf.set(f"{PREFIX}.valueStateSchemaEvolutionThreshold", 2)
folder = Path(tempfile.mkdtemp())
(folder / "in").mkdir()
rows = spark.readStream.schema("key STRING").json(str(folder / "in"))
for number, processor in enumerate([Counts(), Counts("note"), Counts("note", "more")]):
    (folder / "in" / f"{number}.json").write_text('{"key": "a"}')
    counts = rows.groupBy("key").transformWithStateInPandas(processor, "key STRING, count BIGINT", "update", "none")
    query = counts.writeStream.foreachBatch(lambda frame, _: print(frame.collect())).outputMode("update")
    query = query.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
