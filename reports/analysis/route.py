"""Which releases an upgrade can pass through so that as few checkpoints as possible are refused, as far as results say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from reports.analysis.change import changes
from reports.analysis.checkpoints import Checkpoints, checkpoints
from reports.analysis.gate import fails
from reports.analysis.report import Report
from reports.results.records import Target


@dataclass(frozen=True)
class RouteRelease:
    """A release after the earlier version, up to the later one."""

    target: Target
    changes: int
    """Changes from the earlier version that a running query can meet, or that bring a bug."""
    bugs: int
    """Cases that show a known bug on it."""
    checkpoints: str
    """What became of the earlier version's checkpoints on it; empty if nothing was tried."""


@dataclass(frozen=True)
class Route:
    """A way from one version to another."""

    releases: tuple[Target, ...]
    """The first and the last are the two versions."""
    refused: int
    """Refused checkpoints of all hops. In each, the release before it wrote the checkpoints anew."""

    def __str__(self) -> str:
        return " → ".join(target.title for target in self.releases)


def releases_between(report: Report, before: Target, after: Target) -> Iterator[RouteRelease]:
    """Apache's releases after the earlier version, up to the later one, oldest first."""
    for target in _between(report, before, after):
        found = changes(report.matrix, before, target)
        met = sum(fails(change, None, "running") for change in found.changes)
        bugs = report.matrix.by_target[target.name]["bug"]
        tried = _tried(report, before, target)
        yield RouteRelease(target, met, bugs, tried.summary() if tried is not None else "")


def fewest_bugs(releases: Iterable[RouteRelease]) -> tuple[RouteRelease, ...]:
    """Of each line the release that shows the fewest known bugs, the newest of several; oldest line first."""
    by_line: dict[str, list[RouteRelease]] = {}
    for one in releases:
        if (version := one.target.version) is not None:
            by_line.setdefault(version.line, []).append(one)
    return tuple(min(reversed(own), key=lambda one: one.bugs) for own in by_line.values())


def with_checkpoints(report: Report, target: Target) -> Target:
    """The target if its checkpoints were tried, on it or on others, else the newest release of its line of which that is true.

    Returns:
        The target itself if there is none.
    """
    tried = {name for cell in report.results.upgrades for name in (cell.origin, cell.to)}
    version = target.version
    if target.name in tried or version is None:
        return target
    line = [one for one in report.versions if one.apache and one.name in tried and one.version is not None]
    own = [one for one in line if one.version is not None and one.version.line == version.line]
    return own[-1] if own else target


def routes(report: Report, before: Target, after: Target) -> tuple[Route, ...]:
    """The routes of at most three hops whose every hop was tried: the fewest refused checkpoints first, then the fewest hops."""
    inner = _between(report, before, after)[:-1]
    hops = {
        (a.name, b.name): tried.count("refused", "unsupported")
        for a, b in combinations((before, *inner, after), 2)
        if (tried := _tried(report, a, b)) is not None
    }
    found = []
    for stops in range(3):
        for chosen in combinations(inner, stops):
            way = (before, *chosen, after)
            refused = [hops.get((a.name, b.name)) for a, b in pairwise(way)]
            if None not in refused:
                found.append(Route(way, sum(one for one in refused if one is not None)))
    return tuple(sorted(found, key=lambda route: (route.refused, len(route.releases))))


def _between(report: Report, before: Target, after: Target) -> Sequence[Target]:
    """Empty for a downgrade."""
    first, last = before.version, after.version
    if first is None or last is None or last < first:
        return ()
    inner = [one for one in report.versions if one.apache and one.version is not None and first < one.version < last]
    return (*inner, after)


def _tried(report: Report, before: Target, after: Target) -> Checkpoints | None:
    found = checkpoints(report.results.upgrades, (), before, after)
    return found if found is not None and found.tried else None
