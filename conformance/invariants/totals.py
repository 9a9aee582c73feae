"""Where the rows went: read = counted + late + in the state."""

from __future__ import annotations

from dataclasses import dataclass

STREAM_TOTALS = """
    SELECT (SELECT coalesce(sum(total), 0) FROM arrived) AS arrived,
      (SELECT coalesce(sum(total), 0) FROM emitted) AS counted,
      (SELECT coalesce(sum(batch_rows.total), 0) FROM batch_rows JOIN micro_batches
       ON micro_batches.batch = batch_rows.batch WHERE window_end <= late_watermark) AS late,
      (SELECT coalesce(sum(total), 0) FROM accepted
       WHERE window_end > (SELECT max(watermark) FROM micro_batches)) AS in_state"""
"""The question that gives the four of them, in one row."""


@dataclass(frozen=True)
class StreamTotals:
    """Rows. They balance where nothing is lost and everything is read once; the laws say which window or file is wrong."""

    arrived: int
    counted: int
    """In windows that were emitted."""
    late: int
    in_state: int

    @property
    def balanced(self) -> bool:
        """Whether every row is accounted for."""
        return self.arrived == self.counted + self.late + self.in_state
