"""Make ``pairs.xz`` and ``query-needs.xz`` in ``reports/baselines``: what the gate says of each two published releases, and what
a query needs to meet that.

    python -m tools.publish_pairs

They follow from the other published results and from the cases: make them again whenever one of these changes. That takes a minute or
two.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from io import BytesIO
from itertools import combinations

from pydantic import TypeAdapter

from conformance.suite import discovery
from conformance.suite.features import needs
from reports.analysis.checkpoints import UpgradeMatrix, by_pair
from reports.analysis.gate import KnownPair, known_pair
from reports.analysis.job_relevance import QUERY_NEEDS, NeedsAndBugs, bug_cells, query_needs
from reports.analysis.matrix import Matrix
from reports.analysis.published_pairs import PAIRS
from reports.analysis.report import Report
from reports.results.compression import compressed
from reports.results.published import in_common, left_out, patch_results, published_results
from reports.results.reading import Results
from reports.results.records import Cell

_NAMES = 6
"""The number of the first value: the numbers before it mean names."""


def known_pairs(report: Report, wanted: Callable[[str], bool] | None = None) -> Iterator[tuple[str, KnownPair]]:
    """Yield each wanted pair of releases, ``3.5.9..4.3.0``, or all, with what is known of it."""
    own = {**report.cases, **report.changed}
    features, patches = needs(own.values()), patch_results()
    targets = [target for results in (report.results, *patches) for target in results.header.targets]
    releases = {version: target for target in targets if (version := target.version) is not None}
    newest = {target.version for target in report.targets}
    written = cache(lambda line: _written_by(line, report.results))
    upgrades: dict[object, UpgradeMatrix] = {}
    condensed = _Condensed()
    for before, after in combinations(sorted(releases), 2):
        if wanted is not None and not wanted(f"{before}..{after}"):
            continue
        # As the gate reads them: those that the earlier version wrote, and the cases that both ran as they are now.
        read = written(before.line)
        for more in patches:
            ends = {releases[end].name for end in {before, after} - newest}
            if ends := ends & {target.name for target in more.header.targets}:
                read = in_common(read, more, ends)
        cases = {case: own[case] for case in read.header.cases if case in own}
        if (group := (before.line, *cases)) not in upgrades:
            upgrades[group] = UpgradeMatrix(by_pair(read.upgrades), cases)
        matrix = replace(Matrix.of(read), targets=(releases[before], releases[after]))
        known = known_pair(read, str(before), str(after), [*cases.values()], matrix, left_out(read), upgrades[group])
        own_needs = {case: features[case] for case in cases if case in features}
        yield f"{before}..{after}", replace(condensed.pair(known), needs=own_needs)


def _written_by(line: str, results: Results) -> Results:
    upgrades = (cell for cell in results.upgrades if f"{cell.origin}".startswith(f"spark-{line}."))
    return replace(results, upgrades=tuple(upgrades))


class _Condensed:
    """Pairs without what was observed, and without the digests of cases and answers."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Cell, Cell]] = {}

    def pair(self, known: KnownPair) -> KnownPair:
        compared = known.compared
        changes = tuple(
            replace(change, before=self._cell(change.before), after=self._cell(change.after))
            for change in compared.changes
        )
        checkpoints = replace(known.checkpoints, cells=tuple(map(self._cell, known.checkpoints.cells)))
        return replace(known, compared=replace(compared, changes=changes), checkpoints=checkpoints)

    def _cell(self, cell: Cell) -> Cell:
        if id(cell) not in self._known:
            left_out = {"observation", "runs", "duration_ms", "reused", "expansion", "behaviour"}
            condensed = Cell.model_validate(cell.model_dump(exclude=left_out) | {"case_digest": ""})
            self._known[id(cell)] = cell, condensed
        return self._known[id(cell)][1]


def content(pairs: Iterator[tuple[str, KnownPair]]) -> bytes:
    """Return the plain content of the file of pairs, as `published_pair` reads it."""
    first: dict[str, list[object]] = {}
    values: dict[object, int] = {}
    dumped = TypeAdapter(KnownPair)

    def number(value: object, names: Mapping[str, int], ran: Mapping[str, int]) -> int:
        """Return the number of a value; ``ran``: the names in records of checkpoints."""
        if isinstance(value, str) and value in names:
            return names[value]
        key: object = type(value), value
        if isinstance(value, list):
            key = tuple([number(one, names, ran) for one in value])
        elif isinstance(value, dict):
            keys = number([*value], {}, {})
            key = (-keys, *[number(one, ran if field == "cells" else names, ran) for field, one in value.items()])
        elif isinstance(value, str):
            key = value
        return values.setdefault(key, len(values) + _NAMES)

    for pair, known in pairs:
        ran = known.checkpoints.ran or ()
        ends = pair.split("..")
        names = {name: at for at, name in enumerate((*(f"spark-{end}" for end in ends), *ends))}
        of_checkpoints = {name: at for at, name in enumerate(ran, len(names))}
        value = dumped.dump_python(known, mode="json", exclude_defaults=True)
        first[pair] = [number(value, names, of_checkpoints), *ran]
    lines = (first, *(key[1] if isinstance(key, tuple) and key and isinstance(key[0], type) else key for key in values))
    return "\n".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) for line in lines).encode()


def needs_and_bugs(report: Report) -> bytes:
    """Return the plain content of the other file: of the newest release of each line."""
    targets = [target for _, target in sorted((target.version, target) for target in report.targets if target.version)]
    cases = {**report.cases, **report.changed}
    known = NeedsAndBugs(query_needs(cases.values()), tuple(bug_cells(report.matrix, targets)))
    return TypeAdapter(NeedsAndBugs).dump_json(known, exclude_defaults=True)


def main() -> None:
    """Write both files."""
    report = Report.of(published_results(), discovery.load())
    pairs = content(known_pairs(report))
    for file, plain in ((PAIRS, pairs), (QUERY_NEEDS, needs_and_bugs(report))):
        file.write_bytes(compressed(BytesIO(plain)))


if __name__ == "__main__":
    main()
