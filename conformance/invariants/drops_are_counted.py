"""The engine owns up to what it drops."""

from conformance.invariants.invariant import Invariant

LAW = Invariant(
    name="drops-are-counted",
    sentence="each micro-batch tells as many late windows dropped as its rows had",
    # Rows of one window and key have become one group when they meet the state: the metric counts groups, not rows.
    broken="""
        SELECT told.batch, told.attempt, told.dropped, count(late.window_end) AS late
        FROM told JOIN micro_batches ON micro_batches.batch = told.batch
        LEFT JOIN batch_rows AS late ON late.batch = told.batch AND late.window_end <= micro_batches.late_watermark
        WHERE told.dropped IS NOT NULL GROUP BY told.batch, told.attempt, told.dropped
        HAVING told.dropped <> count(late.window_end) ORDER BY told.batch, told.attempt""",
    looked="SELECT count(*) FROM told WHERE dropped IS NOT NULL",
    what="micro-batches that told it",
    source="SPARK-24634",
)
