"""Since when a version behaves as it does: the release that changed it, and the version on which it was seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conformance.core.versions import SparkVersion, VersionRange, falling_into
from reports.analysis.equivalence import has_behaviour, same_behaviour
from reports.results.known_bug import gone_in
from reports.results.records import Cell, Target


@dataclass(frozen=True)
class Since:
    """The release from which on a behaviour holds."""

    release: str
    """``4.0`` for the first one of a line, ``3.5.4`` for a later one; the title of a build that is not Apache's."""
    seen: str | None
    """The version that showed it, if it is another one."""

    def __str__(self) -> str:
        return f"{self.release} (seen on {self.seen})" if self.seen else self.release


@dataclass(frozen=True)
class Turn:
    """A version on which a case behaves differently from the one before it."""

    place: int
    """Of the version among all."""
    before: tuple[Cell, Target]
    """The last version before it that shows a behaviour."""
    after: tuple[Cell, Target]
    since: Since


def turns(cells: Sequence[Cell | None], targets: Sequence[Target]) -> Iterator[Turn]:
    """Where the behaviour of a case changes; ``cells``: on each target, oldest version first."""
    previous: tuple[Cell, Target] | None = None
    for place, (cell, target) in enumerate(zip(cells, targets, strict=True)):
        if cell is None or not has_behaviour(cell):
            continue
        if previous is not None and not same_behaviour(previous[0], cell):
            yield Turn(place, previous, (cell, target), since(*previous, cell, target))
        previous = cell, target


def since(a: Cell, before: Target, b: Cell, after: Target) -> Since:
    """``4.0 (seen on 4.0.5)``, or only ``4.0.5`` if no case says which release changed it.

    Args:
        a: of the version before.
        before: the last version that behaves otherwise.
        b: of the version after.
        after: the first version that behaves like this.
    """
    changed = _changed_in(a, before, b, after)
    if changed is None or not after.apache:
        return Since(after.title, None)
    name = changed.line if changed.patch == 0 else str(changed)
    return Since(name, None if str(changed) == after.spark else after.title)


def _changed_in(a: Cell, before: Target, b: Cell, after: Target) -> SparkVersion | None:
    """The release between the two that an entry of ``differs`` names; None if none does."""
    old, new = before.version, after.version
    if old is None or new is None or old >= new:
        return None
    found = []
    if a.differs is not None:
        found.append(gone_in(a.differs.spark, old))
    if b.differs is not None:
        covered = falling_into(VersionRange.parse(b.differs.spark.split(" or ")))
        found.append(next((release for release in covered if release > old), None))
    return max((release for release in found if release is not None and old < release <= new), default=None)
