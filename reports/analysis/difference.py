"""Two results files compared: which cells have different answers, and where the answers first differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from conformance.core.errors import WrongUsage
from conformance.core.wording import counted
from conformance.judging.divergence import Divergence
from reports.analysis.equivalence import first_difference, same_behaviour
from reports.results.reading import Results
from reports.results.records import Cell, Target


class NothingInCommon(WrongUsage):
    """No cell is in both files."""

    def __init__(self, a: Results, b: Results) -> None:
        targets = [", ".join(target.name for target in one.header.targets) for one in (a, b)]
        super().__init__(
            f"nothing to compare: one file has {counted(len(a.header.cases), 'case')} on {targets[0]}, "
            f"the other {counted(len(b.header.cases), 'case')} on {targets[1]}; no case ran on the same Spark version in both"
        )


@dataclass(frozen=True)
class DifferentCell:
    """A cell with a different answer in each file."""

    case: str
    a: Cell
    b: Cell
    divergence: Divergence


@dataclass(frozen=True)
class Difference:
    """The result of comparing two files."""

    pairs: tuple[tuple[Target, Target], ...]
    """Each Spark version, as a target of each file."""
    compared: int
    """Number of cells in both files whose case is the same."""
    different: tuple[DifferentCell, ...]
    changed: tuple[str, ...]
    """Cases that changed between the two runs; their cells are not compared."""
    only_a: int
    """Number of cells only in the first file."""
    only_b: int
    silent: int
    """Number of compared cells without an answer in either file."""

    @property
    def exit_code(self) -> int:
        """0 if every compared cell has the same answer in both files, else 1."""
        return 1 if self.different else 0


def compare(a: Results, b: Results) -> Difference:
    """Compare the behaviour of each cell; durations and error texts do not count.

    Targets are paired by name, or by Spark version if only one target has it; a vendor's suffix is ignored.

    Raises:
        NothingInCommon: no cell is in both files.
    """
    pairs = tuple(_pairs(a, b))
    cells = [{(cell.case, cell.target): cell for cell in one.cells} for one in (a, b)]
    both = [
        (first, second)
        for one, other in pairs
        for case in a.header.cases
        if (first := cells[0].get((case, one.name))) and (second := cells[1].get((case, other.name)))
    ]
    if not both:
        raise NothingInCommon(a, b)
    changed = sorted({first.case for first, second in both if first.case_digest != second.case_digest})
    same_case = [(first, second) for first, second in both if first.case_digest == second.case_digest]
    different = tuple(
        DifferentCell(first.case, first, second, first_difference(first, second))
        for first, second in same_case
        if not same_behaviour(first, second)
    )
    return Difference(
        pairs=pairs,
        compared=len(same_case),
        different=different,
        changed=tuple(changed),
        only_a=len(a.cells) - len(both),
        only_b=len(b.cells) - len(both),
        silent=sum(
            first.behaviour is None and second.behaviour is None and first.status != "not-applicable"
            for first, second in same_case
        ),
    )


def _pairs(a: Results, b: Results) -> Iterator[tuple[Target, Target]]:
    named = {target.name: target for target in b.header.targets}
    versions = Counter(target.version for target in b.header.targets)
    by_version = {target.version: target for target in b.header.targets if versions[target.version] == 1}
    for target in a.header.targets:
        other = named.get(target.name) or by_version.get(target.version)
        if other is not None:
            yield target, other
