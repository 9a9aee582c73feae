"""The published results, which come with the suite: of the newest release of each line, and of the usual upgrades."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reports.results.reading import Results

_BASELINES = Path(__file__).parents[1] / "baselines"
UPGRADES = _BASELINES / "upgrades.jsonl.xz"
"""What ``python -m tools.publish_upgrades`` makes of runs of ``conformance upgrade``, without what was observed."""


def published() -> tuple[Path, ...]:
    """The published results of runs."""
    return tuple(sorted(path for path in _BASELINES.glob("*.jsonl.xz") if path != UPGRADES))


def published_results() -> Results:
    """The published results, with the upgrades of the cases that have not changed in between."""
    found = Results.read_all(list(published()))
    if not UPGRADES.is_file():
        return found
    digests = {cell.case: cell.case_digest for cell in found.cells}
    upgrades = tuple(
        cell
        for cell in Results.read(UPGRADES, condensed=True).upgrades
        if digests.get(cell.case, cell.case_digest) == cell.case_digest
    )
    return replace(found, upgrades=upgrades)
