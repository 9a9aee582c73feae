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
    """The known bugs that cases of the matrix show on these versions, as every page counts them."""
    by_name = {target.name: target for target in targets}
    for cells in matrix.known_bugs(by_name.values()).values():
        case, shown_on = [*cells][-1]
        bug, differs = matrix.known_bug(case, by_name[shown_on]), cells[case, shown_on].differs
        if bug is not None and differs is not None:
            versions = tuple(dict.fromkeys(by_name[name].spark for _, name in cells))
            yield KnownHere(versions, differs.because or "", bug, tuple(dict.fromkeys(case for case, _ in cells)))
