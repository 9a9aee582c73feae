"""The matrix as its page shows it: a ribbon for each case, by family, with totals and what the filters offer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from conformance.judging.verdict import Status
from reports.analysis.report import Report
from reports.html.ribbon import WORDS, Ribbon, Sign, ribbon
from reports.results.records import Target
from reports.results.status import GREEN, MARKS


@dataclass(frozen=True)
class Row:
    ribbon: Ribbon
    title: str
    tags: tuple[str, ...]
    kinds: str
    """The kinds of its signs, a word for each version."""
    behaviours: str
    """The numbers of its behaviours, a word for each version; ``-`` where there is none."""


@dataclass(frozen=True)
class Total:
    """How many cells are as expected, of how many that count."""

    good: int
    of: int

    @classmethod
    def of_counts(cls, counts: Counter[Status]) -> Total:
        all_ = sum(counts.values()) - counts["not-applicable"]
        return cls(sum(counts[status] for status in GREEN) - counts["not-applicable"], all_)

    @property
    def complete(self) -> bool:
        return self.good == self.of


@dataclass(frozen=True)
class Family:
    name: str
    rows: tuple[Row, ...]
    total: Total
    totals: tuple[Total, ...]
    """By version."""


@dataclass(frozen=True)
class Key:
    """An entry of the legend, and of the filter by status."""

    kind: str
    glyph: str
    word: str
    told: str
    count: int


@dataclass(frozen=True)
class MatrixPage:
    targets: tuple[Target, ...]
    families: tuple[Family, ...]
    totals: tuple[Total, ...]
    total: Total
    keys: tuple[Key, ...]
    tags: tuple[str, ...]


def matrix_page(report: Report) -> MatrixPage:
    matrix = report.matrix
    names = [target.name for target in report.targets]
    families = tuple(
        Family(
            family or "(no family)",
            tuple(_row(report, case) for case in cases),
            Total.of_counts(matrix.count(cases, names)),
            tuple(Total.of_counts(matrix.count(cases, [name])) for name in names),
        )
        for family, cases in matrix.families.items()
    )
    rows = [row for family in families for row in family.rows]
    return MatrixPage(
        targets=report.targets,
        families=families,
        totals=tuple(Total.of_counts(matrix.count(matrix.cases, [name])) for name in names),
        total=Total.of_counts(matrix.totals),
        keys=tuple(_keys(place.sign for row in rows for place in row.ribbon.places)),
        tags=tuple(sorted({tag for row in rows for tag in row.tags})),
    )


def _row(report: Report, id: str) -> Row:
    found = ribbon(report, id)
    case = report.case(id)
    return Row(
        ribbon=found,
        title=report.title(id),
        tags=case.tags if case is not None else (),
        kinds=" ".join(place.sign.status for place in found.places),
        behaviours=" ".join("-" if place.behaviour is None else str(place.behaviour) for place in found.places),
    )


def _keys(signs: Iterable[Sign]) -> Iterable[Key]:
    counts = Counter(sign.status for sign in signs)
    for status, mark in MARKS.items():
        if counts[status]:
            yield Key(status, mark.glyph, WORDS[status], mark.word, counts[status])
