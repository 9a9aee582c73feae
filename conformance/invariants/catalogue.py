"""The invariants: what holds of a stream under a watermark, whatever its rows are.

Each one is an SQL query over the tables that a soak leaves behind; it holds if the query returns no rows. Instants are in ms since the
epoch; a window is identified by its end.

=============== ======================================= =====================================================================
table           columns                                 contents
=============== ======================================= =====================================================================
arrived         file, window_end, sensor, total, newest the input: for each file, rows and maximum event time by window and key
read_files      batch, file                             which micro-batch read which file, from the source log and offset log
micro_batches   batch, watermark, late_watermark,       each micro-batch of the offset log: the watermark it ran with, the one
                next_watermark                          that made rows late, and the one of its commit (null: none)
batch_rows      batch, window_end, sensor, total,       the input by micro-batch
                newest
accepted        as ``batch_rows``                       the part of it that was not late
attempts        batch, attempt                          each attempt at a micro-batch whose output is complete
attempted       batch, attempt, window_end, sensor,     what each attempt emitted
                total
emitted         batch, window_end, sensor, total        what the last attempt at each micro-batch emitted, as an idempotent sink
                                                        sees it
told            batch, attempt, watermark, state,       the progress: keys in the state, dropped groups (null: the version does
                dropped                                 not report them)
query           delay                                   one row: the delay of the watermark
=============== ======================================= =====================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

GUIDE = "https://spark.apache.org/docs/latest/streaming/apis-on-dataframes-and-datasets.html"
"""Spark's programming guide."""


@dataclass(frozen=True)
class Invariant:
    name: str
    sentence: str
    """What holds."""
    violations_sql: str
    """A query in portable SQL that returns the violations."""
    checked_sql: str
    """A query that counts what was checked, in one row and column. If it is 0, the run says nothing about the invariant."""
    checked_unit: str
    """What ``checked_sql`` counts, in the plural."""
    source: str
    """Where Spark guarantees it: a link or a ticket."""


INVARIANTS = (
    Invariant(
        name="nothing-twice",
        sentence="no window is emitted twice",
        # Only the last attempt at each micro-batch counts: a replay overwrites the rows of the attempt before it.
        violations_sql="""
            SELECT window_end, sensor, count(*) AS times, min(batch) AS first_batch, max(batch) AS last_batch
            FROM emitted GROUP BY window_end, sensor HAVING count(*) > 1 ORDER BY window_end, sensor""",
        checked_sql="SELECT count(*) FROM emitted",
        checked_unit="emitted rows",
        source=f"{GUIDE}#output-modes",
    ),
    Invariant(
        name="replays-agree",
        sentence="a replayed micro-batch emits the same rows as its first attempt",
        violations_sql="""
            SELECT attempted.batch, window_end, sensor, total, count(*) AS times, attempts_at.attempts
            FROM attempted JOIN (SELECT batch, count(*) AS attempts FROM attempts GROUP BY batch) AS attempts_at
            ON attempts_at.batch = attempted.batch
            GROUP BY attempted.batch, window_end, sensor, total, attempts_at.attempts
            HAVING count(*) <> attempts_at.attempts ORDER BY attempted.batch, window_end, sensor, total""",
        checked_sql="SELECT count(*) FROM (SELECT batch FROM attempts GROUP BY batch HAVING count(*) > 1) AS replayed",
        checked_unit="replayed micro-batches whose first output was complete",
        source=f"{GUIDE}#foreachbatch",
    ),
    Invariant(
        name="nothing-early",
        sentence="no window is emitted before the watermark has reached its end",
        # Every attempt counts. Output of a micro-batch that is not in the offset log is early, whatever it contains.
        violations_sql="""
            SELECT attempted.batch, window_end, sensor, watermark
            FROM attempted LEFT JOIN micro_batches ON micro_batches.batch = attempted.batch
            WHERE watermark IS NULL OR window_end > watermark ORDER BY attempted.batch, window_end, sensor""",
        checked_sql="SELECT count(*) FROM attempted",
        checked_unit="emitted rows, in any attempt",
        source=f"{GUIDE}#handling-late-data-and-watermarking",
    ),
    Invariant(
        name="nothing-waits",
        sentence="a window is emitted in the first micro-batch whose watermark has reached its end",
        violations_sql="""
            SELECT emitted.batch, window_end, sensor, before.watermark AS watermark_before
            FROM emitted JOIN micro_batches AS before ON before.batch = emitted.batch - 1
            WHERE before.watermark >= window_end ORDER BY emitted.batch, window_end, sensor""",
        checked_sql="SELECT count(*) FROM emitted",
        checked_unit="emitted rows",
        source="SPARK-18124",
    ),
    Invariant(
        name="read-once",
        sentence="every row is read in exactly one micro-batch",
        violations_sql="""
            SELECT arrived.file, count(read_files.batch) AS micro_batches
            FROM (SELECT DISTINCT file FROM arrived) AS arrived LEFT JOIN read_files ON read_files.file = arrived.file
            GROUP BY arrived.file HAVING count(read_files.batch) <> 1 ORDER BY arrived.file""",
        checked_sql="SELECT sum(total) FROM arrived",
        checked_unit="rows",
        source="https://spark.apache.org/docs/latest/streaming/getting-started.html#fault-tolerance-semantics",
    ),
    Invariant(
        name="nothing-lost",
        sentence="every emitted window counts exactly the rows that were not late, and no closed window is missing",
        # Windows that the last watermark has not reached are still in the state: none of their rows may have been emitted.
        violations_sql="""
            SELECT window_end, sensor, sum(in_time) AS in_time, sum(counted) AS counted FROM (
              SELECT window_end, sensor, total AS in_time, 0 AS counted FROM accepted
              WHERE window_end <= (SELECT max(watermark) FROM micro_batches)
              UNION ALL SELECT window_end, sensor, 0 AS in_time, total AS counted FROM emitted) AS both_sides
            GROUP BY window_end, sensor HAVING sum(in_time) <> sum(counted) ORDER BY window_end, sensor""",
        checked_sql="SELECT sum(total) FROM batch_rows",
        checked_unit="rows",
        source=f"{GUIDE}#handling-late-data-and-watermarking",
    ),
    Invariant(
        name="state-holds-the-rest",
        sentence="after each micro-batch the state holds exactly the windows that are still open",
        violations_sql="""
            SELECT told.batch, told.attempt, told.state, count(opened.window_end) AS still_open
            FROM told JOIN micro_batches ON micro_batches.batch = told.batch
            LEFT JOIN (SELECT window_end, sensor, min(batch) AS since FROM accepted GROUP BY window_end, sensor) AS opened
            ON opened.since <= told.batch AND opened.window_end > micro_batches.watermark
            GROUP BY told.batch, told.attempt, told.state
            HAVING told.state <> count(opened.window_end) ORDER BY told.batch, told.attempt""",
        checked_sql="SELECT count(*) FROM told WHERE state IS NOT NULL",
        checked_unit="micro-batches that report it",
        source=f"{GUIDE}#conditions-for-watermarking-to-clean-aggregation-state",
    ),
    Invariant(
        name="drops-are-counted",
        sentence="each micro-batch reports as many dropped windows as it had late ones",
        # Rows of one window and key are one group by the time they reach the state: the metric counts groups, not rows.
        violations_sql="""
            SELECT told.batch, told.attempt, told.dropped, count(late.window_end) AS late
            FROM told JOIN micro_batches ON micro_batches.batch = told.batch
            LEFT JOIN batch_rows AS late ON late.batch = told.batch AND late.window_end <= micro_batches.late_watermark
            WHERE told.dropped IS NOT NULL GROUP BY told.batch, told.attempt, told.dropped
            HAVING told.dropped <> count(late.window_end) ORDER BY told.batch, told.attempt""",
        checked_sql="SELECT count(*) FROM told WHERE dropped IS NOT NULL",
        checked_unit="micro-batches that report it",
        source="SPARK-24634",
    ),
    Invariant(
        name="watermark-never-falls",
        sentence="the watermark never decreases in the offset log, the progress or the commit log",
        violations_sql="""
            SELECT batch, recorded_in, watermark, before FROM (
              SELECT batch, recorded_in, watermark, lag(watermark) OVER (ORDER BY batch, place, attempt) AS before FROM (
                SELECT batch, 1 AS place, 0 AS attempt, 'offset log' AS recorded_in, watermark FROM micro_batches
                UNION ALL SELECT batch, 2 AS place, attempt, 'progress' AS recorded_in, watermark FROM told
                WHERE watermark IS NOT NULL
                UNION ALL SELECT batch, 3 AS place, 0 AS attempt, 'commit log' AS recorded_in, next_watermark AS watermark
                FROM micro_batches WHERE next_watermark IS NOT NULL) AS records) AS in_order
            WHERE watermark < before ORDER BY batch, recorded_in""",
        checked_sql="SELECT count(*) FROM micro_batches",
        checked_unit="micro-batches",
        source="SPARK-19861",
    ),
    Invariant(
        name="watermark-follows-rows",
        sentence="each micro-batch runs with the maximum event time of the previous ones minus the delay",
        violations_sql="""
            SELECT batch, watermark, expected FROM (
              SELECT micro_batches.batch, micro_batches.watermark,
                CASE WHEN max(newest) > (SELECT delay FROM query) THEN max(newest) - (SELECT delay FROM query) ELSE 0 END
                AS expected
              FROM micro_batches LEFT JOIN (SELECT batch, max(newest) AS newest FROM batch_rows GROUP BY batch) AS newest_rows
              ON newest_rows.batch < micro_batches.batch
              GROUP BY micro_batches.batch, micro_batches.watermark) AS compared
            WHERE watermark <> expected ORDER BY batch""",
        checked_sql="SELECT count(*) FROM micro_batches",
        checked_unit="micro-batches",
        source=f"{GUIDE}#handling-late-data-and-watermarking",
    ),
)
