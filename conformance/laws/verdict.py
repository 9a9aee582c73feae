"""What a run says of a law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from conformance.laws.law import Law

Status: TypeAlias = Literal["holds", "broken", "silent"]
"""``silent``: the run had nothing that the law could be held against."""

Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class LawVerdict:
    """A law, and what a run says of it."""

    law: Law
    looked: int
    """How much it was held against, counted as ``Law.what`` says."""
    rows: tuple[Row, ...] = ()
    """The first of those that break it."""

    @property
    def status(self) -> Status:
        if self.rows:
            return "broken"
        return "holds" if self.looked else "silent"


def judge(law: Law, looked: int | None, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> LawVerdict:
    """Judge by the answers to the law's two questions.

    Args:
        law: the law.
        looked: the answer to ``Law.looked``; None where the tables it sums up are empty.
        columns: of the answer to ``Law.broken``.
        rows: the first of that answer.
    """
    return LawVerdict(law, looked or 0, tuple(dict(zip(columns, row, strict=True)) for row in rows))
