"""What one version made of the checkpoints of another, as the page on the two shows it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from conformance.judging.finding import described
from conformance.judging.handoff_verdict import UpgradeStatus
from reports.analysis.change import Changes
from reports.analysis.report import Report
from reports.html.sources import Source
from reports.html.visible import cut
from reports.results.records import UpgradeCell
from reports.results.upgrades import BUG, MARKS

AS_USUAL: tuple[UpgradeStatus, ...] = ("resumes", "not-applicable")
LONGEST = 240
"""Characters of what was found."""
_KINDS = {"resumes": "conforms"}


@dataclass(frozen=True)
class Fate:
    """What became of checkpoints."""

    kind: str
    """Of what it is drawn as."""
    glyph: str
    word: str

    @classmethod
    def of(cls, status: UpgradeStatus) -> Fate:
        mark = MARKS[status]
        return cls(_KINDS.get(status, status), mark.glyph, mark.word)


@dataclass(frozen=True)
class Handoff:
    """One checkpoint that was not simply gone on from."""

    case: str
    title: str
    cut: int
    """The number of the step before which the versions changed."""
    fate: Fate
    because: str
    source: Source | None
    known: bool
    """Whether the case has a page."""


@dataclass(frozen=True)
class Checkpoints:
    counts: tuple[tuple[Fate, int], ...]
    told: tuple[Handoff, ...]
    """Those not simply gone on from, worst first."""


def checkpoints(report: Report, pair: Changes) -> Checkpoints | None:
    """What became of the older version's checkpoints on the newer one, None where none were handed over."""
    cells = [cell for cell in report.results.upgrades if (cell.origin, cell.to) == (pair.before.name, pair.after.name)]
    if not cells:
        return None
    order = ["violates", "refused", "differs", "broken", "not-run", "unsupported"]
    counts = Counter(cell.status for cell in cells)
    told = sorted(
        (cell for cell in cells if cell.status not in AS_USUAL),
        key=lambda cell: (order.index(cell.status), cell.case, cell.cut),
    )
    ran = set(report.matrix.cases)
    return Checkpoints(
        tuple((Fate.of(status), counts[status]) for status in MARKS if counts[status]),
        tuple(
            Handoff(
                case=cell.case,
                title=report.title(cell.case),
                cut=cell.cut,
                fate=Fate.of(cell.status),
                because=cut(_because(cell), 600),
                source=Source.of(cell.entry.link) if cell.entry is not None and cell.entry.link else None,
                known=cell.case in ran,
            )
            for cell in told
        ),
    )


def _because(cell: UpgradeCell) -> str:
    if cell.entry is None:
        return "; ".join([*described(cell.findings), *cell.notes])
    return f"{BUG.glyph} known bug: {cell.entry.because}" if cell.entry.bug else cell.entry.because
