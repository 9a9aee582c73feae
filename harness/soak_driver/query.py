"""The query: a count of rows per event-time window, in append mode. It resumes from the checkpoint if there is one."""

from __future__ import annotations

import json
import os
import threading
from typing import Any, Callable, List

from harness.driver.classic import Classic
from harness.driver.progress import executed, milliseconds

from .stream import CHECKPOINT, INPUT, PROGRESS, SCHEMA, Stream, attempt_at, uri

_POLL_S = 0.1


def run(engine: Classic, folder: str, stream: Stream, attempt: int, send: Callable[..., None]) -> None:
    """Run the query until it has read everything.

    ``attempt``: number of this engine, from 0. ``send``: takes the kind and fields of a message: ``emitted`` when the rows of a
    micro-batch are out, ``progressed`` when it is over.
    """
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
    failures: List[Exception] = []

    def wait() -> None:
        try:
            query.processAllAvailable()
        except Exception as error:
            failures.append(error)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    seen = 0
    while True:
        over = not waiting.is_alive()
        entries, seen = engine.recent(query, seen)
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
        waiting.join(_POLL_S)
    if failures:
        raise failures[0]
