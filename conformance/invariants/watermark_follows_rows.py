"""The watermark is the newest event time of the rows before, minus the delay."""

from conformance.invariants.invariant import GUIDE, Invariant

LAW = Invariant(
    name="watermark-follows-rows",
    sentence="each micro-batch runs with the newest event time of those before it minus the delay",
    broken="""
        SELECT batch, watermark, deserved FROM (
          SELECT micro_batches.batch, micro_batches.watermark,
            CASE WHEN max(newest) > (SELECT delay FROM query) THEN max(newest) - (SELECT delay FROM query) ELSE 0 END
            AS deserved
          FROM micro_batches LEFT JOIN (SELECT batch, max(newest) AS newest FROM batch_rows GROUP BY batch) AS newest_rows
          ON newest_rows.batch < micro_batches.batch
          GROUP BY micro_batches.batch, micro_batches.watermark) AS compared
        WHERE watermark <> deserved ORDER BY batch""",
    looked="SELECT count(*) FROM micro_batches",
    what="micro-batches",
    source=f"{GUIDE}#handling-late-data-and-watermarking",
)
