"""Make ``pairs.xz`` and ``query-needs.xz`` in ``reports/baselines``: what the gate says of each two published releases, and what
a query needs to meet that.

    python -m tools.publish_pairs

They follow from the other published results and from the cases: make them again whenever one of these changes.
"""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

from pydantic import TypeAdapter

from conformance.suite import discovery
from reports.analysis.checkpoints import UpgradeMatrix, by_pair
from reports.analysis.gate import KnownPair, known_pair
from reports.analysis.job_relevance import QUERY_NEEDS, NeedsAndBugs, bug_cells, query_needs
from reports.analysis.published_pairs import PAIRS
from reports.analysis.report import Report
from reports.results.compression import compressed
from reports.results.published import left_out, published_results
from reports.results.records import Cell


def content(report: Report) -> bytes:
    """Return the plain content of the file: of the newest release of each line and those of later ones."""
    read, matrix = report.results, report.matrix
    own = {**report.cases, **report.changed}
    targets = sorted((version, target) for target in report.targets if (version := target.version))
    newest = [target for _, target in reversed(targets)]
    lines: dict[str, bytes] = {}
    for at, before in enumerate(newest):
        # As the gate reads them: those that the earlier version wrote.
        part = replace(read, upgrades=tuple(cell for cell in read.upgrades if cell.origin == before.name))
        upgrades = UpgradeMatrix(by_pair(part.upgrades), own)
        for after in newest[:at]:
            known = known_pair(part, before.spark, after.spark, [*own.values()], matrix, left_out(read), upgrades)
            dumped = TypeAdapter(KnownPair).dump_json(_condensed(known), exclude_defaults=True)
            lines[f"{before.spark}..{after.spark}"] = dumped
    return b"\n".join((" ".join(lines).encode(), *lines.values()))


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


def needs_and_bugs(report: Report) -> bytes:
    """Return the plain content of the other file: of the same releases."""
    targets = [target for _, target in sorted((target.version, target) for target in report.targets if target.version)]
    cases = {**report.cases, **report.changed}
    known = NeedsAndBugs(query_needs(cases.values()), tuple(bug_cells(report.matrix, targets)))
    return TypeAdapter(NeedsAndBugs).dump_json(known, exclude_defaults=True)


def main() -> None:
    """Write both files."""
    report = Report.of(published_results(), discovery.load())
    for file, plain in ((PAIRS, content(report)), (QUERY_NEEDS, needs_and_bugs(report))):
        file.write_bytes(compressed(BytesIO(plain)))


if __name__ == "__main__":
    main()
