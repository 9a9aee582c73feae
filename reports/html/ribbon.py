"""A case over the versions: one sign for each, joined where neighbours behave alike, broken where they do not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from conformance.judging.verdict import Status
from reports.analysis.change import change
from reports.analysis.equivalence import Behaviour, has_behaviour, same_behaviour
from reports.analysis.report import Report
from reports.html.sources import Source
from reports.results.known_bug import KnownBug
from reports.results.records import Cell, Target
from reports.results.status import MARKS


@dataclass(frozen=True)
class Sign:
    """How one cell looks."""

    status: Status
    glyph: str
    word: str
    """Short enough to stand in a cell."""
    told: str
    """The status and its reason, in a sentence."""

    @classmethod
    def of(cls, cell: Cell | None, target: Target) -> Sign:
        """The sign of a cell; one that is not there has not run."""
        status: Status = cell.status if cell is not None else "not-run"
        mark = MARKS[status]
        entry = cell.differs if cell is not None else None
        reason = ""
        if entry is not None and status in ("differs", "bug", "unsupported"):
            reason = f": {entry.because or entry.unsupported}" + (f" ({entry.link})" if entry.link else "")
        bug = KnownBug.of(cell, target.spark)
        return cls(status, mark.glyph, WORDS[status], f"{bug or mark.word}{reason}")


WORDS: Mapping[Status, str] = {
    "conforms": "conforms",
    "differs": "differs",
    "bug": "bug",
    "unsupported": "absent",
    "violates": "violates",
    "flaky": "flaky",
    "broken": "broken",
    "not-applicable": "n/a",
    "not-run": "not run",
}


@dataclass(frozen=True)
class Place:
    """One version of one case."""

    target: Target
    sign: Sign
    joined: bool
    """Whether it behaves as the version before it."""
    breaks: bool
    """Whether it does not, and both have answered."""
    behaviour: int | None
    """The number of its behaviour among those of the case, from 0, newest first; None where it shows none."""


@dataclass(frozen=True)
class Turn:
    """A version from which on a case is answered otherwise."""

    target: Target
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Ribbon:
    case: str
    places: tuple[Place, ...]
    turns: tuple[Turn, ...]

    @property
    def differs(self) -> bool:
        """Whether any two versions behave differently."""
        return len({place.behaviour for place in self.places if place.behaviour is not None}) > 1


def ribbon(report: Report, case: str) -> Ribbon:
    cells = [report.matrix.cells.get((case, target.name)) for target in report.targets]
    return Ribbon(
        case,
        tuple(_places(report.targets, cells, report.behaviours[case])),
        tuple(_turns(report.targets, cells)),
    )


def _places(
    targets: Sequence[Target], cells: Sequence[Cell | None], behaviours: Sequence[Behaviour]
) -> Iterator[Place]:
    numbers = {name: number for number, behaviour in enumerate(behaviours) for name in behaviour.targets}
    previous: int | None = None
    for target, cell in zip(targets, cells, strict=True):
        number = numbers.get(target.name)
        both = number is not None and previous is not None
        yield Place(target, Sign.of(cell, target), both and number == previous, both and number != previous, number)
        previous = number


def _turns(targets: Sequence[Target], cells: Sequence[Cell | None]) -> Iterator[Turn]:
    before: tuple[Target, Cell] | None = None
    for target, cell in zip(targets, cells, strict=True):
        if cell is None or not has_behaviour(cell):
            continue
        if before is not None and not same_behaviour(before[1], cell):
            found = change(before[1], before[0], cell, target)
            links = dict.fromkeys(reason.link for reason in found.reasons if reason.link)
            yield Turn(target, tuple(Source.of(link) for link in links))
        before = target, cell
