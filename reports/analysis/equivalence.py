"""Which versions behave alike on a case, and which cells show no behaviour.

Two cells are compared by ``conformance.judging.divergence``, everywhere: in the report, in the gate and in ``conformance diff``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from conformance.judging.divergence import Divergence, divergence, divergences, equivalent
from conformance.judging.verdict import Status
from conformance.judging.wall_clock import digest_omits_instants
from reports.results.records import Cell

Silence: TypeAlias = Literal["not applicable", "no answer"]

WITHOUT_BEHAVIOUR: dict[Status, Silence] = {
    "not-applicable": "not applicable",
    "broken": "no answer",
    "not-run": "no answer",
    "flaky": "no answer",
}
"""Statuses of cells whose behaviour cannot be compared."""


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
    if a.behaviour == b.behaviour:
        return True
    if a.observation is None or b.observation is None:
        return False
    return equivalent(a.observation, b.observation, instants=_instants_count(a, b))


def first_difference(a: Cell, b: Cell) -> Divergence:
    """The first place where two cells that do not show the same behaviour differ."""
    found = None
    if a.observation is not None and b.observation is not None:
        found = divergence(a.observation, b.observation, instants=_instants_count(a, b))
    return found or Divergence(None, None, "status", a.status, b.status)


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
        group = next((group for group in groups if same_behaviour(group[0], cell)), None)
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
