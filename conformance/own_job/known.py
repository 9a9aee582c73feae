"""What the published results know of two versions that a query with certain features may meet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from conformance.core.case import Case
from conformance.core.observation import ErrorSeen
from conformance.core.versions import SparkVersion
from conformance.suite.discovery import Suite
from reports.analysis.change import Change, changes
from reports.analysis.features import UNSEEN, needs, relevance
from reports.analysis.gate import NoSuchVersion, find
from reports.analysis.matrix import Matrix
from reports.results.known_bug import KnownBug
from reports.results.reading import Results
from reports.results.records import DocumentedUpgrade, Target


@dataclass(frozen=True)
class KnownHere:
    """A known bug of one of the versions."""

    spark: tuple[str, ...]
    """The versions that have it, of the two."""
    because: str
    bug: KnownBug
    cases: tuple[str, ...]
    """Cases of the suite that show it, all of whose features the query has."""


@dataclass(frozen=True)
class Known:
    """What is published about both versions."""

    before: Target
    after: Target
    """Each the version itself or, if that has no published results, the newest of its line that has."""
    bugs: tuple[KnownHere, ...]
    changes: tuple[Change, ...]
    """Worst first; of cases all of whose features the query has."""
    refusals: Mapping[str, DocumentedUpgrade]
    """Class of an error → what cases document where a checkpoint is refused with it between these versions."""

    def documented(self, error: ErrorSeen | None) -> DocumentedUpgrade | None:
        """Why a checkpoint is refused with this error, and the workaround."""
        return self.refusals.get(error.name) if error is not None else None


def known(
    results: Results, suite: Suite, before: SparkVersion, after: SparkVersion, uses: tuple[str, ...]
) -> Known | None:
    """What concerns a query that uses these features.

    Args:
        results: the published ones.
        suite: its cases say which features they need.

    Returns:
        None if one of the lines has no published results.
    """
    a, b = _published(results, before), _published(results, after)
    if a is None or b is None:
        return None
    ran = frozenset(results.header.cases)
    cases = sorted(concerned((case for case in suite.cases if case.id in ran), frozenset(uses)))
    matrix = replace(Matrix.of(results), cases=tuple(cases))
    found = () if a == b else changes(matrix, a, b).changes
    refusals = {
        cell.error.name: cell.entry
        for cell in results.upgrades
        if (cell.origin, cell.to) == (a.name, b.name) and cell.error is not None and cell.entry is not None
    }
    return Known(
        a,
        b,
        tuple(_bugs(matrix, (a, b))),
        tuple(change for change in found if change.met_by_running_queries),
        refusals,
    )


def _published(results: Results, version: SparkVersion) -> Target | None:
    for asked in (str(version), version.line):
        try:
            return find(results, asked)
        except NoSuchVersion:
            continue
    return None


def concerned(cases: Iterable[Case], uses: frozenset[str]) -> Iterator[str]:
    """The cases all of whose features the query has; of a query without a plan nothing is known."""
    for case, features in needs(cases).items() if uses else ():
        if relevance(set(features).difference(UNSEEN), uses) == "all":
            yield case


def _bugs(matrix: Matrix, targets: tuple[Target, Target]) -> Iterator[KnownHere]:
    """Each ticket, or bug without one, once."""
    shown: dict[tuple[str | None, str], list[tuple[str, Target, KnownBug]]] = {}
    for case in matrix.cases:
        for target in dict.fromkeys(targets):
            bug, cell = matrix.known_bug(case, target), matrix.cells.get((case, target.name))
            if bug is not None and cell is not None and cell.differs is not None:
                because = cell.differs.because or ""
                shown.setdefault((bug.link, "" if bug.link else because), []).append((case, target, bug))
    for found in shown.values():
        last = found[-1]
        differs = matrix.cells[last[0], last[1].name].differs
        yield KnownHere(
            tuple(dict.fromkeys(target.spark for _, target, _ in found)),
            (differs.because if differs is not None else None) or "",
            last[2],
            tuple(dict.fromkeys(case for case, _, _ in found)),
        )
