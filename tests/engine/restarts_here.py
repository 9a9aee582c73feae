"""Runs queries that a restart changes, on the pyspark of the Python that runs it: CPython 3.7 and newer.

    python restarts_here.py FOLDER first|second

The second process goes on with the checkpoints of the first, with another policy for several watermarks. Each appends the progress of its
queries to ``NAME.jsonl`` in FOLDER, and has its event log in ``events``.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime, timedelta
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 — as everybody names it

TOGETHER = 6
"""Files that the first process has read in one micro-batch where the second divides them."""
POLICY = {"first": "min", "second": "max"}


def write(place: Path, minutes: list[int]) -> None:
    """Append a file with a row at each of these minutes after noon; files are read in the order of their times."""
    place.mkdir(exist_ok=True)
    number = len(list(place.iterdir()))
    times = (datetime(2024, 1, 1, 12) + timedelta(minutes=minute) for minute in minutes)
    file = place / f"{number:03}.json"
    file.write_text("".join(json.dumps({"t": str(time)}) + "\n" for time in times))
    os.utime(str(file), (number + 1, number + 1))


def arrive(folder: Path, which: str) -> None:
    """Write the rows that each source has before this process reads them."""
    begin = 0 if which == "first" else 180
    for at in range(0, 60, 20):
        for name in ("x", "y"):
            write(folder / name, [begin + at, begin + at + 10])
    for at in range(0, 180, 30):
        # Read together, no row is late. One file at a time, those are whose window had ended two files before.
        write(folder / "disordered", [begin + at, begin + at + 25, begin + (at - 70 if at > 70 else at)])
        write(folder / "ordered", [begin + at, begin + at + 10, begin + at + 25])


def main(folder: Path, which: str) -> None:
    (folder / "events").mkdir(parents=True, exist_ok=True)
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.sql.streaming.multipleWatermarkPolicy": POLICY[which],
    }
    builder = SparkSession.builder.master("local[1]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    arrive(folder, which)

    def stream(name: str, files: int = 1):
        read = spark.readStream.schema("t TIMESTAMP").option("maxFilesPerTrigger", files)
        return read.json(str(folder / name)).withWatermark("t", "10 minutes")

    limit = TOGETHER if which == "first" else 1
    x, y = stream("x"), stream("y")
    queries = {
        "restart-with-other-order": x.union(y) if which == "first" else y.union(x),
        "restart-with-other-policy": x.union(y),
        "backlog-in-many-batches": stream("disordered", limit),
        "sound-limit": stream("ordered", limit),
    }
    for name, frame in queries.items():
        counts = frame.groupBy(F.window("t", "10 minutes")).count()
        writer = counts.writeStream.outputMode("append").format("noop").queryName(name)
        query = writer.option("checkpointLocation", str(folder / f"{name}-checkpoint")).start()
        query.processAllAvailable()
        with (folder / f"{name}.jsonl").open("a") as file:
            for each in query.recentProgress:
                file.write((" ".join(each.json.split("\n")) if hasattr(each, "json") else json.dumps(each)) + "\n")
        query.stop()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
