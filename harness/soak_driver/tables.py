"""What a soak left behind, as tables for the invariants: ``conformance/invariants/invariants.yaml`` describes each. Instants: ms."""

from __future__ import annotations

import glob
import json
import os
from typing import Any, List, Tuple

from harness.driver.progress import milliseconds

from . import layout
from .logs import files_read, micro_batches
from .stream import SCHEMA, Stream

_FILES = {"spark.sql.files.openCostInBytes": "4194304", "spark.sql.files.maxPartitionBytes": "134217728"}
"""Spark's defaults, with many small files per task: here it does not matter which file is which partition."""

_VIEWS = {
    # The only scan of all rows. The window is computed without the `window` function that the query uses.
    "arrived": """
        SELECT substring_index(file, '/', -1) AS file, window_end, sensor, count(*) AS total, max(instant) AS newest
        FROM (SELECT input_file_name() AS file, sensor, CAST(event_time AS BIGINT) * 1000 AS instant,
                     (CAST(event_time AS BIGINT) div {window_s} + 1) * {window_s} * 1000 AS window_end FROM input)
        GROUP BY file, window_end, sensor""",
    "batch_rows": """
        SELECT batch, window_end, sensor, sum(total) AS total, max(newest) AS newest
        FROM arrived JOIN read_files ON arrived.file = read_files.file GROUP BY batch, window_end, sensor""",
    "accepted": """
        SELECT batch_rows.* FROM batch_rows JOIN micro_batches ON micro_batches.batch = batch_rows.batch
        WHERE window_end > late_watermark""",
    "attempted": """
        SELECT output.batch, output.attempt, CAST(window_end AS BIGINT) * 1000 AS window_end, sensor, total
        FROM output JOIN attempts ON attempts.batch = output.batch AND attempts.attempt = output.attempt""",
    "emitted": """
        SELECT attempted.batch, window_end, sensor, total
        FROM attempted JOIN (SELECT batch, max(attempt) AS attempt FROM attempts GROUP BY batch) AS latest
        ON latest.batch = attempted.batch AND latest.attempt = attempted.attempt""",
}
_KEPT = ("arrived", "batch_rows", "accepted", "attempted", "emitted")
"""Views that several questions read: computed once."""


def register(spark: Any, folder: str, stream: Stream, late: str) -> None:
    """Make a view of each table.

    ``late``: whose watermark decides which rows are late, ``own batch`` or ``batch before``.
    """
    spark.catalog.clearCache()
    for key, value in _FILES.items():
        spark.conf.set(key, value)
    spark.read.schema(SCHEMA).parquet(layout.uri(folder, layout.INPUT)).createOrReplaceTempView("input")
    spark.read.schema("window_end TIMESTAMP, sensor INT, total BIGINT, batch BIGINT, attempt BIGINT").json(
        layout.uri(folder, layout.OUTPUT)
    ).createOrReplaceTempView("output")
    checkpoint = os.path.join(folder, layout.CHECKPOINT)
    batches = micro_batches(checkpoint)
    _small(spark, "query", "delay BIGINT", [(stream.delay_s * 1000,)])
    _small(spark, "read_files", "batch BIGINT, file STRING", files_read(checkpoint))
    _small(
        spark,
        "micro_batches",
        "batch BIGINT, watermark BIGINT, late_watermark BIGINT, next_watermark BIGINT",
        [
            (batch, watermark, watermark if late == "own batch" else before, left)
            for (batch, watermark, left), before in zip(batches, [0, *(ran for _, ran, _ in batches)])
        ],
    )
    _small(spark, "attempts", "batch BIGINT, attempt BIGINT", attempts(folder))
    told = "batch BIGINT, attempt BIGINT, watermark BIGINT, state BIGINT, dropped BIGINT"
    _small(spark, "told", told, progress(folder))
    for name, text in _VIEWS.items():
        view = spark.sql(text.format(window_s=stream.window_s))
        (view.cache() if name in _KEPT else view).createOrReplaceTempView(name)


def attempts(folder: str) -> List[Tuple[int, int]]:
    """Micro-batch and engine number of each attempt whose output is complete: Spark then writes ``_SUCCESS``."""
    found = []
    for marker in glob.glob(os.path.join(layout.attempt_at(glob.escape(folder), "*", "*"), "_SUCCESS")):
        batch, attempt = os.path.dirname(marker).split(os.sep)[-2:]
        found.append((int(batch.partition("=")[2]), int(attempt.partition("=")[2])))
    return sorted(found)


def progress(folder: str) -> "List[Tuple[int, int, int | None, int | None, int | None]]":
    """Micro-batch, engine number, watermark, keys in the state and groups dropped, from the progress that each engine wrote."""
    found = []
    for path in glob.glob(os.path.join(glob.escape(folder), layout.PROGRESS, "*.jsonl")):
        attempt = int(os.path.basename(path).partition(".")[0])
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                if not line.endswith("\n"):  # the engine was killed while it wrote
                    break
                entry = json.loads(line)
                (operator,) = entry["stateOperators"]
                watermark = entry.get("eventTime", {}).get("watermark")
                found.append(
                    (
                        entry["batchId"],
                        attempt,
                        None if watermark is None else milliseconds(watermark),
                        operator.get("numRowsTotal"),
                        operator.get("numRowsDroppedByWatermark"),
                    )
                )
    return sorted(found, key=lambda row: row[:2])


def _small(spark: Any, name: str, schema: str, rows: List[Any]) -> None:
    spark.createDataFrame(rows, schema).coalesce(1).createOrReplaceTempView(name)
