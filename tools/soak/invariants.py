"""The invariants, which hold of every stream under a watermark, and the verdict of a run on each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from conformance.core.data import read_data
from conformance.core.observation import FrozenRecord


@dataclass(frozen=True)
class Invariant:
    name: str
    sentence: str
    """What holds."""
    violations_sql: str
    checked_sql: str
    """A query that counts what was checked, in one row and column. If it is 0, the run says nothing about the invariant."""
    checked_unit: str
    """What ``checked_sql`` counts, in the plural."""
    source: str
    """Where Spark guarantees it: a link or a ticket."""


INVARIANTS = tuple(Invariant(name, **entry) for name, entry in read_data("tools.soak", "invariants.yaml").items())


InvariantStatus: TypeAlias = Literal["holds", "broken", "silent"]
"""``silent``: the run had nothing to check."""


class InvariantVerdict(FrozenRecord):
    """The verdict on an invariant, as the record of a soak has it."""

    name: str
    sentence: str
    source: str
    status: InvariantStatus
    looked: int
    """The number of things of the kind ``what`` that were checked."""
    what: str
    rows: tuple[dict[str, Any], ...] = ()
    """The first rows that break it; instants are ms since the epoch."""


def judge(
    invariant: Invariant, checked: int | None, columns: Sequence[str] = (), rows: Sequence[Sequence[Any]] = ()
) -> InvariantVerdict:
    """The verdict from the results of both queries; ``checked`` is None if the tables that it sums are empty."""
    return InvariantVerdict(
        name=invariant.name,
        sentence=invariant.sentence,
        source=invariant.source,
        status="broken" if rows else "holds" if checked else "silent",
        looked=checked or 0,
        what=invariant.checked_unit,
        rows=tuple(dict(zip(columns, row, strict=True)) for row in rows),
    )


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
    late: int
    in_state: int

    @property
    def balanced(self) -> bool:
        return self.arrived == self.counted + self.late + self.in_state
