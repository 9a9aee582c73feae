"""The releases of each line: when they came out, which known bugs they have, and what changes from one to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import groupby

from conformance.core.versions import SparkVersion, released_on, releases
from reports.analysis.change import Changes, changes
from reports.analysis.matrix import Matrix
from reports.analysis.report import Report
from reports.results.known_bug import KnownBug, identity
from reports.results.records import Target


@dataclass(frozen=True)
class ReleaseBug:
    """A known bug of a release."""

    because: str
    bug: KnownBug
    cases: tuple[str, ...]
    """Those that show it."""


@dataclass(frozen=True)
class LineRelease:
    """A release of Apache Spark, with or without results."""

    version: SparkVersion
    day: date | None
    """When it came to PyPI."""
    target: Target | None
    """None if there are no results."""
    bugs: tuple[ReleaseBug, ...]
    not_run: int
    """Cases that apply to it and have no result on it."""
    changed: Changes | None
    """From the release of its line before it that has results; None if there is none."""
    best: bool
    """Whether it has the fewest known bugs of its line, the newest of several. None is if the one that shows the fewest
    lacks results that others have."""


@dataclass(frozen=True)
class ReleaseLine:
    name: str
    """``3.5``"""
    releases: tuple[LineRelease, ...]
    """Newest first."""


def released(target: Target) -> date | None:
    """The day on which Apache's release came to PyPI; None for another build, or if it is not known."""
    version = target.version
    return released_on(version) if version is not None and target.apache else None


def release_lines(report: Report) -> tuple[ReleaseLine, ...]:
    """Every line of the report, newest first, with all of its releases."""
    matrix = report.every_release
    ran = {version: target for target in matrix.targets if target.apache and (version := target.version) is not None}
    shown = {version.line for version in ran}
    lines = groupby(releases(), key=lambda version: version.line)
    return tuple(ReleaseLine(name, tuple(_line(matrix, ran, list(own)))) for name, own in lines if name in shown)[::-1]


def _line(matrix: Matrix, ran: Mapping[SparkVersion, Target], own: list[SparkVersion]) -> Iterator[LineRelease]:
    bugs = {version: tuple(_bugs(matrix, ran[version])) for version in own if version in ran}
    not_run = {version: matrix.count(matrix.cases, [ran[version].name])["not-run"] for version in bugs}
    best = min(reversed(bugs), key=lambda version: len(bugs[version]), default=None)
    certain = best is not None and len(bugs) > 1 and not_run[best] == min(not_run.values())
    for version in reversed(own):
        target = ran.get(version)
        before = max((other for other in bugs if other < version), default=None)
        changed = changes(matrix, ran[before], target) if before is not None and target is not None else None
        yield LineRelease(
            version,
            released_on(version),
            target,
            bugs.get(version, ()),
            not_run.get(version, 0),
            changed,
            certain and version == best,
        )


def _bugs(matrix: Matrix, target: Target) -> Iterator[ReleaseBug]:
    """Each bug once, the one that most cases show first."""
    found: dict[tuple[str | None, ...], list[tuple[str, str, KnownBug]]] = {}
    for case in matrix.cases:
        bug, cell = matrix.known_bug(case, target), matrix.cells.get((case, target.name))
        if bug is not None and cell is not None and cell.differs is not None:
            found.setdefault(identity(cell.differs), []).append((case, cell.differs.because or "", bug))
    for same in sorted(found.values(), key=len, reverse=True):
        yield ReleaseBug(same[0][1], same[0][2], tuple(case for case, _, _ in same))
