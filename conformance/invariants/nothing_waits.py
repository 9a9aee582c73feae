"""A window comes out as soon as the watermark lets it."""

from conformance.invariants.invariant import Invariant

LAW = Invariant(
    name="nothing-waits",
    sentence="a window is emitted in the first micro-batch whose watermark has reached its end",
    broken="""
        SELECT emitted.batch, window_end, sensor, before.watermark AS watermark_before
        FROM emitted JOIN micro_batches AS before ON before.batch = emitted.batch - 1
        WHERE before.watermark >= window_end ORDER BY emitted.batch, window_end, sensor""",
    looked="SELECT count(*) FROM emitted",
    what="rows emitted",
    source="SPARK-18124",
)
