"""Which versions behave alike on a case, and in which cells two results files differ.

Two cells are compared by `conformance.judging.comparison`, once for each two answers.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TypeVar

from conformance.core.errors import WrongUsage
from conformance.core.wording import counted
from conformance.judging import comparison
from conformance.judging.comparison import (
    BehaviourChange,
    Divergence,
    code_of_comparison,
    difference_of_statuses,
    has_behaviour,
)
from reports.results.reading import Results, StoredCell
from reports.results.records import Cell, TargetRecord

_Compared = TypeVar("_Compared")


def once_for_each_answer(compared: Callable[[Cell, Cell], _Compared]) -> Callable[[Cell, Cell], _Compared]:
    """Compare two cells once for all that have the same two answers: the releases of a line mostly do.

    The comparison is kept as long as the file of the first cell.
    """

    @wraps(compared)
    def once(a: Cell, b: Cell) -> _Compared:
        if not (isinstance(a, StoredCell) and isinstance(b, StoredCell)) or None in (a.behaviour, b.behaviour):
            return compared(a, b)
        known: dict[object, _Compared] = a.file_of_results.compared
        key = compared, a.answer, b.answer
        if key not in known:
            known[key] = compared(a, b)
        return known[key]

    return once


@dataclass(frozen=True)
class Behaviour:
    """Cells of a case with equivalent answers, oldest version first."""

    cells: tuple[Cell, ...]

    @property
    def shown(self) -> Cell:
        """The cell whose evidence stands for all: the newest."""
        return self.cells[-1]

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(cell.target for cell in self.cells)


difference = once_for_each_answer(comparison.difference)


def same_behaviour(a: Cell, b: Cell) -> bool:
    return (a.behaviour == b.behaviour and a.columns == b.columns) or difference(a, b) is None


def first_difference(a: Cell, b: Cell) -> Divergence:
    """Find the first place where two cells that do not show the same behaviour differ."""
    return difference(a, b) or difference_of_statuses(a, b)


@once_for_each_answer
def behaviour_change(before: Cell, after: Cell) -> BehaviourChange:
    """Classify what changes between two cells that do not show the same behaviour."""
    return comparison.behaviour_change(before, after, first_difference(before, after))


def behaviours(cells: Sequence[Cell]) -> tuple[Behaviour, ...]:
    """Return the distinct behaviours of the cells of a case, given oldest first, in the order of their newest."""
    groups: list[list[Cell]] = []
    for cell in reversed([cell for cell in cells if has_behaviour(cell)]):
        # The older first, as everywhere: then each two answers are compared once.
        group = next((group for group in groups if same_behaviour(cell, group[0])), None)
        if group is None:
            groups.append([cell])
        else:
            group.append(cell)
    return tuple(Behaviour(tuple(reversed(group))) for group in groups)


class NothingInCommon(WrongUsage):
    def __init__(self, a: Results, b: Results) -> None:
        targets = [", ".join(target.name for target in results.header.targets) for results in (a, b)]
        super().__init__(
            f"nothing to compare: one file has {counted(len(a.header.cases), 'case')} on {targets[0]}, "
            f"the other {counted(len(b.header.cases), 'case')} on {targets[1]}; no case ran on the same Spark version in both"
        )


@dataclass(frozen=True)
class DifferentCell:
    case: str
    a: Cell
    b: Cell
    divergence: Divergence


@dataclass(frozen=True)
class Difference:
    pairs: tuple[tuple[TargetRecord, TargetRecord], ...]
    """Each Spark version, as a target of each file."""
    compared: int
    """The number of cells in both files whose case is the same, with an answer in one of them."""
    different: tuple[DifferentCell, ...]
    changed: tuple[str, ...]
    """The cases that changed between the two runs; their cells are not compared."""
    only_a: int
    only_b: int
    silent: int
    """The number of cells in both files without an answer in either."""
    checkpoints: int
    """The number of checkpoints in the files, which are not compared."""

    @property
    def exit_code(self) -> int:
        asked = self.compared + self.silent + len(self.changed)
        return code_of_comparison(different=bool(self.different), asked=asked, compared=self.compared)


def compare(a: Results, b: Results) -> Difference:
    """Compare the behaviour of each cell; durations and error texts do not count. Raises NothingInCommon: no cell is in both files.

    Targets are paired by name, or by Spark version if only one target has it; a vendor's suffix is ignored.
    """
    pairs = tuple(_pairs(a, b))
    cells = [{(cell.case, cell.target): cell for cell in results.cells} for results in (a, b)]
    both = [
        (first, second)
        for target, other in pairs
        for case in a.header.cases
        if (first := cells[0].get((case, target.name))) and (second := cells[1].get((case, other.name)))
    ]
    if not both:
        raise NothingInCommon(a, b)
    changed = sorted({first.case for first, second in both if first.case_digest != second.case_digest})
    same_case = [(first, second) for first, second in both if first.case_digest == second.case_digest]
    answered = [pair for pair in same_case if any(map(has_behaviour, pair))]
    different = tuple(
        DifferentCell(first.case, first, second, first_difference(first, second))
        for first, second in answered
        if not same_behaviour(first, second)
    )
    return Difference(
        pairs=pairs,
        compared=len(answered),
        different=different,
        changed=tuple(changed),
        only_a=len(a.cells) - len(both),
        only_b=len(b.cells) - len(both),
        silent=sum(
            not any(map(has_behaviour, pair)) and {cell.status for cell in pair} != {"not-applicable"}
            for pair in same_case
        ),
        checkpoints=len(a.upgrades) + len(b.upgrades),
    )


def _pairs(a: Results, b: Results) -> Iterator[tuple[TargetRecord, TargetRecord]]:
    named = {target.name: target for target in b.header.targets}
    versions = Counter(target.version for target in b.header.targets)
    by_version = {target.version: target for target in b.header.targets if versions[target.version] == 1}
    for target in a.header.targets:
        other = named.get(target.name) or by_version.get(target.version)
        if other is not None:
            yield target, other
