"""What a soak left behind, as tables for the invariants: ``tools/soak/invariants.yaml`` describes each. Instants: ms."""

from __future__ import annotations

import glob
import json
import os
from typing import Any, List, Tuple

from harness.driver.checkpoint import CheckpointLogs
from harness.driver.files import LocalFiles
from harness.driver.request import milliseconds

from .stream import CHECKPOINT, INPUT, OUTPUT, PROGRESS, SCHEMA, SoakStream, attempt_at, uri

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


def register(spark: Any, folder: str, stream: SoakStream, late: str) -> None:
    """Make a view of each table. ``late``: whose watermark decides which rows are late, ``own batch`` or ``batch before``."""
    spark.catalog.clearCache()
    for key, value in _FILES.items():
        spark.conf.set(key, value)
    spark.read.schema(SCHEMA).parquet(uri(folder, INPUT)).createOrReplaceTempView("input")
    spark.read.schema("window_end TIMESTAMP, sensor INT, total BIGINT, batch BIGINT, attempt BIGINT").json(
        uri(folder, OUTPUT)
    ).createOrReplaceTempView("output")
    checkpoint = os.path.join(folder, CHECKPOINT)
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
    columns = "batch BIGINT, attempt BIGINT, watermark BIGINT, state BIGINT, dropped BIGINT"
    _small(spark, "told", columns, progress(folder))
    for name, text in _VIEWS.items():
        view = spark.sql(text.format(window_s=stream.window_s))
        (view.cache() if name in _KEPT else view).createOrReplaceTempView(name)


def attempts(folder: str) -> List[Tuple[int, int]]:
    """Micro-batch and engine number of each attempt whose output is complete: Spark then writes ``_SUCCESS``."""
    pairs = []
    for marker in glob.glob(os.path.join(attempt_at(glob.escape(folder), "*", "*"), "_SUCCESS")):
        batch, attempt = os.path.dirname(marker).split(os.sep)[-2:]
        pairs.append((int(batch.partition("=")[2]), int(attempt.partition("=")[2])))
    return sorted(pairs)


def progress(folder: str) -> "List[Tuple[int, int, int | None, int | None, int | None]]":
    """Micro-batch, engine number, watermark, keys in the state and groups dropped, from the progress that each engine wrote."""
    rows = []
    for path in glob.glob(os.path.join(glob.escape(folder), PROGRESS, "*.jsonl")):
        attempt = int(os.path.basename(path).partition(".")[0])
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                if not line.endswith("\n"):  # the engine was killed while it wrote
                    break
                entry = json.loads(line)
                (operator,) = entry["stateOperators"]
                watermark = entry.get("eventTime", {}).get("watermark")
                counts = operator.get("numRowsTotal"), operator.get("numRowsDroppedByWatermark")
                rows.append((entry["batchId"], attempt, watermark and milliseconds(watermark), *counts))
    return sorted(rows, key=lambda row: row[:2])


def _small(spark: Any, name: str, schema: str, rows: List[Any]) -> None:
    spark.createDataFrame(rows, schema).coalesce(1).createOrReplaceTempView(name)


class LogIncomplete(Exception):
    """The offset log lacks micro-batches, so the files they read are unknown."""


def micro_batches(checkpoint: str) -> "List[Tuple[int, int, int | None]]":
    """Each micro-batch: its id, its watermark in ms, and the next one's, None if not committed. Raises ``LogIncomplete``."""
    ids = _planned(checkpoint)
    logs = CheckpointLogs(checkpoint, LocalFiles())
    return [(batch, logs.logged_watermark(batch), logs.next_watermark(batch)) for batch in ids]


def files_read(checkpoint: str) -> List[Tuple[int, str]]:
    """Micro-batch and file name, for each file in the source's log.

    An entry of the source's log belongs to the first micro-batch whose offset includes it. The source may be ahead of the offset log if
    its engine was killed between the two; the next micro-batch then includes those files.
    """
    reached = [(batch, _offset(os.path.join(checkpoint, "offsets", str(batch)))) for batch in _planned(checkpoint)]
    files = []
    for entry, path in _source_log(os.path.join(checkpoint, "sources", "0")):
        batch = next((batch for batch, offset in reached if offset >= entry), None)
        if batch is not None:
            files.append((batch, path.rpartition("/")[2]))
    return sorted(files)


def _planned(checkpoint: str) -> List[int]:
    ids = sorted(int(name) for name in os.listdir(os.path.join(checkpoint, "offsets")) if name.isdigit())
    missing = sorted(set(range(len(ids))) - set(ids))
    if missing:
        raise LogIncomplete(
            "the offset log lacks micro-batch {}: is spark.sql.streaming.minBatchesToRetain set?".format(missing[0])
        )
    return ids


def _offset(path: str) -> int:
    """The last entry of the source's log that a micro-batch has read; -1 if none."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    return -1 if lines[2] == "-" else int(json.loads(lines[2])["logOffset"])


def _source_log(log: str) -> "set[Tuple[int, str]]":
    """Entry number and path of each file in the source's log; a compacted entry repeats all earlier ones."""
    files: "set[Tuple[int, str]]" = set()
    for name in os.listdir(log):
        if name.partition(".")[0].isdigit() and name.partition(".")[2] in ("", "compact"):
            with open(os.path.join(log, name), encoding="utf-8") as file:
                entries: List[Any] = [json.loads(line) for line in file.read().split("\n")[1:] if line]
            files.update((int(entry["batchId"]), str(entry["path"])) for entry in entries)
    return files
