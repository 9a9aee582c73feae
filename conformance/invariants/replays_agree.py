"""A micro-batch that is replayed emits the same rows again, so a sink that knows its id has them once."""

from conformance.invariants.invariant import GUIDE, Invariant

LAW = Invariant(
    name="replays-agree",
    sentence="a replayed micro-batch emits what its first attempt did",
    broken="""
        SELECT attempted.batch, window_end, sensor, total, count(*) AS times, attempts_at.attempts
        FROM attempted JOIN (SELECT batch, count(*) AS attempts FROM attempts GROUP BY batch) AS attempts_at
        ON attempts_at.batch = attempted.batch
        GROUP BY attempted.batch, window_end, sensor, total, attempts_at.attempts
        HAVING count(*) <> attempts_at.attempts ORDER BY attempted.batch, window_end, sensor, total""",
    looked="SELECT count(*) FROM (SELECT batch FROM attempts GROUP BY batch HAVING count(*) > 1) AS replayed",
    what="micro-batches replayed whose first output was complete",
    source=f"{GUIDE}#foreachbatch",
)
