"""The page about a run: enough to trust it, and to repeat it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from reports.analysis.matrix import CellTotal
from reports.analysis.report import Report
from reports.html.durations import duration
from reports.results.records import Target


@dataclass(frozen=True)
class EngineRun:
    """One target, as its engine described itself."""

    target: Target
    total: CellTotal
    lasted: str
    """Time of all its cells; for cached results, the time of the run that produced them."""
    reused: int
    """How many of its results were cached."""


@dataclass(frozen=True)
class AboutPage:
    started: str
    finished: str
    lasted: str
    commands: tuple[str, ...]
    engines: tuple[EngineRun, ...]
    reused: int
    """How many results were cached."""
    unreachable: tuple[tuple[str, str, str], ...]
    """Behaviour, what it is, and why no case can test it."""
    changed: tuple[str, ...]
    """Cases that changed after they ran."""
    unknown: int
    """Number of cases whose file was not found."""


def about_page(report: Report) -> AboutPage:
    header, footer = report.results.header, report.results.footer
    behaviours = report.catalogue.behaviours if report.catalogue is not None else {}
    return AboutPage(
        started=f"{header.started:%Y-%m-%d %H:%M} UTC",
        finished=f"{footer.finished:%Y-%m-%d %H:%M} UTC",
        lasted=duration((footer.finished - header.started) // timedelta(milliseconds=1)),
        commands=tuple((header.command or "").split(" ; ")) if header.command else (),
        engines=tuple(_engines(report)),
        reused=sum(cell.reused for cell in report.matrix.cells.values()),
        unreachable=tuple(
            (id, " ".join(str(entry.get("sentence", "")).split()), " ".join(str(entry.get("why", "")).split()))
            for id, entry in behaviours.items()
            if not entry.get("reachable", True)
        ),
        changed=tuple(sorted(report.changed)),
        unknown=sum(1 for case in report.matrix.cases if report.case(case) is None and case not in report.changed),
    )


def _engines(report: Report) -> Iterator[EngineRun]:
    for target in report.own:
        cells = [cell for cell in report.matrix.cells.values() if cell.target == target.name]
        counts = report.matrix.by_target[target.name]
        lasted = duration(sum(cell.duration_ms for cell in cells))
        yield EngineRun(target, CellTotal.of_counts(counts), lasted, sum(cell.reused for cell in cells))
