"""The published results, which come with the suite: of the newest release of each line, of patch releases, and of the usual upgrades.

A text names a column of results: a version, a line or a label. Own results can be shown beside them, for the cases that both have.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from conformance.core.errors import WrongUsage
from conformance.core.versions import NotAVersion, SparkVersion, named
from conformance.judging.verdict import Status
from reports.results.errors import UnusableResults
from reports.results.reading import Results, header_of
from reports.results.records import Cell, TargetRecord
from reports.results.status import NO_RESULT

BASELINES = Path(__file__).parents[1] / "baselines"
UPGRADES = BASELINES / "upgrades"
"""A file for each line with what became of the checkpoints that it wrote, from ``python -m tools.publish_upgrades``, without what was
observed. Who asks about two versions reads one file of ten."""
PATCHES = BASELINES / "patches"
"""A file for each major version with its patch releases but the newest of each line, from ``python -m tools.publish_patches``; read only
when asked for. A file for each line would take twice the room: releases resemble each other."""

WRITTEN = BASELINES / "checkpoints.json"
"""What the checkpoints of a few queries consist of on each release, from ``python -m tools.checkpoints --compare``."""


class SameFiles(NamedTuple):
    """What two releases leave that wrote the same checkpoints: the same files, byte by byte, but for ids and times."""

    queries: int
    """The number of queries that were compared."""
    settings: tuple[str, ...]
    """The names of the settings that only one of the two records, or with another value."""


def same_files(one: str, other: str) -> SameFiles | None:
    """Compare what two targets write, by the queries that ran on each release; None if it differs, or one was not compared."""
    known = _written()
    a, b = known.get(one), known.get(other)
    if a is None or b is None or a["digests"] != b["digests"]:
        return None
    names = {setting.partition("=")[0] for setting in {*a["settings"]} ^ {*b["settings"]}}
    return SameFiles(len(a["digests"]), tuple(sorted(names)))


@cache
def _written() -> Mapping[str, Mapping[str, Collection[str]]]:
    """Map the name of a target to ``digests``, query → digest of its files, and ``settings``, ``name=value``."""
    written: Mapping[str, Mapping[str, Collection[str]]] = json.loads(WRITTEN.read_bytes())
    return {f"spark-{release}": left for release, left in written.items()}


def published() -> tuple[Path, ...]:
    return tuple(sorted(BASELINES.glob("*.jsonl.xz")))


def upgrade_files() -> Mapping[str, Path]:
    """Map each line that writes checkpoints, such as ``3.5``, to its file, oldest first."""
    files = {path.name.removesuffix(".jsonl.xz"): path for path in UPGRADES.glob("*.jsonl.xz")}
    return {line: files[line] for line in sorted(files, key=lambda line: SparkVersion.parse(f"{line}.0"))}


def published_results(releases: Iterable[str] = (), *, origins: Iterable[str] | None = None) -> Results:
    """Return the published results, with the upgrades; those of a case that has changed in between count as not run.

    Args:
        releases: patch releases to add (``3.5.3``), or a line of which only patch releases are published (``2.4``): its newest
            is added. Any other text is ignored. Only cases that have an answer on each release remain: see ``left_out``.
        origins: versions and lines; only upgrades of checkpoints that one of their lines wrote are read. By default all, which takes
            longer than the rest.
    """
    if not published():
        raise UnusableResults(BASELINES, "there are no published results", "install the suite again")
    results = Results.read_all(list(published()))
    digests = {cell.case: cell.case_digest for cell in results.cells}
    written = None if origins is None else {version.line if (version := _version(text)) else text for text in origins}
    current = tuple(
        cell
        if digests.get(cell.case, cell.case_digest) == cell.case_digest
        else _without_answer(cell, cell.target, "not-run", origin=cell.origin, cut=cell.cut)
        for line, path in upgrade_files().items()
        if written is None or line in written
        for cell in Results.read(path, condensed=True).upgrades
    )
    results = replace(results, upgrades=current)
    lines = {target.line for target in results.header.targets}
    newest = {version.line: version for version in published_patches() if version.line not in lines}
    wanted = {version for text in releases if (version := newest.get(text) or _version(text)) is not None}
    for more in patch_results(wanted):
        results = in_common(results, more, [target.name for target in more.header.targets if target.version in wanted])
    return results


def left_out(results: Results) -> tuple[str, ...]:
    """Return the published cases that are not among these results: a patch release has no answer to them as they are now."""
    announced = {case for path in published() for case in header_of(path).cases}
    return tuple(sorted(announced - set(results.header.cases)))


def patch_results(versions: Iterable[SparkVersion] | None = None) -> tuple[Results, ...]:
    """Read the published results of patch releases, whole files: those with one of these versions, or all."""
    files = {patch_file(version) for version in published_patches() if versions is None or version in versions}
    return tuple(Results.read(PATCHES / name) for name in sorted(files))


@cache
def published_patches() -> tuple[SparkVersion, ...]:
    versions = (target.version for path in PATCHES.glob("*.jsonl.xz") for target in header_of(path).targets)
    return tuple(sorted(version for version in versions if version is not None))


def nearest_published(version: SparkVersion) -> SparkVersion | None:
    """Return the release of the line with published results whose number is nearest, the older of two; None without any of the line."""
    newest = (target.version for path in published() for target in header_of(path).targets)
    known = {release for release in (*newest, *published_patches()) if release is not None}
    of_line = [release for release in known if release.line == version.line]
    return min(of_line, key=lambda release: (abs(release.patch - version.patch), release.patch), default=None)


def between(first: str, last: str) -> tuple[str, ...]:
    """Return both, and the patch releases with published results between them."""
    start, end = _version(first), _version(last)
    inner = [patch for patch in published_patches() if start is not None and end is not None and start < patch < end]
    return (first, *map(str, inner), last)


def published_releases(results: Results) -> tuple[str, ...]:
    own = (target.version for target in results.header.targets)
    return tuple(map(str, sorted({version for version in (*own, *published_patches()) if version is not None})))


def patch_file(version: SparkVersion) -> str:
    """Name the file with the published results of a patch release: ``3.jsonl.xz``. Spark 2.4 resembles 3.0, and is in its file."""
    return f"{max(version.major, 3)}.jsonl.xz"


def _version(text: str) -> SparkVersion | None:
    try:
        return SparkVersion.parse(text.removeprefix("spark-"))
    except NotAVersion:
        return None


NOT_PUBLISHED = "The published results do not have this case as it is now."


def beside(own: Results, published: Results) -> Results:
    """Put a column for each published target that is not among the own results beside them.

    A published answer counts only for the case as it ran here; where the case is new or has changed since, the published
    targets are not applicable. Own results stay as they are if there is nothing to compare them with.
    """
    ran = {cell.case: cell for cell in own.cells}
    names = {target.name for target in own.header.targets}
    targets = tuple(target for target in published.header.targets if target.name not in names)
    same = {
        cell.key: cell
        for cell in published.cells
        if cell.target not in names and cell.case in ran and cell.case_digest == ran[cell.case].case_digest
    }
    if not same:
        return own
    more = (
        same.get((case, target.name)) or _without_answer(ran[case], target.name) for target in targets for case in ran
    )
    return _with(own, (*own.cells, *more), targets=(*own.header.targets, *targets))


def in_common(results: Results, more: Results, names: Collection[str]) -> Results:
    """Add these targets of others as columns, and keep only the cases that have an answer on each of them.

    An answer counts only for the case as it is among the results. Upgrades of the cases stay.
    """
    names = set(names) - {target.name for target in results.header.targets}
    digests = {cell.case: cell.case_digest for cell in results.cells}
    added = {
        cell.key: cell
        for cell in more.cells
        if cell.target in names and cell.status not in NO_RESULT and cell.case_digest == digests.get(cell.case)
    }
    cases = {case: None for case in results.header.cases if all((case, name) in added for name in names)}
    cells = tuple(cell for cell in (*results.cells, *added.values()) if cell.case in cases)
    targets = (*results.header.targets, *(target for target in more.header.targets if target.name in names))
    return replace(_with(results, cells, cases=tuple(cases), targets=targets), paths=(*results.paths, *more.paths))


def _with(results: Results, cells: tuple[Cell, ...], **announced: tuple[object, ...]) -> Results:
    """Return results with other cells, as the header announces them."""
    counts = Counter(cell.status for cell in (*cells, *results.upgrades))
    header, footer = results.header.model_copy(update=announced), results.footer.model_copy(update={"counts": counts})
    return replace(results, header=header, cells=cells, footer=footer)


def _without_answer(own: Cell, target: str, status: Status = "not-applicable", **handoff: str | int | None) -> Cell:
    return Cell(
        case=own.case,
        expansion=own.expansion,
        variant=own.variant,
        family=own.family,
        case_digest=own.case_digest,
        target=target,
        status=status,
        notes=(NOT_PUBLISHED,),
        **handoff,
    )


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
