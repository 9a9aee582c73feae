"""Two results files beside each other: which cells were answered differently, and where the answers part."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from conformance.core.observation import BatchSeen, Observation
from reports.results.reading import Results
from reports.results.records import Cell, Target

_ROWS_SHOWN = 5
_FIELDS = ("kind", "watermark", "dropped", "state", "next_watermark")
"""Of a micro-batch, besides its rows: what the digest of behaviour is made of."""


class NothingInCommon(ValueError):
    """The files have no cell that could be compared."""

    exit_code: ClassVar[int] = 2

    def __init__(self, a: Results, b: Results) -> None:
        targets = [", ".join(target.name for target in one.header.targets) for one in (a, b)]
        super().__init__(
            f"nothing to compare: one has {len(a.header.cases)} cases on {targets[0]}, "
            f"the other {len(b.header.cases)} on {targets[1]}, and no case on the same Spark version is in both"
        )


@dataclass(frozen=True)
class Divergence:
    """The first place where two answers to one case part."""

    step: int | None
    """From 1; None where one of them has no answer at all."""
    batch: int | None
    """Id of the micro-batch, None where it is about the step as a whole."""
    what: str
    """``rows``, ``watermark``, ``dropped``, ``state`` …"""
    a: str
    b: str

    def __str__(self) -> str:
        place = "" if self.step is None else f"step {self.step}"
        place += "" if self.batch is None else f", micro-batch {self.batch}"
        return f"{place + ': ' if place else ''}{self.what} {self.a} | {self.b}"


@dataclass(frozen=True)
class DifferentCell:
    """A cell that the two files answer differently."""

    case: str
    a: Cell
    b: Cell
    divergence: Divergence


@dataclass(frozen=True)
class Pair:
    """One Spark version as both files have it."""

    a: Target
    b: Target


@dataclass(frozen=True)
class Difference:
    """What comparing two results gave."""

    pairs: tuple[Pair, ...]
    compared: int
    """Cells that both have."""
    different: tuple[DifferentCell, ...]
    changed: tuple[str, ...]
    """Cases whose files differ between the two suites: their cells are not compared."""
    only_a: int
    """Cells that only the first has."""
    only_b: int
    silent: int
    """Compared cells that neither file has an answer for: they differ in nothing, and agree in nothing."""

    @property
    def exit_code(self) -> int:
        """0 where every cell that both have was answered alike, else 1."""
        return 1 if self.different else 0


def compare(a: Results, b: Results) -> Difference:
    """Compare by digest of behaviour; durations and texts of errors do not count.

    Targets are paired by name, else by Spark version where that is unambiguous: what a vendor appends to it does not count.

    Raises:
        NothingInCommon: no cell is in both.
    """
    pairs = tuple(_pairs(a, b))
    cells = [{(cell.case, cell.target): cell for cell in one.cells} for one in (a, b)]
    both = [
        (first, second)
        for pair in pairs
        for case in a.header.cases
        if (first := cells[0].get((case, pair.a.name))) and (second := cells[1].get((case, pair.b.name)))
    ]
    if not both:
        raise NothingInCommon(a, b)
    changed = sorted({first.case for first, second in both if first.case_digest != second.case_digest})
    same_case = [(first, second) for first, second in both if first.case_digest == second.case_digest]
    different = tuple(
        DifferentCell(first.case, first, second, divergence(first, second))
        for first, second in same_case
        if first.behaviour != second.behaviour
    )
    return Difference(
        pairs=pairs,
        compared=len(same_case),
        different=different,
        changed=tuple(changed),
        only_a=len(a.cells) - len(both),
        only_b=len(b.cells) - len(both),
        silent=sum(first.behaviour is None and second.behaviour is None and _ran(first) for first, second in same_case),
    )


def divergence(a: Cell, b: Cell) -> Divergence:
    """Where two cells of different behaviour part first."""
    seen_a, seen_b = a.observation, b.observation
    if seen_a is None or seen_b is None:
        return Divergence(None, None, "status", a.status, b.status)
    return next(_divergences(seen_a, seen_b), Divergence(None, None, "status", a.status, b.status))


def _ran(cell: Cell) -> bool:
    return cell.status != "not-applicable"


def _pairs(a: Results, b: Results) -> Iterator[Pair]:
    named = {target.name: target for target in b.header.targets}
    versions = Counter(target.version for target in b.header.targets)
    by_version = {target.version: target for target in b.header.targets if versions[target.version] == 1}
    for target in a.header.targets:
        other = named.get(target.name) or by_version.get(target.version)
        if other is not None:
            yield Pair(target, other)


def _divergences(a: Observation, b: Observation) -> Iterator[Divergence]:
    for one, other in zip(a.steps, b.steps, strict=False):
        for first, second in zip(one.batches, other.batches, strict=False):
            yield from _of_batches(one.number, first, second)
        if len(one.batches) != len(other.batches):
            yield Divergence(one.number, None, "micro-batches", str(len(one.batches)), str(len(other.batches)))
        if one.watermark != other.watermark:
            yield Divergence(one.number, None, "watermark after it", str(one.watermark), str(other.watermark))
        errors = [seen.error.stage if seen.error else "none" for seen in (one, other)]
        if errors[0] != errors[1]:
            yield Divergence(one.number, None, "error", *errors)
    if len(a.steps) != len(b.steps):
        yield Divergence(min(len(a.steps), len(b.steps)) + 1, None, "steps", str(len(a.steps)), str(len(b.steps)))


def _of_batches(step: int, a: BatchSeen, b: BatchSeen) -> Iterator[Divergence]:
    if a.id != b.id:
        yield Divergence(step, a.id, "id", str(a.id), str(b.id))
    for field in _FIELDS:
        if getattr(a, field) != getattr(b, field):
            yield Divergence(step, a.id, field, _shown(getattr(a, field)), _shown(getattr(b, field)))
    rows_a, rows_b = (Counter(json.dumps(row, ensure_ascii=False) for row in seen.rows) for seen in (a, b))
    if rows_a != rows_b:
        yield Divergence(step, a.id, "rows", _only(rows_a - rows_b), _only(rows_b - rows_a))


def _shown(value: Any) -> str:
    return json.dumps(value)


def _only(rows: Counter[str]) -> str:
    listed: Iterable[str] = sorted(rows.elements())
    some = list(listed)[:_ROWS_SHOWN]
    more = rows.total() - len(some)
    return ("only here: " + ", ".join(some) + (f" and {more} more" if more else "")) if some else "nothing else"
