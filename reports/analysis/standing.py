"""On which versions a statement holds: computed from the results of its cases, with what they document as different and why.

A statement names the versions that break it, and a case documents what it shows on them: a documented difference is no contradiction.
A known bug is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeAlias

from conformance.core.versions import VersionRange
from reports.analysis.matrix import Matrix
from reports.results.records import Cell, DocumentedDifference, Target
from reports.results.status import DOES_NOT_CONFORM, MARKS

Standing: TypeAlias = Literal["holds", "bug", "unsupported", "outside", "violates", "untested"]

WORDS: dict[Standing, str] = {
    "holds": "holds",
    "bug": "broken by a known bug in some cases",
    "unsupported": "not available",
    "outside": "does not apply",
    "violates": "violated",
    "untested": "no result",
}
GLYPHS: dict[Standing, str] = {
    "holds": MARKS["conforms"].glyph,
    "bug": MARKS["bug"].glyph,
    "unsupported": MARKS["unsupported"].glyph,
    "outside": MARKS["not-applicable"].glyph,
    "violates": MARKS["violates"].glyph,
    "untested": "○",
}


@dataclass(frozen=True)
class Variation:
    """What cases show on some versions instead of what they show on the others, as they document it."""

    versions: str
    """Those on which it was seen: ``3.0 – 3.3``."""
    reason: DocumentedDifference
    """Of the first case; others may put the same ticket differently."""
    cases: tuple[str, ...]


@dataclass(frozen=True)
class VersionSpan:
    """Versions in a row with the same standing."""

    standing: Standing
    versions: str
    """``3.4 – 4.3``."""

    def __str__(self) -> str:
        return f"{GLYPHS[self.standing]} {WORDS[self.standing]}: {self.versions}"


@dataclass(frozen=True)
class Evidence:
    """What the results say about a statement on every version."""

    by_version: tuple[tuple[Target, Standing], ...]
    """Oldest first."""
    spans: tuple[VersionSpan, ...]
    variations: tuple[Variation, ...]
    """By ticket, or by reason if there is no ticket; known bugs first."""

    @property
    def has_result(self) -> bool:
        """Whether some case shows on some version what the statement says."""
        return any(standing in ("holds", "bug") for _, standing in self.by_version)

    @classmethod
    def of(
        cls, matrix: Matrix, cases: Iterable[str], targets: Sequence[Target], within: VersionRange | None = None
    ) -> Evidence:
        """The evidence of some cases.

        Args:
            matrix: the results.
            cases: ids; one that is not in the results shows nothing.
            targets: the versions, oldest first.
            within: the versions that the statement is about; None for all.
        """
        names = tuple(cases)
        cells = {target.name: [matrix.cells.get((case, target.name)) for case in names] for target in targets}
        standings = tuple(
            (target, _standing(cells[target.name]) if _concerns(within, target) else "outside") for target in targets
        )
        return cls(standings, tuple(_spans(standings)), tuple(_variations(cells, targets)))


def _concerns(within: VersionRange | None, target: Target) -> bool:
    return within is None or target.version is None or target.version in within


def _standing(cells: Iterable[Cell | None]) -> Standing:
    """Of the cases that apply to a version, the least good decides; a feature that is not there says nothing of the others."""
    statuses = {cell.status for cell in cells if cell is not None} - {"not-applicable", "not-run"}
    if statuses & set(DOES_NOT_CONFORM):
        return "violates"
    if "bug" in statuses:
        return "bug"
    if statuses & {"conforms", "differs"}:
        return "holds"
    return "unsupported" if "unsupported" in statuses else "untested"


def _spans(standings: Sequence[tuple[Target, Standing]]) -> Iterator[VersionSpan]:
    for standing, group in groupby(standings, key=lambda one: one[1]):
        yield VersionSpan(standing, span([target for target, _ in group], [target for target, _ in standings]))


def _variations(cells: Mapping[str, Sequence[Cell | None]], targets: Sequence[Target]) -> Iterator[Variation]:
    found: dict[tuple[bool, str], tuple[DocumentedDifference, dict[str, Target], set[str]]] = {}
    for target in targets:
        for cell in cells[target.name]:
            if cell is not None and cell.differs is not None:
                reason = cell.differs
                key = (
                    not reason.bug,
                    reason.link or reason.introduced_by or reason.because or reason.unsupported or "",
                )
                _, seen, cases = found.setdefault(key, (reason, {}, set()))
                seen[target.name] = target
                cases.add(cell.case)
    for _, (reason, seen, cases) in sorted(found.items(), key=lambda one: one[0][0]):
        yield Variation(span([*seen.values()], targets), reason, tuple(sorted(cases)))


def span(some: Sequence[Target], every: Sequence[Target]) -> str:
    """Versions as ranges among all that were tested: ``3.0, 3.3 – 4.3``; whole lines by their name, else in full.

    Args:
        some: the versions, oldest first.
        every: all of them, oldest first.
    """
    named = {target.name for target in some}
    runs = [[*group] for within, group in groupby(every, key=lambda one: one.name in named) if within]
    return ", ".join(_range(run, every) for run in runs)


def _range(run: Sequence[Target], every: Sequence[Target]) -> str:
    first, last = _short(run[0], run, every), _short(run[-1], run, every)
    return first if first == last else f"{first} – {last}"


def _short(target: Target, run: Sequence[Target], every: Sequence[Target]) -> str:
    """``3.5`` if all tested releases of the line are among them, else ``3.5.9``."""
    line = _line(target)
    whole = {one.name for one in every if _line(one) == line} <= {one.name for one in run}
    return line if whole and target.apache else target.title


def _line(target: Target) -> str:
    return target.version.line if target.version is not None else target.name
