"""How much of the catalogues the cases pin, as several pages say it."""

from __future__ import annotations

from dataclasses import dataclass

from reports.analysis.report import Report


@dataclass(frozen=True)
class Covered:
    """How much of one catalogue is pinned."""

    name: str
    pinned: int
    of: int
    holes: tuple[tuple[str, str], ...]


def covered(report: Report) -> tuple[Covered, ...]:
    """One for each catalogue of the suite."""
    return tuple(
        Covered(one.name, len(one.pinned), len(one.entries), tuple((id, one.entries[id]) for id in one.holes))
        for one in report.covered
    )
