"""What a run says of a law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from conformance.invariants.invariant import Invariant

Status: TypeAlias = Literal["holds", "broken", "silent"]
"""``silent``: the run had nothing that the law could be held against."""

Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class InvariantVerdict:
    """A law, and what a run says of it."""

    law: Invariant
    looked: int
    """How much it was held against, counted as ``Invariant.what`` says."""
    rows: tuple[Row, ...] = ()
    """The first of those that break it."""

    @property
    def status(self) -> Status:
        if self.rows:
            return "broken"
        return "holds" if self.looked else "silent"


def judge(
    law: Invariant, looked: int | None, columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> InvariantVerdict:
    """Judge by the answers to the law's two questions.

    Args:
        law: the law.
        looked: the answer to ``Invariant.looked``; None where the tables it sums up are empty.
        columns: of the answer to ``Invariant.broken``.
        rows: the first of that answer.
    """
    return InvariantVerdict(law, looked or 0, tuple(dict(zip(columns, row, strict=True)) for row in rows))
