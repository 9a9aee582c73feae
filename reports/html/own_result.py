"""The result of the one version that somebody ran, worst first, for the front page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.judging.verdict import Status
from reports.analysis.report import Report
from reports.html.ribbon import CellSign
from reports.results.records import Target

WORST_FIRST: tuple[Status, ...] = ("violates", "bug", "flaky", "broken", "not-run")
"""What is listed case by case; everything else is as expected, and counted."""


@dataclass(frozen=True)
class ResultCell:
    case: str
    title: str
    sign: CellSign


@dataclass(frozen=True)
class OwnResult:
    target: Target
    applying: int
    """The number of cases that apply to the version."""
    bugs: int
    """How many of them show a known bug."""
    listed: tuple[ResultCell, ...]
    compared: bool
    """Whether there are other versions, of published results, to compare with."""

    @property
    def good(self) -> int:
        """How many are as expected, and no known bug."""
        return self.applying - len(self.listed)

    @property
    def bad(self) -> int:
        """How many are not as expected, or have no result."""
        return len(self.listed) - self.bugs


def own_result(report: Report) -> OwnResult | None:
    """None if more than one version was run."""
    if len(report.own) != 1:
        return None
    (target,) = report.own
    counts = report.matrix.by_target[target.name]
    applying = sum(counts.values()) - counts["not-applicable"]
    return OwnResult(target, applying, counts["bug"], tuple(_listed(report, target)), bool(report.background))


def _listed(report: Report, target: Target) -> Iterator[ResultCell]:
    for status in WORST_FIRST:
        for case in report.matrix.cases:
            if report.matrix.status(case, target.name) == status:
                sign = CellSign.of(report.matrix.cells.get((case, target.name)), target)
                yield ResultCell(case, report.title(case), sign)
