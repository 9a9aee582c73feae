"""A case across the versions: one sign each, joined if neighbours behave the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from conformance.judging.verdict import Status
from reports.analysis.change import Since, Turn, change
from reports.analysis.report import Report
from reports.html.addresses import SourceLink
from reports.results.known_bug import KnownBug
from reports.results.records import Cell, DocumentedDifference, TargetRecord
from reports.results.status import MARKS


@dataclass(frozen=True)
class CellSign:
    status: Status
    glyph: str
    word: str
    description: str

    @classmethod
    def of(cls, cell: Cell | None, target: TargetRecord, bugs: Sequence[DocumentedDifference] = ()) -> Self:
        """Return the sign of a cell; a missing cell has not run. ``bugs``: all that its case shows on some version."""
        status: Status = cell.status if cell is not None else "not-run"
        mark = MARKS[status]
        entry = cell.differs if cell is not None and status in ("differs", "bug", "unsupported") else None
        reason = f": {entry.reason}{entry.ticket}" if entry is not None else ""
        bug = KnownBug.of(cell, target.spark, bugs)
        return cls(status, mark.glyph, SHORT_WORDS[status], f"{bug or mark.word}{reason}")


SHORT_WORDS: Mapping[Status, str] = {
    **{status: status for status in MARKS},
    "unsupported": "absent",
    "not-applicable": "n/a",
    "not-run": "not run",
}


@dataclass(frozen=True)
class StripCell:
    target: TargetRecord
    sign: CellSign
    joined: bool
    breaks: bool
    behaviour: int | None
    """The number of its behaviour among those of the case, from 0, newest first; None if it has no result."""


@dataclass(frozen=True)
class StripChange:
    since: Since
    sources: tuple[SourceLink, ...]


@dataclass(frozen=True)
class Strip:
    case: str
    cells: tuple[StripCell, ...]
    changes: tuple[StripChange, ...]


def strip(report: Report, case: str) -> Strip:
    """Return the cells and the changes of a case, oldest version first."""
    numbers = {name: at for at, behaviour in enumerate(report.behaviours[case]) for name in behaviour.targets}
    bugs = report.matrix.bugs.get(case, ())
    cells = []
    previous: int | None = None
    for target in report.targets:
        sign = CellSign.of(report.matrix.cell(case, target), target, bugs)
        number = numbers.get(target.name)
        both = number is not None and previous is not None
        cells.append(StripCell(target, sign, both and number == previous, both and number != previous, number))
        previous = number
    return Strip(case, tuple(cells), tuple(map(_change, report.turns[case])))


def _change(turn: Turn) -> StripChange:
    changed = change(*turn.before, *turn.after)
    links = dict.fromkeys(reason.link for reason in changed.reasons if reason.link)
    return StripChange(turn.since, tuple(SourceLink.of(link) for link in links))
