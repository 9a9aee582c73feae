"""The state of one attempt with the checksum of another ends the query on Spark 4.1. Needs pyspark alone."""

import pathlib
import subprocess
import sys
import tempfile

from pyspark.sql import SparkSession

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
state, commits = folder / "checkpoint" / "state" / "0" / "0", folder / "checkpoint" / "commits"
spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", "1").getOrCreate()


def run(name, row):
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / name).write_text(row)
    rows = spark.readStream.schema("t TIMESTAMP").json(str(folder / "in")).selectExpr("t", "rand() AS n")
    writer = rows.groupBy("t").agg({"n": "max"}).writeStream.outputMode("update").format("noop")
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    query.processAllAvailable()
    query.stop()


if len(sys.argv) > 1:  # another process, which has no state in memory
    run("2.json", '{"t": "2024-01-01T12:01:00"}')  # 4.1: CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED
    sys.exit(print("it goes on"))
run("1.json", '{"t": "2024-01-01T12:00:00"}')
first = {path: path.read_bytes() for path in (state / "1.delta", state / ".1.delta.crc")}
for name in ("0", ".0.crc"):
    (commits / name).unlink()
run("1.json", '{"t": "2024-01-01T12:00:00"}')  # the micro-batch again
for path, content in first.items():
    path.write_bytes(content)
subprocess.run([sys.executable, __file__, str(folder)])
