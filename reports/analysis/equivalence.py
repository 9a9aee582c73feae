"""What a case was seen to do, compared across versions: which versions behave alike, and which cells say nothing.

A version that lacks a metric says nothing about it: a cell without ``dropped`` is alike to one that has it, where all
else is. Everything that is drawn from results, and the gate, goes by this one notion.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from conformance.core.observation import Observation
from conformance.judging.verdict import Status
from reports.results.records import Cell

Silence: TypeAlias = Literal["not about it", "no answer"]

SAYS_NOTHING: dict[Status, Silence] = {
    "not-applicable": "not about it",
    "broken": "no answer",
    "not-run": "no answer",
    "flaky": "no answer",
}
"""Statuses of cells that show no behaviour one could compare."""

_SINCE_2020 = 1_577_836_800_000
"""Milliseconds since the epoch: no engine of these versions had an earlier clock."""


@dataclass(frozen=True)
class Behaviour:
    """Cells of one case that were answered alike, oldest version first."""

    cells: tuple[Cell, ...]

    @property
    def shown(self) -> Cell:
        """The cell whose evidence stands for all: the newest."""
        return self.cells[-1]

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(cell.target for cell in self.cells)


def speaks(cell: Cell | None) -> bool:
    """Whether the cell shows a behaviour."""
    return cell is not None and cell.behaviour is not None and cell.status not in SAYS_NOTHING


def alike(a: Cell, b: Cell) -> bool:
    """Whether two cells of one case show the same behaviour, as far as both can tell."""
    if a.behaviour == b.behaviour:
        return True
    if a.observation is None or b.observation is None:
        return False
    drops = _counts_drops(a.observation) and _counts_drops(b.observation)
    # Where both do as the case says of the newest, a watermark of today is that of the clock, which the case cannot state.
    clock = a.status == b.status == "conforms"
    return (not drops or clock) and _seen(a.observation, drops, clock) == _seen(b.observation, drops, clock)


def behaviours(cells: Sequence[Cell]) -> tuple[Behaviour, ...]:
    """The distinct behaviours among the cells of one case, given oldest version first; in the order of their newest.

    Cells that show none are left out.
    """
    groups: list[list[Cell]] = []
    for cell in reversed([cell for cell in cells if speaks(cell)]):
        group = next((group for group in groups if alike(group[0], cell)), None)
        if group is None:
            groups.append([cell])
        else:
            group.append(cell)
    return tuple(Behaviour(tuple(reversed(group))) for group in groups)


def _counts_drops(observation: Observation) -> bool:
    return all(batch.dropped is not None for step in observation.steps for batch in step.batches)


def _seen(observation: Observation, drops: bool, clock: bool) -> list[object]:
    """What the digest of behaviour is made of, without what one of two versions cannot tell."""

    def watermark(ms: int | None) -> int | str | None:
        return "now" if clock and ms is not None and ms >= _SINCE_2020 else ms

    return [
        (
            [
                (
                    batch.id,
                    batch.kind,
                    watermark(batch.watermark),
                    watermark(batch.next_watermark),
                    sorted(json.dumps(row) for row in batch.rows),
                    batch.dropped if drops else None,
                    batch.state,
                )
                for batch in step.batches
            ],
            watermark(step.watermark),
            step.error and step.error.stage,
        )
        for step in observation.steps
    ]
