"""Which versions behave alike on a case, and which cells show no behaviour.

Two cells are compared by ``conformance.judging.divergence``, everywhere: in the report, in the gate and in ``conformance diff``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Literal, TypeAlias, TypeVar

from conformance.judging.divergence import Divergence, divergence, divergences
from conformance.judging.verdict import Status
from conformance.judging.wall_clock import digest_omits_instants
from reports.results.records import Cell
from reports.results.stored import StoredCell

Silence: TypeAlias = Literal["not applicable", "no answer"]

WITHOUT_BEHAVIOUR: dict[Status, Silence] = {
    "not-applicable": "not applicable",
    "broken": "no answer",
    "not-run": "no answer",
    "flaky": "no answer",
}
"""Statuses of cells whose behaviour cannot be compared."""


_Found = TypeVar("_Found")


def once_for_each_answer(compared: Callable[[Cell, Cell], _Found]) -> Callable[[Cell, Cell], _Found]:
    """Compare two cells once for all that have the same two answers: the releases of a line mostly do.

    All cells of a case in a file that have one digest are one answer, as digests come from what was observed. What was found is kept
    as long as the file of the first cell.
    """

    @wraps(compared)
    def found(a: Cell, b: Cell) -> _Found:
        if not (isinstance(a, StoredCell) and isinstance(b, StoredCell)) or None in (a.behaviour, b.behaviour):
            return compared(a, b)
        known: dict[object, _Found] = a.file_of_results.compared
        key = compared, a.case, a.behaviour, b.file_of_results, b.case, b.behaviour
        if key not in known:
            known[key] = compared(a, b)
        return known[key]

    return found


@dataclass(frozen=True)
class Behaviour:
    """Cells of one case with equivalent answers, oldest version first."""

    cells: tuple[Cell, ...]

    @property
    def shown(self) -> Cell:
        """The cell whose evidence stands for all: the newest."""
        return self.cells[-1]

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(cell.target for cell in self.cells)


def has_behaviour(cell: Cell | None) -> bool:
    """Whether the cell shows a behaviour that can be compared."""
    return cell is not None and cell.behaviour is not None and cell.status not in WITHOUT_BEHAVIOUR


def same_behaviour(a: Cell, b: Cell) -> bool:
    """Whether two cells of one case show the same behaviour."""
    return a.behaviour == b.behaviour or _difference(a, b) is None


def first_difference(a: Cell, b: Cell) -> Divergence:
    """The first place where two cells that do not show the same behaviour differ."""
    return _difference(a, b) or _of_statuses(a, b)


@once_for_each_answer
def _difference(a: Cell, b: Cell) -> Divergence | None:
    if a.observation is None or b.observation is None:
        return _of_statuses(a, b)
    return divergence(a.observation, b.observation, instants=_instants_count(a, b))


def _of_statuses(a: Cell, b: Cell) -> Divergence:
    return Divergence(None, None, "status", a.status, b.status)


def all_differences(a: Cell, b: Cell) -> tuple[Divergence, ...]:
    """Every place where two cells differ, in order; none if one of them has no observation."""
    if a.observation is None or b.observation is None:
        return ()
    return tuple(divergences(a.observation, b.observation, instants=_instants_count(a, b)))


def behaviours(cells: Sequence[Cell]) -> tuple[Behaviour, ...]:
    """The distinct behaviours among the cells of one case, given oldest version first; in the order of their newest.

    Cells without a behaviour are left out.
    """
    groups: list[list[Cell]] = []
    for cell in reversed([cell for cell in cells if has_behaviour(cell)]):
        # The older first, as everywhere: then each two answers are compared once.
        group = next((group for group in groups if same_behaviour(cell, group[0])), None)
        if group is None:
            groups.append([cell])
        else:
            group.append(cell)
    return tuple(Behaviour(tuple(reversed(group))) for group in groups)


def _instants_count(a: Cell, b: Cell) -> bool:
    """Whether watermarks are compared. A results file does not say that a case reads the clock, but its digests do."""
    return not any(
        cell.observation is not None and digest_omits_instants(cell.behaviour, cell.observation) for cell in (a, b)
    )
