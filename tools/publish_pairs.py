"""Make the files of ``reports/baselines/pairs``: what the gate says of each two published releases.

    python -m tools.publish_pairs

They follow from the other published results and from the cases: make them again whenever one of these changes.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from dataclasses import replace

from pydantic import TypeAdapter

from conformance.suite import discovery
from reports.analysis.checkpoints import UpgradeMatrix, by_pair
from reports.analysis.gate import KnownPair, known_pair
from reports.analysis.published_pairs import PAIRS, SUFFIX
from reports.analysis.report import Report
from reports.results.published import left_out, published_results
from reports.results.records import Cell


def contents(report: Report) -> Iterator[tuple[str, bytes]]:
    """Yield each release but the newest, with the content of its file: of the newest of each line."""
    read, matrix = report.results, report.matrix
    own = {**report.cases, **report.changed}
    targets = sorted((version, target) for target in report.targets if (version := target.version) is not None)
    for at, (_, before) in enumerate(targets[:-1]):
        # As the gate reads them: those that the earlier version wrote.
        part = replace(read, upgrades=tuple(cell for cell in read.upgrades if cell.origin == before.name))
        upgrades = UpgradeMatrix(by_pair(part.upgrades), own)
        later = [target.spark for _, target in reversed(targets[at + 1 :])]
        known = (
            known_pair(part, before.spark, after, [*own.values()], matrix, left_out(read), upgrades) for after in later
        )
        dumped = (TypeAdapter(KnownPair).dump_json(_condensed(pair), exclude_defaults=True) for pair in known)
        yield before.spark, b"\n".join((" ".join(later).encode(), *dumped))


def _condensed(known: KnownPair) -> KnownPair:
    """Leave out what was observed, and the digests of cases and answers."""
    compared = known.compared
    changes = tuple(
        replace(change, before=_cell(change.before), after=_cell(change.after)) for change in compared.changes
    )
    checkpoints = replace(known.checkpoints, cells=tuple(map(_cell, known.checkpoints.cells)))
    return replace(known, compared=replace(compared, changes=changes), checkpoints=checkpoints)


def _cell(cell: Cell) -> Cell:
    left_out = {"observation", "runs", "duration_ms", "reused", "expansion", "behaviour"}
    return Cell.model_validate(cell.model_dump(exclude=left_out) | {"case_digest": ""})


def main() -> None:
    """Write the files."""
    PAIRS.mkdir(exist_ok=True)
    for before, content in contents(Report.of(published_results(), discovery.load())):
        (PAIRS / f"{before}{SUFFIX}").write_bytes(lzma.compress(content, preset=9))


if __name__ == "__main__":
    main()
