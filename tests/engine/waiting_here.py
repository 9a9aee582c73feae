"""Runs queries that keep state, on the pyspark of the Python that runs it: CPython 3.7 and newer.

    python waiting_here.py FOLDER [CODEC]

Leaves in FOLDER the checkpoint of each query, its progress as ``NAME.jsonl``, the event log in ``events`` (compressed by CODEC), and from
4.0 on ``seen.json``: what Spark's own reader says of each operator's state, as rows, and the first and the last time in them.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 — as everybody names it

ARRIVALS = (
    [("a", "2024-01-01 12:00:00"), ("b", "2024-01-01 12:03:00"), (None, None)],
    [("b", "2024-01-01 12:30:00"), ("a", "2024-01-01 12:31:00")],
    [("c", "2024-01-01 12:33:00"), ("b", "2024-01-01 12:52:00")],
)
"""Rows of each micro-batch: (id, time)."""


def queries(spark: SparkSession, folder: Path) -> dict[str, tuple[DataFrame, str]]:
    """Name → the query and its output mode."""

    def stream(name: str = "t") -> DataFrame:
        read = (
            spark.readStream.schema("id STRING, t TIMESTAMP").option("maxFilesPerTrigger", "1").json(str(folder / "in"))
        )
        return read.withColumnRenamed("t", name).withWatermark(name, "10 minutes")

    tumbling = stream().groupBy(F.window("t", "5 minutes"), "id").count()
    near = "x.id = y.id AND y.u BETWEEN x.t AND x.t + INTERVAL 5 MINUTES"
    made = {
        "windows": (tumbling, "append"),
        "complete": (stream().groupBy(F.window("t", "5 minutes")).count(), "complete"),
        "by_key": (stream().groupBy("id").count(), "update"),
        "by_time": (stream().groupBy("t").count(), "update"),
        "unique": (stream().dropDuplicates(["id", "t"]), "append"),
        "join": (stream().alias("x").join(stream("u").alias("y"), F.expr(near), "leftOuter"), "append"),
        "first": (stream().limit(3), "append"),
    }
    if spark.version >= "3.2":
        made["sessions"] = (stream().groupBy(F.session_window("t", "5 minutes"), "id").count(), "append")
    if spark.version >= "3.5":
        later = F.window(F.window_time("window"), "20 minutes")
        made["within"] = (stream().dropDuplicatesWithinWatermark(["id"]), "append")
        made["twice"] = (tumbling.groupBy(later).agg(F.sum("count").alias("n")), "append")
        made["unique_windows"] = (
            stream().dropDuplicates(["id", "t"]).groupBy(F.window("t", "5 minutes")).count(),
            "append",
        )
    return made


def seen(spark: SparkSession, checkpoint: Path, operator: int, join: bool) -> tuple[int, str | None, str | None]:
    """What Spark's own reader says: rows, the first start of a window or time, and the last end or time."""
    reader = spark.read.format("statestore").option("operatorId", operator)
    parts = (
        [reader.option("joinSide", side).load(str(checkpoint)) for side in ("left", "right")]
        if join
        else [reader.load(str(checkpoint))]
    )
    rows, times = 0, set()
    for row in (row for part in parts for row in part.collect()):
        rows += 1
        for columns in (row["key"], row["value"]):
            for name, value in (columns.asDict(recursive=True) if columns else {}).items():
                if name == "expiresAtMicros":
                    times.add(value // 1000)
                elif isinstance(value, dict):
                    times |= {_ms(value["start"]), _ms(value["end"])}
                elif name in ("t", "u", "window", "field0") and hasattr(value, "timestamp"):
                    times.add(_ms(value))
    return rows, min(times, default=None), max(times, default=None)


def _ms(time) -> int:
    return int(time.timestamp() * 1000)


def main(folder: Path, codec: str = "") -> None:
    (folder / "events").mkdir(parents=True)
    (folder / "in").mkdir()
    for number, rows in enumerate(ARRIVALS):
        lines = [json.dumps({"id": id_, "t": time}) + "\n" for id_, time in rows]
        file = folder / "in" / f"{number}.json"
        file.write_text("".join(lines))
        os.utime(str(file), (number, number))  # files are read in the order of their times
    builder = SparkSession.builder.master("local[1]")
    log = {"enabled": "true", "dir": (folder / "events").as_uri(), "rolling.enabled": str(codec == "rolled").lower()}
    compressed = (
        {"compress": "true", "compression.codec": codec} if codec not in ("", "rolled") else {"compress": "false"}
    )
    settings = {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC", "spark.ui.enabled": "false"}
    for key, value in {
        **settings,
        **{f"spark.eventLog.{key}": value for key, value in {**log, **compressed}.items()},
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    answers = {}
    for name, (frame, mode) in queries(spark, folder).items():
        writer = frame.writeStream.outputMode(mode).format("memory").queryName(name)
        started = writer.option("checkpointLocation", str(folder / name)).start()
        started.processAllAvailable()
        progress = [json.loads(getattr(each, "json", None) or json.dumps(each)) for each in started.recentProgress]
        started.stop()
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in progress))
        if spark.version >= "4":
            operators = sorted(int(path.name) for path in (folder / name / "state").iterdir())
            answers[name] = [seen(spark, folder / name, operator, name == "join") for operator in operators]
    spark.stop()
    (folder / "seen.json").write_text(json.dumps(answers))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
