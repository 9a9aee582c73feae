"""The stream, the layout of a soak's folder, and the query over it: a count of rows per event-time window, in append mode.

Rows are out of order, some late, derived from one seed; files in order of arrival. The query resumes from the checkpoint if there is one.
"""

from __future__ import annotations

import json
import os
import time
from concurrent import futures
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from harness.driver.errors import DriverFailure
from harness.driver.progress import executed
from harness.driver.request import milliseconds

if TYPE_CHECKING:
    from harness.driver.classic import Classic

_POLL_S = 0.1
INPUT, CHECKPOINT, OUTPUT, PROGRESS = "input", "checkpoint", "output", "progress"
SCHEMA = "id BIGINT, event_time TIMESTAMP, sensor INT"

_BEGIN_S = 1704067200
"""2024-01-01, in seconds since the epoch."""
_FAR_S = 86400
"""How far ahead of all others the last row is: it closes every window but its own."""

# Of a hundred rows, ninety are up to one micro-batch out of order, nine up to four, one up to twelve: with a delay as long as a
# micro-batch, some of the last ten are late. Whole seconds, so that the watermark often equals the end of a window.
_ROW = """
  {begin} + id * {span} div {rows_a_batch}
  - CASE WHEN pmod(xxhash64(id, {seed}, 1), 100) < 90 THEN pmod(xxhash64(id, {seed}, 2), {span})
         WHEN pmod(xxhash64(id, {seed}, 1), 100) < 99 THEN pmod(xxhash64(id, {seed}, 2), 4 * {span})
         ELSE pmod(xxhash64(id, {seed}, 2), 12 * {span}) END
"""


class SoakStream(NamedTuple):
    """``tools/soak/engine.py`` describes the fields."""

    rows: int
    seed: int
    batches: int
    files: int
    span_s: int
    delay_s: int
    window_s: int
    sensors: int


def uri(*parts: str) -> str:
    """A path for Spark: a folder that all machines share, regardless of the cluster's default file system."""
    return "file://" + os.path.join(*parts)


def attempt_at(folder: str, batch: object, attempt: object) -> str:
    """The output of one attempt at a micro-batch, as JSON lines. Spark reads ``batch`` and ``attempt`` from the path; ``*`` is any."""
    return os.path.join(folder, OUTPUT, "batch={}".format(batch), "attempt={}".format(attempt))


def generate(spark: Any, folder: str, stream: SoakStream) -> None:
    """Write all files of the stream. A row depends on its number and the seed only, not on the number of files or tasks."""
    files = stream.batches * stream.files
    numbers = {
        "begin": "{}L".format(_BEGIN_S),
        "span": "{}L".format(stream.span_s),
        "seed": "{}L".format(stream.seed),
        "rows_a_batch": "{}L".format(max(1, stream.rows // stream.batches)),
    }
    rows = spark.range(0, stream.rows - 1, 1, files).selectExpr(
        "id",
        "CAST({} AS TIMESTAMP) AS event_time".format(_ROW.format(**numbers)),
        "CAST(pmod(xxhash64(id, {}, 3), {}) AS INT) AS sensor".format(numbers["seed"], stream.sensors),
    )
    closing = spark.range(stream.rows - 1, stream.rows, 1, 1).selectExpr(
        "id",
        "CAST({begin} + id * {span} div {rows_a_batch} + {far}L AS TIMESTAMP) AS event_time".format(
            far=_FAR_S, **numbers
        ),
        "0 AS sensor",
    )
    made = os.path.join(folder, "." + INPUT)
    rows.union(closing).write.parquet(uri(made))
    # Sources read files in the order of their modification times, which must not depend on how fast we write them.
    yesterday = int(time.time()) - 86400
    for number, name in enumerate(sorted(name for name in os.listdir(made) if name.startswith("part-"))):
        os.utime(os.path.join(made, name), (yesterday + number, yesterday + number))
    os.rename(made, os.path.join(folder, INPUT))


def run(engine: Classic, folder: str, stream: SoakStream, attempt: int, send: Callable[..., None]) -> None:
    """Run the query until it has read everything. ``attempt``: of this engine, from 0; ``send``: takes the kind and fields of a message."""
    from pyspark.sql.functions import col, window

    def sink(frame: Any, batch: int) -> None:
        frame.write.json(uri(attempt_at(folder, batch, attempt)))
        send("emitted", batch=batch)

    rows = engine.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", stream.files)
    counted = (
        rows.parquet(uri(folder, INPUT))
        .withWatermark("event_time", "{} seconds".format(stream.delay_s))
        .groupBy(window("event_time", "{} seconds".format(stream.window_s)), col("sensor"))
        .count()
        .selectExpr("window.end AS window_end", "sensor", "count AS total")
    )
    query = (
        counted.writeStream.outputMode("append")
        .option("checkpointLocation", uri(folder, CHECKPOINT))
        .foreachBatch(sink)
        .start()
    )
    os.makedirs(os.path.join(folder, PROGRESS), exist_ok=True)
    with open(os.path.join(folder, PROGRESS, "{}.jsonl".format(attempt)), "w", encoding="utf-8") as progress:
        _follow(engine, query, progress, send)
    query.stop()


def _follow(engine: Classic, query: Any, progress: Any, send: Callable[..., None]) -> None:
    waiting = futures.ThreadPoolExecutor(1).submit(query.processAllAvailable)
    known = 0
    while True:
        over = waiting.done()
        entries, known = engine.recent(query, known)
        for entry in executed(entries):
            progress.write(json.dumps(entry) + "\n")
            progress.flush()
            watermark = entry.get("eventTime", {}).get("watermark")
            send(
                "progressed",
                batch=entry["batchId"],
                rows=entry["numInputRows"],
                watermark=watermark and milliseconds(watermark),
                ms=entry["durationMs"].get("triggerExecution", 0),
            )
        if over:
            break
        futures.wait([waiting], _POLL_S)
    waiting.result()
    if not query.isActive:
        raise DriverFailure("the query was stopped before it had read everything")
