"""An inner join whose event time has two names fails after a restart, up to Spark 4.2. Needs pyspark alone."""

import pathlib
import tempfile

from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1).getOrCreate()
folder = pathlib.Path(tempfile.mkdtemp())
for name in ("points", "spans"):
    (folder / name).mkdir()


def run():
    points = spark.readStream.schema("at TIMESTAMP").json(str(folder / "points")).selectExpr("at", "at AS v1")
    spans = spark.readStream.schema("begins TIMESTAMP, ends TIMESTAMP").json(str(folder / "spans"))
    spans = spans.selectExpr("begins", "begins AS start2", "ends").withWatermark("begins", "0 seconds")
    joined = points.withWatermark("at", "0 seconds").join(spans, expr("v1 >= start2 AND v1 < ends AND at = begins"))
    query = joined.writeStream.format("console").option("checkpointLocation", str(folder / "checkpoint")).start()
    query.processAllAvailable()
    query.stop()


(folder / "points/1.json").write_text('{"at": "2026-01-01T00:00:01Z"}\n')
run()
(folder / "spans/1.json").write_text('{"begins": "2026-01-01T00:00:01Z", "ends": "2026-01-01T00:00:02Z"}\n')
run()  # fails; 4.3.0 emits the pair
