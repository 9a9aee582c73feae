"""In append mode a window comes out once."""

from conformance.invariants.invariant import GUIDE, Invariant

LAW = Invariant(
    name="nothing-twice",
    sentence="no window is emitted twice",
    # The last attempt at each micro-batch counts: a replay puts its rows where those of the attempt before it were.
    broken="""
        SELECT window_end, sensor, count(*) AS times, min(batch) AS first_batch, max(batch) AS last_batch
        FROM emitted GROUP BY window_end, sensor HAVING count(*) > 1 ORDER BY window_end, sensor""",
    looked="SELECT count(*) FROM emitted",
    what="rows emitted",
    source=f"{GUIDE}#output-modes",
)
