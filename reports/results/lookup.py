"""Which column of results a text names: a version, a line or a label."""

from __future__ import annotations

from difflib import get_close_matches
from operator import attrgetter

from conformance.core.errors import WrongUsage
from conformance.core.versions import NotAVersion, SparkVersion, named
from reports.results.published import published, published_releases
from reports.results.reading import Results
from reports.results.records import TargetRecord


class NoSuchVersion(WrongUsage):
    """The results have no such version, or more than one."""


def find(results: Results, asked: str) -> TargetRecord:
    """Return the target of a version, of a line (its newest version) or of a name.

    Raises NoSuchVersion: no target matches, or more than one.
    """
    targets = results.header.targets
    # A labelled target may have the same version number as Apache's release.
    matching = named(asked, targets, attrgetter("version"), attrgetter("name", "title"), lambda target: (target.spark,))
    if len(matching) == 1:
        return matching[0]
    ours = set(results.paths) >= set(published())
    releases = published_releases(results) if ours else tuple(target.spark for target in targets)
    known = ", ".join(releases) or "none"
    if matching:
        names = " or ".join(target.name for target in matching)
        raise NoSuchVersion(f"{asked} is ambiguous: {names}; available: {known}")
    if ours:
        near = "".join(f"did you mean {release}? " for release in get_close_matches(asked, releases, 1))
        try:
            SparkVersion.parse(asked)
        except NotAVersion:
            newest = ", ".join({release.rpartition(".")[0]: release for release in releases}.values())
            raise NoSuchVersion(
                f"{asked} names no published release: {near}name one of Apache's ({newest} or earlier patches)"
            ) from None
        run = f"conformance run --all --spark {asked}"
        raise NoSuchVersion(f"no published results for {asked}; {near}run it yourself: {run} (available: {known})")
    where = ", ".join(path.name for path in results.paths) or "the results"
    have = "has" if len(results.paths) == 1 else "have"
    raise NoSuchVersion(f"{where} {have} no {asked}; available: {known}")


def find_both(results: Results, before: str, after: str) -> tuple[TargetRecord, TargetRecord]:
    """Return the targets of two versions. Raises NoSuchVersion as ``find`` does, and WrongUsage: they are one target."""
    pair = find(results, before), find(results, after)
    if pair[0] == pair[1]:
        raise WrongUsage(f"--from {before} and --to {after} are both {pair[0].name}: name two versions")
    return pair
