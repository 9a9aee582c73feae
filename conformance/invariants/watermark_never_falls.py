"""The watermark never goes back."""

from conformance.invariants.invariant import Invariant

LAW = Invariant(
    name="watermark-never-falls",
    sentence="the watermark never goes back: not in the offset log, not in the progress, not in the commit log",
    broken="""
        SELECT batch, said_by, watermark, before FROM (
          SELECT batch, said_by, watermark, lag(watermark) OVER (ORDER BY batch, place, attempt) AS before FROM (
            SELECT batch, 1 AS place, 0 AS attempt, 'offset log' AS said_by, watermark FROM micro_batches
            UNION ALL SELECT batch, 2 AS place, attempt, 'progress' AS said_by, watermark FROM told
            WHERE watermark IS NOT NULL
            UNION ALL SELECT batch, 3 AS place, 0 AS attempt, 'commit log' AS said_by, next_watermark AS watermark
            FROM micro_batches WHERE next_watermark IS NOT NULL) AS witnesses) AS in_order
        WHERE watermark < before ORDER BY batch, said_by""",
    looked="SELECT count(*) FROM micro_batches",
    what="micro-batches",
    source="SPARK-19861",
)
