"""Each window holds the rows that came in time, no more and no fewer."""

from conformance.invariants.invariant import GUIDE, Invariant

LAW = Invariant(
    name="nothing-lost",
    sentence="every emitted window counts the rows that were not late, and no window that is over is missing",
    # Windows that the last watermark has not reached are still in the state: nothing of them may have come out.
    broken="""
        SELECT window_end, sensor, sum(in_time) AS in_time, sum(counted) AS counted FROM (
          SELECT window_end, sensor, total AS in_time, 0 AS counted FROM accepted
          WHERE window_end <= (SELECT max(watermark) FROM micro_batches)
          UNION ALL SELECT window_end, sensor, 0 AS in_time, total AS counted FROM emitted) AS both_sides
        GROUP BY window_end, sensor HAVING sum(in_time) <> sum(counted) ORDER BY window_end, sensor""",
    looked="SELECT sum(total) FROM batch_rows",
    what="rows",
    source=f"{GUIDE}#handling-late-data-and-watermarking",
)
