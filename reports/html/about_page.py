"""What a run was, as its page says it: enough to trust it, and to repeat it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from reports.analysis.report import Report
from reports.html.covered import Covered, covered
from reports.html.matrix_page import Total
from reports.html.model_credibility import Voices, voices
from reports.results.records import Target


@dataclass(frozen=True)
class Engine:
    """One target, as its engine introduced itself."""

    target: Target
    total: Total
    seconds: float
    """How long its cells took, together; those of answers that were reused, when they were given."""
    reused: int
    """How many of its answers are of an earlier run."""


@dataclass(frozen=True)
class AboutPage:
    suite: str
    started: str
    finished: str
    lasted: str
    commands: tuple[str, ...]
    engines: tuple[Engine, ...]
    reused: int
    """How many answers are of an earlier run."""
    voices: Voices | None
    """None where the cases are not at hand."""
    covered: tuple[Covered, ...]
    unreachable: tuple[tuple[str, str, str], ...]
    """Behaviour, what it is, and why no case can pin it."""
    changed: tuple[str, ...]
    """Cases that have changed since they ran."""
    unknown: int
    """Cases that are not at hand."""


def about_page(report: Report) -> AboutPage:
    header, footer = report.results.header, report.results.footer
    behaviours = report.catalogue.behaviours if report.catalogue is not None else {}
    return AboutPage(
        suite=header.suite,
        started=f"{header.started:%Y-%m-%d %H:%M} UTC",
        finished=f"{footer.finished:%Y-%m-%d %H:%M} UTC",
        lasted=_lasted(footer.finished - header.started),
        commands=tuple((header.command or "").split(" ; ")) if header.command else (),
        engines=tuple(_engines(report)),
        reused=sum(cell.reused for cell in report.matrix.cells.values()),
        voices=voices(report),
        covered=covered(report),
        unreachable=tuple(
            (id, " ".join(str(entry.get("sentence", "")).split()), " ".join(str(entry.get("why", "")).split()))
            for id, entry in behaviours.items()
            if not entry.get("reachable", True)
        ),
        changed=tuple(sorted(report.changed)),
        unknown=sum(1 for case in report.matrix.cases if report.case(case) is None and case not in report.changed),
    )


def _engines(report: Report) -> Iterator[Engine]:
    for target in report.targets:
        cells = [cell for cell in report.matrix.cells.values() if cell.target == target.name]
        counts = report.matrix.count(report.matrix.cases, [target.name])
        seconds = round(sum(cell.duration_ms for cell in cells) / 1000, 1)
        yield Engine(target, Total.of_counts(counts), seconds, sum(cell.reused for cell in cells))


def _lasted(span: timedelta) -> str:
    minutes, seconds = divmod(max(int(span.total_seconds()), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
