"""The published results, which come with the suite: of the newest release of each line, of patch releases, and of the usual upgrades."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from conformance.core.versions import NotAVersion, SparkVersion
from reports.results.beside import in_common
from reports.results.reading import Results
from reports.results.record_lines import header_of

BASELINES = Path(__file__).parents[1] / "baselines"
UPGRADES = BASELINES / "upgrades.jsonl.xz"
"""What ``python -m tools.publish_upgrades`` makes of runs of ``conformance upgrade``, without what was observed."""
PATCHES = BASELINES / "patches"
"""A file for each major version with its patch releases but the newest of each line, from ``python -m tools.publish_patches``; read only
when asked for. A file for each line would take twice the room: releases resemble each other."""


def published() -> tuple[Path, ...]:
    """The published results of runs on the newest release of each line."""
    return tuple(sorted(path for path in BASELINES.glob("*.jsonl.xz") if path != UPGRADES))


def published_results(releases: Iterable[str] = ()) -> Results:
    """The published results, with the upgrades of the cases that have not changed in between.

    Args:
        releases: patch releases to add (``3.5.3``), or a line of which only patch releases are published (``2.4``): its newest
            is added. Any other text is ignored. Only cases that have an answer on each release remain: see ``left_out``.
    """
    found = Results.read_all(list(published()))
    if UPGRADES.is_file():
        digests = {cell.case: cell.case_digest for cell in found.cells}
        upgrades = tuple(
            cell
            for cell in Results.read(UPGRADES, condensed=True).upgrades
            if digests.get(cell.case, cell.case_digest) == cell.case_digest
        )
        found = replace(found, upgrades=upgrades)
    lines = {target.version.line for target in found.header.targets if target.version is not None}
    newest = {version.line: version for version in published_patches() if version.line not in lines}
    wanted = {version for text in releases if (version := newest.get(text) or _version(text)) is not None}
    for more in patch_results(wanted):
        found = in_common(found, more, [target.name for target in more.header.targets if target.version in wanted])
    return found


def left_out(results: Results) -> tuple[str, ...]:
    """The cases that are published, but not among these results: a patch release has no answer to them as they are now."""
    return tuple(sorted(set(_announced(published())) - set(results.header.cases)))


def patch_results(versions: Iterable[SparkVersion] | None = None) -> tuple[Results, ...]:
    """The published results of patch releases, whole files: those with one of these versions, or all."""
    files = {patch_file(version) for version in published_patches() if versions is None or version in versions}
    return tuple(Results.read(PATCHES / name) for name in sorted(files))


@cache
def published_patches() -> tuple[SparkVersion, ...]:
    """The patch releases that have published results, oldest first."""
    found = (target.version for path in PATCHES.glob("*.jsonl.xz") for target in header_of(path).targets)
    return tuple(sorted(version for version in found if version is not None))


def between(first: str, last: str) -> tuple[str, ...]:
    """Both, and the patch releases with published results between them."""
    start, end = _version(first), _version(last)
    inner = [one for one in published_patches() if start is not None and end is not None and start < one < end]
    return (first, *map(str, inner), last)


def published_releases(results: Results) -> tuple[str, ...]:
    """The releases that can be asked for in these published results, oldest first."""
    own = (target.version for target in results.header.targets)
    return tuple(map(str, sorted({version for version in (*own, *published_patches()) if version is not None})))


def patch_file(version: SparkVersion) -> str:
    """The name of the file with the published results of a patch release: ``3.jsonl.xz``. Spark 2.4 resembles 3.0, and is in its file."""
    return f"{max(version.major, 3)}.jsonl.xz"


def _announced(paths: Sequence[Path]) -> tuple[str, ...]:
    return tuple(case for path in paths for case in header_of(path).cases)


def _version(text: str) -> SparkVersion | None:
    try:
        return SparkVersion.parse(text.removeprefix("spark-"))
    except NotAVersion:
        return None
