"""A window waits for the watermark."""

from conformance.invariants.invariant import GUIDE, Invariant

LAW = Invariant(
    name="nothing-early",
    sentence="no window is emitted before its end is at or behind the watermark",
    # Every attempt counts, and an output of a micro-batch that the log does not know is early whatever it holds.
    broken="""
        SELECT attempted.batch, window_end, sensor, watermark
        FROM attempted LEFT JOIN micro_batches ON micro_batches.batch = attempted.batch
        WHERE watermark IS NULL OR window_end > watermark ORDER BY attempted.batch, window_end, sensor""",
    looked="SELECT count(*) FROM attempted",
    what="rows emitted, in any attempt",
    source=f"{GUIDE}#handling-late-data-and-watermarking",
)
