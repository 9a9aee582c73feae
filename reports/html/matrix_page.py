"""The page of the matrix: a ribbon for each case, by family, with totals and the values of the filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from reports.analysis.matrix import CellTotal
from reports.analysis.report import Report
from reports.html.ribbon import WORDS, CellSign, Ribbon, ribbon
from reports.html.search_words import search_words
from reports.results.records import Target
from reports.results.status import MARKS


@dataclass(frozen=True)
class MatrixRow:
    ribbon: Ribbon
    title: str
    words: str
    """What it is found by besides its title, separated by spaces."""
    tags: tuple[str, ...]
    kinds: str
    """The status on each version, separated by spaces."""
    behaviours: str
    """The number of the behaviour on each version, separated by spaces; ``-`` without one."""


@dataclass(frozen=True)
class FamilyRows:
    name: str
    rows: tuple[MatrixRow, ...]
    total: CellTotal
    totals: tuple[CellTotal, ...]
    """By version."""


@dataclass(frozen=True)
class LegendEntry:
    """An entry of the legend and of the status filter."""

    kind: str
    glyph: str
    word: str
    description: str
    count: int


@dataclass(frozen=True)
class MatrixPage:
    targets: tuple[Target, ...]
    """Newest first."""
    families: tuple[FamilyRows, ...]
    totals: tuple[CellTotal, ...]
    total: CellTotal
    legend: tuple[LegendEntry, ...]
    tags: tuple[str, ...]


def matrix_page(report: Report) -> MatrixPage:
    matrix = report.matrix
    targets = report.targets[::-1]
    names = [target.name for target in targets]
    families = tuple(
        FamilyRows(
            family or "(no family)",
            tuple(_row(report, case) for case in cases),
            CellTotal.of_counts(matrix.count(cases, names)),
            tuple(CellTotal.of_counts(matrix.count(cases, [name])) for name in names),
        )
        for family, cases in matrix.families.items()
    )
    rows = [row for family in families for row in family.rows]
    return MatrixPage(
        targets=targets,
        families=families,
        totals=tuple(CellTotal.of_counts(matrix.by_target[name]) for name in names),
        total=CellTotal.of_counts(matrix.parts[0].totals),
        legend=tuple(_legend(place.sign for row in rows for place in row.ribbon.cells)),
        tags=tuple(sorted({tag for row in rows for tag in row.tags})),
    )


def _row(report: Report, id: str) -> MatrixRow:
    found = ribbon(report, id, newest_first=True)
    case = report.case(id)
    return MatrixRow(
        ribbon=found,
        title=report.title(id),
        words=search_words(case, report.behaviours[id]),
        tags=case.tags if case is not None else (),
        kinds=" ".join(place.sign.status for place in found.cells),
        behaviours=" ".join("-" if place.behaviour is None else str(place.behaviour) for place in found.cells),
    )


def _legend(signs: Iterable[CellSign]) -> Iterable[LegendEntry]:
    counts = Counter(sign.status for sign in signs)
    for status, mark in MARKS.items():
        if counts[status]:
            yield LegendEntry(status, mark.glyph, WORDS[status], mark.word, counts[status])
