"""What happens to the checkpoints of one version on another, for the page that compares the two."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from conformance.judging.finding import described
from conformance.judging.handoff_verdict import UpgradeStatus
from reports.analysis.change import Changes
from reports.analysis.report import Report
from reports.html.sources import SourceLink
from reports.html.visible import cut
from reports.results.records import UpgradeCell
from reports.results.upgrades import BUG, MARKS

NORMAL: tuple[UpgradeStatus, ...] = ("resumes", "not-applicable")
_KINDS = {"resumes": "conforms"}


@dataclass(frozen=True)
class CheckpointStatus:
    """How checkpoints resume."""

    kind: str
    """The status of a cell that is drawn the same way."""
    glyph: str
    word: str

    @classmethod
    def of(cls, status: UpgradeStatus) -> CheckpointStatus:
        mark = MARKS[status]
        return cls(_KINDS.get(status, status), mark.glyph, mark.word)


@dataclass(frozen=True)
class HandedCheckpoint:
    """A checkpoint that does not resume normally."""

    case: str
    title: str
    cut: int
    """The number of the step before which the versions changed."""
    status: CheckpointStatus
    because: str
    source: SourceLink | None
    has_page: bool
    """Whether the case has a page."""


@dataclass(frozen=True)
class CheckpointSection:
    counts: tuple[tuple[CheckpointStatus, int], ...]
    listed: tuple[HandedCheckpoint, ...]
    """Those that do not resume normally, worst first."""


def checkpoints(report: Report, pair: Changes) -> CheckpointSection | None:
    """How the older version's checkpoints resume on the newer one; None if there are no results for that."""
    cells = [cell for cell in report.results.upgrades if (cell.origin, cell.to) == (pair.before.name, pair.after.name)]
    if not cells:
        return None
    order = ["violates", "refused", "differs", "broken", "not-run", "unsupported"]
    counts = Counter(cell.status for cell in cells)
    listed = sorted(
        (cell for cell in cells if cell.status not in NORMAL),
        key=lambda cell: (order.index(cell.status), cell.case, cell.cut),
    )
    ran = set(report.matrix.cases)
    return CheckpointSection(
        tuple((CheckpointStatus.of(status), counts[status]) for status in MARKS if counts[status]),
        tuple(
            HandedCheckpoint(
                case=cell.case,
                title=report.title(cell.case),
                cut=cell.cut,
                status=CheckpointStatus.of(cell.status),
                because=cut(_because(cell), 600),
                source=SourceLink.of(cell.entry.link) if cell.entry is not None and cell.entry.link else None,
                has_page=cell.case in ran,
            )
            for cell in listed
        ),
    )


def _because(cell: UpgradeCell) -> str:
    if cell.entry is None:
        return "; ".join([*described(cell.findings), *cell.notes])
    if not cell.entry.bug:
        return cell.entry.because
    return f"{BUG.glyph} known bug: {cell.entry.because}{'' if cell.entry.link else cell.entry.ticket}"
