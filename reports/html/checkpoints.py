"""What happens to the checkpoints of one version on another, for the page that compares the two and for the page of a case."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.judging.handoff_verdict import UpgradeStatus
from reports.analysis.change import Changes
from reports.analysis.checkpoints import CheckpointGroup, checkpoints
from reports.analysis.report import Report
from reports.html.addresses import SourceLink
from reports.html.texts import cut
from reports.results.checkpoint_status import BUG, NORMAL, UPGRADES
from reports.results.records import UpgradeCell

_KINDS = {"resumes": "conforms", "not-run": "not-run"}
_LONGEST = 600


@dataclass(frozen=True)
class CheckpointStatus:
    """How checkpoints resume."""

    kind: str
    """The status of a cell that is drawn the same way."""
    glyph: str
    word: str

    @classmethod
    def of(cls, status: UpgradeStatus) -> CheckpointStatus:
        mark = UPGRADES[status]
        return cls(_KINDS.get(status, status), mark.glyph, mark.word)


@dataclass(frozen=True)
class CheckpointCase:
    """A case whose checkpoint does not resume normally."""

    case: str
    title: str
    cuts: tuple[int, ...]
    """The numbers of the steps before which the versions changed."""
    has_page: bool
    """Whether the case has a page."""


@dataclass(frozen=True)
class CheckpointReason:
    """Checkpoints that meet the same for the same reason."""

    status: CheckpointStatus
    error: str
    because: str
    source: SourceLink | None
    workaround: str
    cases: tuple[CheckpointCase, ...]


@dataclass(frozen=True)
class CheckpointSection:
    """All that is known about the checkpoints of one version on another."""

    summary: str
    counts: tuple[tuple[CheckpointStatus, int], ...]
    groups: tuple[CheckpointReason, ...]
    """Those that do not resume normally, worst first."""
    documented: tuple[CheckpointReason, ...]
    """What cases without a result between these versions document for them."""
    known: int
    """How many cases these are."""
    tried: int
    abnormal: int
    """How many of the tried ones do not resume normally."""


def checkpoint_section(report: Report, pair: Changes) -> CheckpointSection | None:
    """How the older version's checkpoints resume on the newer one; None if nothing is known about that."""
    found = checkpoints(report.results.upgrades, report.cases.values(), pair.before, pair.after)
    if found is None:
        return None
    return CheckpointSection(
        summary=found.summary(),
        counts=tuple((CheckpointStatus.of(status), found.count(status)) for status in UPGRADES if found.count(status)),
        groups=tuple(_reason(report, group) for group in found.groups),
        documented=tuple(_reason(report, group) for group in found.documented_groups),
        known=len(found.documented),
        tried=found.tried,
        abnormal=sum(group.count for group in found.groups),
    )


def _reason(report: Report, group: CheckpointGroup) -> CheckpointReason:
    entry, because = group.entry, group.because
    if entry is not None and entry.bug:
        because = f"{BUG.glyph} known bug: {because}{'' if entry.link else entry.ticket}"
    return CheckpointReason(
        CheckpointStatus.of(group.status),
        group.error,
        cut(because, _LONGEST),
        SourceLink.of(entry.link) if entry is not None and entry.link else None,
        (entry.way_round or "") if entry is not None else "",
        tuple(
            CheckpointCase(case, report.title(case), cuts, case in report.behaviours)
            for case, cuts in group.cases.items()
        ),
    )


@dataclass(frozen=True)
class CaseCheckpoint:
    """What became of the checkpoint of one case between two versions."""

    origin: str
    to: str
    cut: int
    reason: CheckpointReason


def checkpoints_of_case(report: Report, case: str) -> tuple[CaseCheckpoint, ...]:
    """What became of the checkpoints of a case, those that did not resume normally first."""
    titles = {target.name: target.title for target in report.targets}
    tried = UPGRADES.keys() - {"not-run", "not-applicable"}
    cells = [cell for cell in report.results.upgrades if cell.case == case and cell.status in tried]
    cells.sort(key=lambda cell: cell.status in NORMAL)
    return tuple(
        CaseCheckpoint(
            titles.get(cell.origin, cell.origin), titles.get(cell.to, cell.to), cell.cut, _reason(report, _alone(cell))
        )
        for cell in cells
    )


def _alone(cell: UpgradeCell) -> CheckpointGroup:
    """A cell for the page of its case, which tells findings elsewhere."""
    because = cell.entry.because if cell.entry is not None else ""
    return CheckpointGroup(cell.status, cell.error.name if cell.error is not None else "", because, cell.entry, {})
