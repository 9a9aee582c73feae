"""The compatibility matrix as a value: which case came out how on which target, with totals, a sentence and an exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from conformance.judging.verdict import Status
from reports.results.reading import Results
from reports.results.records import Cell, Target
from reports.results.status import DOES_NOT_CONFORM, GREEN, NO_RESULT


@dataclass(frozen=True)
class Matrix:
    """Cases × targets. A cell of which there is no record is ``not-run``."""

    cases: tuple[str, ...]
    """Ids, in the order in which they are shown."""
    targets: tuple[Target, ...]
    cells: Mapping[tuple[str, str], Cell]
    """By case id and target name."""

    @classmethod
    def of(cls, results: Results) -> Matrix:
        return cls(
            tuple(sorted(results.header.cases)),
            results.header.targets,
            {(cell.case, cell.target): cell for cell in results.cells},
        )

    def status(self, case: str, target: str) -> Status:
        cell = self.cells.get((case, target))
        return "not-run" if cell is None else cell.status

    @cached_property
    def families(self) -> Mapping[str, tuple[str, ...]]:
        """Family → its cases, in order; cases in no folder are the family of no name."""
        found: dict[str, list[str]] = {}
        for case in self.cases:
            found.setdefault(case.rpartition("/")[0], []).append(case)
        return {family: tuple(cases) for family, cases in found.items()}

    @cached_property
    def totals(self) -> Counter[Status]:
        """Cells per status."""
        return self.count(self.cases, (target.name for target in self.targets))

    def count(self, cases: Iterable[str], targets: Iterable[str]) -> Counter[Status]:
        """Cells per status of a part of the matrix."""
        names = tuple(targets)
        return Counter(self.status(case, target) for case in cases for target in names)

    def not_green(self) -> tuple[tuple[str, Target, Status], ...]:
        """Case, target and status of every cell that keeps the matrix from being green, by case."""
        return tuple(
            (case, target, self.status(case, target.name))
            for case in self.cases
            for target in self.targets
            if self.status(case, target.name) not in GREEN
        )

    @property
    def is_empty(self) -> bool:
        """Whether no cell says anything: there are none, or the cases are not about these versions."""
        return not any(count for status, count in self.totals.items() if status != "not-applicable")

    @property
    def exit_code(self) -> int:
        """0 where everything conforms, 1 where something does not, 3 where that cannot be said.

        An engine that does not conform is told first, for that is certain whatever else is missing. A matrix that says
        nothing at all is never green.
        """
        found = {status for status, count in self.totals.items() if count}
        if found & DOES_NOT_CONFORM:
            return 1
        if found & NO_RESULT or self.is_empty:
            return 3
        return 0


def summary(matrix: Matrix) -> str:
    """One sentence: ``74 cases × 10 versions: 700 conform, 30 differ as documented, 10 unsupported; 0 violate``."""
    size = f"{_count(len(matrix.cases), 'case')} × {_count(len(matrix.targets), 'version')}"
    if not matrix.cases or not matrix.targets:
        return f"{size}: nothing was asked, so nothing conforms"
    if matrix.is_empty:
        return f"{size}: no case is about any of these versions, so nothing conforms"
    totals = matrix.totals
    words: dict[Status, str] = {
        "conforms": _verb(totals["conforms"], "conform"),
        "differs": f"{_verb(totals['differs'], 'differ')} as documented",
        "bug": f"known bug{'s' * (totals['bug'] != 1)}",
        "unsupported": "unsupported",
        "not-applicable": "not applicable",
        "violates": _verb(totals["violates"], "violate"),
        "flaky": "flaky",
        "broken": "broken",
        "not-run": "not run",
    }
    told = {
        status: f"{totals[status]} {word}"
        for status, word in words.items()
        if totals[status] or status in ("conforms", "violates")
    }
    good = ", ".join(text for status, text in told.items() if status in GREEN)
    bad = ", ".join(text for status, text in told.items() if status not in GREEN)
    return f"{size}: {good}; {bad}"


def _verb(count: int, verb: str) -> str:
    return f"{verb}s" if count == 1 else verb


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
