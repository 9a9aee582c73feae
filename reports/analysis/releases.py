"""The releases of each line: when they came out, which known bugs they have, what changes from one to the next, and by way of
which of them a checkpoint can be upgraded."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import combinations, groupby, pairwise

from conformance.core.versions import SparkVersion, released_on, releases
from reports.analysis.change import Changes, changes
from reports.analysis.gate import fails
from reports.analysis.matrix import Matrix, ShownBug
from reports.analysis.report import Report
from reports.results.records import TargetRecord


@dataclass(frozen=True)
class LineRelease:
    """A release of Apache Spark, with or without results."""

    version: SparkVersion
    day: date | None
    """The day on which it came to PyPI."""
    target: TargetRecord | None
    bugs: tuple[ShownBug, ...]
    open_bugs: int
    """The number of bugs that other releases of its line have and that it may have: no case that shows them has a result on it."""
    not_run: int
    """The number of cases that apply to it and have no result on it."""
    changed: Changes | None
    """What changed since the last release of its line that has results."""
    best: bool
    """Whether it has the fewest known bugs of its line, the newest of several. No release is the best if the one with the fewest bugs
    lacks results that others have.
    """


def released(target: TargetRecord) -> date | None:
    """Return the day on which Apache's release came to PyPI; None for another build, or if it is not known."""
    version = target.version
    return released_on(version) if version is not None and target.apache else None


def release_lines(report: Report) -> Mapping[str, tuple[LineRelease, ...]]:
    """Return every line of the report with all of its releases, both newest first: ``3.5`` → 3.5.9, 3.5.8 …"""
    matrix = report.every_release
    ran = {version: target for target in matrix.targets if target.apache and (version := target.version) is not None}
    shown = {version.line for version in ran}
    lines = groupby(releases(), key=lambda version: version.line)
    releases_of_lines = [(name, tuple(_line(matrix, ran, list(own)))) for name, own in lines if name in shown]
    return dict(reversed(releases_of_lines))


def _line(matrix: Matrix, ran: Mapping[SparkVersion, TargetRecord], own: list[SparkVersion]) -> Iterator[LineRelease]:
    bugs = {version: matrix.shown_bugs(ran[version]) for version in own if version in ran}
    of_line = matrix.known_bugs(ran[version] for version in bugs).values()
    open_bugs = {
        version: sum(all(matrix.status(case, ran[version].name) == "not-run" for case, _ in cells) for cells in of_line)
        for version in bugs
    }
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
            open_bugs.get(version, 0),
            not_run.get(version, 0),
            changed,
            certain and version == best,
        )


@dataclass(frozen=True)
class RouteRelease:
    target: TargetRecord
    changes: int
    """The number of changes from the earlier version that a running query can meet, or that bring a bug."""
    bugs: int
    checkpoints: str
    """What became of the earlier version's checkpoints on it."""


@dataclass(frozen=True)
class Route:
    releases: tuple[TargetRecord, ...]
    refused: int
    """The number of refused checkpoints of all hops. In each, the release before it wrote the checkpoints anew."""

    def __str__(self) -> str:
        return " → ".join(target.title for target in self.releases)


def releases_between(report: Report, before: TargetRecord, after: TargetRecord) -> Iterator[RouteRelease]:
    for target in _between(report, before, after):
        met = sum(fails(change, None, "running") for change in changes(report.matrix, before, target).changes)
        known = report.upgrades.between(before, target)
        yield RouteRelease(target, met, len(report.matrix.known_bugs([target])), known.summary())


def fewest_bugs(releases: Iterable[RouteRelease]) -> tuple[RouteRelease, ...]:
    """Return of each line the release that shows the fewest known bugs, the newest of several; oldest line first."""
    best: dict[str, RouteRelease] = {}
    for release in releases:
        if (line := release.target.line) is not None:
            best[line] = min(release, best.get(line, release), key=lambda known: known.bugs)
    return tuple(best.values())


def with_checkpoints(report: Report, target: TargetRecord) -> TargetRecord:
    """Return the target if its checkpoints were tried, on it or on others, else the newest release of its line of which that is true,
    or the target itself if there is none.
    """
    tried = {name for pair in report.upgrades.handed for name in pair}
    others = (other for other in reversed(report.versions) if other.apache and other.line == target.line)
    return target if target.name in tried else next((other for other in others if other.name in tried), target)


def routes(report: Report, before: TargetRecord, after: TargetRecord) -> tuple[Route, ...]:
    """Return the routes of at most three hops whose every hop was tried: the fewest refused checkpoints first, then the fewest hops."""
    inner = _between(report, before, after)[:-1]
    hops = {
        (a.name, b.name): known.count("refused", "unsupported")
        for a, b in combinations((before, *inner, after), 2)
        if (known := report.upgrades.between(a, b)).tried and not known.answered_by
    }
    ways = [(before, *stops, after) for number in range(3) for stops in combinations(inner, number)]
    hops_of = {way: [(a.name, b.name) for a, b in pairwise(way)] for way in ways}
    possible = (Route(way, sum(map(hops.__getitem__, own))) for way, own in hops_of.items() if hops.keys() >= {*own})
    return tuple(sorted(possible, key=lambda route: (route.refused, len(route.releases))))


def _between(report: Report, before: TargetRecord, after: TargetRecord) -> Sequence[TargetRecord]:
    first, last = before.version, after.version
    if first is None or last is None or last < first:
        return ()
    inner = ((target, target.version) for target in report.versions if target.apache)
    return (*(target for target, version in inner if version is not None and first < version < last), after)
