"""The result of the one version that somebody ran, worst first, for the front page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.judging.verdict import Status
from reports.analysis.matrix import CellTotal
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
    total: CellTotal
    listed: tuple[ResultCell, ...]
    compared: bool
    """Whether there are other versions, of published results, to compare with."""


def own_result(report: Report) -> OwnResult | None:
    """None if more than one version was run."""
    if len(report.own) != 1:
        return None
    (target,) = report.own
    counts = report.matrix.count(report.matrix.cases, [target.name])
    return OwnResult(target, CellTotal.of_counts(counts), tuple(_listed(report, target)), bool(report.background))


def _listed(report: Report, target: Target) -> Iterator[ResultCell]:
    for status in WORST_FIRST:
        for case in report.matrix.cases:
            if report.matrix.status(case, target.name) == status:
                sign = CellSign.of(report.matrix.cells.get((case, target.name)), target)
                yield ResultCell(case, report.title(case), sign)
