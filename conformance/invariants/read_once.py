"""Every row of the input is part of one micro-batch, whatever was killed meanwhile."""

from conformance.invariants.invariant import Invariant

LAW = Invariant(
    name="read-once",
    sentence="every row is read in one micro-batch",
    broken="""
        SELECT arrived.file, count(read_files.batch) AS micro_batches
        FROM (SELECT DISTINCT file FROM arrived) AS arrived LEFT JOIN read_files ON read_files.file = arrived.file
        GROUP BY arrived.file HAVING count(read_files.batch) <> 1 ORDER BY arrived.file""",
    looked="SELECT sum(total) FROM arrived",
    what="rows",
    source="https://spark.apache.org/docs/latest/streaming/getting-started.html#fault-tolerance-semantics",
)
