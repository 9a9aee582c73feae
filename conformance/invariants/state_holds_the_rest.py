"""What is neither emitted nor late is in the state, and nothing else."""

from conformance.invariants.invariant import GUIDE, Invariant

LAW = Invariant(
    name="state-holds-the-rest",
    sentence="after each micro-batch the state holds the windows that are still open, and no other",
    broken="""
        SELECT told.batch, told.attempt, told.state, count(opened.window_end) AS still_open
        FROM told JOIN micro_batches ON micro_batches.batch = told.batch
        LEFT JOIN (SELECT window_end, sensor, min(batch) AS since FROM accepted GROUP BY window_end, sensor) AS opened
        ON opened.since <= told.batch AND opened.window_end > micro_batches.watermark
        GROUP BY told.batch, told.attempt, told.state
        HAVING told.state <> count(opened.window_end) ORDER BY told.batch, told.attempt""",
    looked="SELECT count(*) FROM told WHERE state IS NOT NULL",
    what="micro-batches that told it",
    source=f"{GUIDE}#conditions-for-watermarking-to-clean-aggregation-state",
)
