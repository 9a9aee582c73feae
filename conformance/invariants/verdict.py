"""The verdict of a run on each invariant, and where the rows of the input went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from conformance.invariants.catalogue import Invariant

Status: TypeAlias = Literal["holds", "broken", "silent"]
"""``silent``: the run had nothing to check."""

Violation: TypeAlias = Mapping[str, Any]
"""Column → value."""


@dataclass(frozen=True)
class InvariantVerdict:
    invariant: Invariant
    checked: int
    """How much was checked, in ``Invariant.checked_unit``."""
    violations: tuple[Violation, ...] = ()
    """The first ones."""

    @property
    def status(self) -> Status:
        if self.violations:
            return "broken"
        return "holds" if self.checked else "silent"


def judge(
    invariant: Invariant, checked: int | None, columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> InvariantVerdict:
    """The verdict from the results of both queries.

    Args:
        checked: the result of ``Invariant.checked_sql``; None if the tables it sums are empty.
        columns: of the result of ``Invariant.violations_sql``.
        rows: the first rows of that result.
    """
    return InvariantVerdict(invariant, checked or 0, tuple(dict(zip(columns, row, strict=True)) for row in rows))


STREAM_TOTALS = """
    SELECT (SELECT coalesce(sum(total), 0) FROM arrived) AS arrived,
      (SELECT coalesce(sum(total), 0) FROM emitted) AS counted,
      (SELECT coalesce(sum(batch_rows.total), 0) FROM batch_rows JOIN micro_batches
       ON micro_batches.batch = batch_rows.batch WHERE window_end <= late_watermark) AS late,
      (SELECT coalesce(sum(total), 0) FROM accepted
       WHERE window_end > (SELECT max(watermark) FROM micro_batches)) AS in_state"""
"""A query that returns the fields of ``StreamTotals``, in one row."""


@dataclass(frozen=True)
class StreamTotals:
    """Numbers of rows. They balance if nothing is lost and everything is read once; the invariants name the wrong window or file."""

    arrived: int
    counted: int
    """In emitted windows."""
    late: int
    in_state: int

    @property
    def balanced(self) -> bool:
        """Whether every row is accounted for."""
        return self.arrived == self.counted + self.late + self.in_state
