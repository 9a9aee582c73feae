"""The compatibility matrix: the result of each case on each target, with totals, a summary and an exit code."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Self

from conformance.core.wording import counted
from conformance.judging.comparison import has_behaviour
from conformance.judging.verdict import Status
from reports.analysis.equivalence import Behaviour, behaviours
from reports.results.errors import CellKey
from reports.results.evidence import answers_policies
from reports.results.known_bug import BugIdentity, KnownBug, identity
from reports.results.reading import Results
from reports.results.records import Cell, DocumentedDifference, TargetRecord
from reports.results.status import GREEN, MARKS, exit_code_of


@dataclass(frozen=True)
class CellTotal:
    """The number of cells that apply to their version, of those that are as expected, and of those that show a known bug."""

    good: int
    """The number of cells as expected, without known bugs."""
    of: int
    bugs: int = 0

    @classmethod
    def of_counts(cls, counts: Counter[Status]) -> Self:
        outside = counts["not-applicable"]
        bugs = counts["bug"]
        return cls(sum(counts[status] for status in GREEN) - outside - bugs, sum(counts.values()) - outside, bugs)

    @property
    def missing(self) -> int:
        """The number of cells that are neither as expected nor a known bug."""
        return self.of - self.good - self.bugs

    @property
    def complete(self) -> bool:
        return self.missing == 0

    def __str__(self) -> str:
        """``447/447``; with known bugs ``434 · ▲ 13``, and ``430/447 · ▲ 13`` if that is not all."""
        if not self.bugs:
            return f"{self.good}/{self.of}"
        return f"{self.good}{'' if self.complete else f'/{self.of}'} · {MARKS['bug'].glyph} {self.bugs}"


@dataclass(frozen=True)
class ShownBug:
    because: str
    bug: KnownBug
    cases: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Matrix:
    """Cases × targets. A cell without a record is ``not-run``."""

    cases: tuple[str, ...]
    """Ids, in the order they are shown."""
    targets: tuple[TargetRecord, ...]
    cells: Mapping[tuple[str, str], Cell]

    @classmethod
    def of(cls, results: Results) -> Self:
        return cls(
            tuple(sorted(results.header.cases)),
            results.header.targets,
            {(cell.case, cell.target): cell for cell in results.cells},
        )

    def cell(self, case: str, target: TargetRecord) -> Cell | None:
        return self.cells.get((case, target.name))

    @cached_property
    def answers(self) -> Mapping[str, Sequence[tuple[int, Cell] | None]]:
        """Maps each target to its cells in the order of the cases, each with a number; None for a cell without a behaviour.

        Cells with one number answered one text of a case with one digest and the same columns.
        """
        numbers: dict[object, int] = {}

        def answer(case: str, cell: Cell | None) -> tuple[int, Cell] | None:
            if cell is None or not has_behaviour(cell):
                return None
            return numbers.setdefault((case, cell.case_digest, cell.behaviour, cell.columns), len(numbers)), cell

        return {target.name: [answer(case, self.cell(case, target)) for case in self.cases] for target in self.targets}

    @cached_property
    def kinds(self) -> Mapping[str, int]:
        """Maps each target to a number that those share from and to which every change is the same."""
        numbers: dict[object, int] = {}
        return {target.name: numbers.setdefault(tuple(self._behaves(target)), len(numbers)) for target in self.targets}

    def _behaves(self, target: TargetRecord) -> Iterator[object]:
        for case, answer in zip(self.cases, self.answers[target.name], strict=True):
            if answer is None:
                yield self.status(case, target.name)
            else:
                yield answer[0], answer[1].status, answer[1].differs, self.known_bug(case, target)

    def status(self, case: str, target: str) -> Status:
        cell = self.cells.get((case, target))
        return "not-run" if cell is None else cell.status

    @cached_property
    def places(self) -> Mapping[str, int]:
        return {case: at for at, case in enumerate(self.cases)}

    @cached_property
    def families(self) -> Mapping[str, tuple[str, ...]]:
        """Maps each family to its cases, in order; cases outside a folder have the family ``""``."""
        families: dict[str, list[str]] = {}
        for case in self.cases:
            families.setdefault(case.rpartition("/")[0], []).append(case)
        return {family: tuple(cases) for family, cases in families.items()}

    @cached_property
    def behaviours(self) -> Mapping[str, tuple[Behaviour, ...]]:
        rows = ((case, [self.cell(case, target) for target in self.targets]) for case in self.cases)
        return {case: behaviours([cell for cell in cells if cell is not None]) for case, cells in rows}

    @cached_property
    def bugs(self) -> Mapping[str, tuple[DocumentedDifference, ...]]:
        """Maps each case that shows known bugs on some version to them."""
        bugs: dict[str, dict[DocumentedDifference, None]] = {}
        for (case, _), cell in self.cells.items():
            if cell.status == "bug" and cell.differs is not None:
                bugs.setdefault(case, {})[cell.differs] = None
        return {case: tuple(entries) for case, entries in bugs.items()}

    def known_bug(self, case: str, target: TargetRecord) -> KnownBug | None:
        return KnownBug.of(self.cell(case, target), target.spark, self.bugs.get(case, ()))

    def known_bugs(self, targets: Iterable[TargetRecord]) -> Mapping[BugIdentity, Mapping[CellKey, Cell]]:
        """Return each known bug that these versions show with the cells that show it, in the order of cases, then of versions."""
        names = [target.name for target in targets]
        bugs: dict[BugIdentity, dict[CellKey, Cell]] = {}
        for key in product(filter(self.bugs.__contains__, self.cases), names):
            cell = self.cells.get(key)
            if cell is not None and cell.status == "bug" and cell.differs is not None:
                bugs.setdefault(identity(cell.differs), {})[cell.key] = cell
        return bugs

    def shown_bugs(self, target: TargetRecord) -> tuple[ShownBug, ...]:
        """Return the known bugs of a version, those that the most cases show first."""
        return tuple(bug for _, bug in self._shown_bugs(target))

    def bugs_of_both(self, before: TargetRecord, after: TargetRecord) -> tuple[ShownBug, ...]:
        """Return the known bugs that both versions have, whichever cases show them, as the later version shows them."""
        earlier = self.known_bugs([before])
        return tuple(bug for identity, bug in self._shown_bugs(after) if identity in earlier)

    def new_bugs(self, before: TargetRecord, after: TargetRecord) -> tuple[ShownBug, ...]:
        """Return the known bugs of the later version that no case shows on the earlier one."""
        earlier = self.known_bugs([before])
        return tuple(bug for identity, bug in self._shown_bugs(after) if identity not in earlier)

    def _shown_bugs(self, target: TargetRecord) -> Iterator[tuple[BugIdentity, ShownBug]]:
        for bug, cells in sorted(self.known_bugs([target]).items(), key=lambda item: -len(item[1])):
            first = next(iter(cells.values()))
            known = self.known_bug(first.case, target)
            if known is not None and first.differs is not None:
                yield bug, ShownBug(first.differs.because or "", known, tuple(cell.case for cell in cells.values()))

    @cached_property
    def totals(self) -> Counter[Status]:
        return sum(self.by_target.values(), Counter())

    @cached_property
    def by_target(self) -> Mapping[str, Counter[Status]]:
        return {target.name: self.count(self.cases, [target.name]) for target in self.targets}

    @cached_property
    def parts(self) -> tuple[Self, ...]:
        """Spark's columns with Spark's cases, then those on watermark policies with theirs: they are never counted together.

        A matrix with columns of one kind only is its own part.
        """
        on_policies = tuple(target for target in self.targets if answers_policies(target))
        of_spark = tuple(target for target in self.targets if not answers_policies(target))
        if not on_policies or not of_spark:
            return (self,)
        others = {
            case
            for cases in self.families.values()
            # One that applies to no column, as a rule of Spark's own among policies, stays with its family.
            if any(self._applies(case, on_policies) for case in cases)
            for case in cases
            if not self._applies(case, of_spark)
        }
        return (
            replace(self, cases=tuple(case for case in self.cases if case not in others), targets=of_spark),
            replace(self, cases=tuple(case for case in self.cases if case in others), targets=on_policies),
        )

    def _applies(self, case: str, targets: Iterable[TargetRecord]) -> bool:
        return any(self.status(case, target.name) != "not-applicable" for target in targets)

    def count(self, cases: Iterable[str], targets: Iterable[str]) -> Counter[Status]:
        names = tuple(targets)
        return Counter(self.status(case, target) for case in cases for target in names)

    def not_green(self) -> tuple[tuple[str, TargetRecord, Status], ...]:
        cells = ((case, target, self.status(case, target.name)) for case, target in product(self.cases, self.targets))
        return tuple(cell for cell in cells if cell[2] not in GREEN)

    @property
    def is_empty(self) -> bool:
        """Whether no cell has a result: there are none, or no case applies to these versions."""
        return not any(count for status, count in self.totals.items() if status != "not-applicable")

    @property
    def exit_code(self) -> int:
        """As `exit_code_of`: an empty matrix is never green."""
        return exit_code_of(status for status, count in self.totals.items() if count)


def summary(matrix: Matrix) -> str:
    """Return one sentence: ``74 cases × 10 versions: 700 conform, 30 differ as documented, 10 unsupported; 0 violate``.

    With columns that answer cases on watermark policies, another line for those.
    """
    return "\n".join(map(_sentence, matrix.parts))


def _sentence(matrix: Matrix) -> str:
    kind = "engine" if any(answers_policies(target) for target in matrix.targets) else "version"
    size = f"{counted(len(matrix.cases), 'case')} × {counted(len(matrix.targets), kind)}"
    if not matrix.cases or not matrix.targets:
        return f"{size}: nothing ran"
    if matrix.is_empty:
        return f"{size}: no case applies to these versions"
    totals = matrix.totals
    words: dict[Status, str] = {status: status.replace("-", " ") for status in MARKS} | {
        "conforms": _verb(totals["conforms"], "conform"),
        "differs": f"{_verb(totals['differs'], 'differ')} as documented",
        "bug": f"known bug{'s' * (totals['bug'] != 1)}",
        "violates": _verb(totals["violates"], "violate"),
    }
    parts = {
        status: f"{totals[status]:,} {word}"
        for status, word in words.items()
        if totals[status] or status in ("conforms", "violates")
    }
    good = ", ".join(text for status, text in parts.items() if status in GREEN)
    bad = ", ".join(text for status, text in parts.items() if status not in GREEN)
    return f"{size}: {good}; {bad}"


def _verb(count: int, verb: str) -> str:
    return f"{verb}s" if count == 1 else verb
