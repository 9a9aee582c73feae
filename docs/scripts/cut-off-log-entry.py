"""A torn entry of the offset log ends the query with an error that names no file. Needs pyspark alone."""

import pathlib
import tempfile

from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1).getOrCreate()
folder = pathlib.Path(tempfile.mkdtemp())
(folder / "in").mkdir()
(folder / "in" / "1.json").write_text('{"t": "2024-01-01T12:00:00"}\n')


def run():
    rows = spark.readStream.schema("t TIMESTAMP").json(str(folder / "in"))
    counts = rows.withWatermark("t", "10 minutes").groupBy("t").count()
    writer = counts.writeStream.outputMode("update").format("noop")
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    query.processAllAvailable()
    query.stop()


run()
log = folder / "checkpoint" / "offsets" / "1"
log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])  # what a power failure may leave
(log.parent / f".{log.name}.crc").unlink()  # only local disks have it
run()  # which file is damaged?
