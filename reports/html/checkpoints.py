"""What happens to the checkpoints of one version on another, for the page that compares the two and for the page of a case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.judging.handoff_verdict import UpgradeStatus
from reports.analysis.change import Changes
from reports.analysis.checkpoints import NORMAL, CheckpointGroup, Checkpoints, checkpoints
from reports.analysis.report import Report
from reports.html.addresses import SourceLink
from reports.html.visible import cut
from reports.results.records import DocumentedUpgrade, UpgradeCell
from reports.results.upgrades import BUG, MARKS

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
        mark = MARKS[status]
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
        counts=tuple((CheckpointStatus.of(status), found.count(status)) for status in MARKS if found.count(status)),
        groups=tuple(_reason(report, group) for group in found.groups),
        documented=tuple(_documented(report, found)),
        known=len(found.documented),
        tried=found.tried,
        abnormal=sum(len(group.cells) for group in found.groups),
    )


def _reason(report: Report, group: CheckpointGroup) -> CheckpointReason:
    return CheckpointReason(
        CheckpointStatus.of(group.status),
        group.error,
        cut(_text(group.because, group.entry), _LONGEST),
        _source(group.entry),
        (group.entry.way_round or "") if group.entry is not None else "",
        tuple(
            _case(report, case, tuple(cell.cut for cell in group.cells if cell.case == case)) for case in group.cases
        ),
    )


def _documented(report: Report, found: Checkpoints) -> Iterator[CheckpointReason]:
    by_entry: dict[tuple[UpgradeStatus, DocumentedUpgrade], list[str]] = {}
    for one in found.documented:
        same = one.entry.model_copy(update={"from_": None, "to": None})
        by_entry.setdefault((one.status, same), []).append(one.case)
    for (status, entry), cases in sorted(by_entry.items(), key=lambda one: (one[0][0] != "refused", -len(one[1]))):
        yield CheckpointReason(
            CheckpointStatus.of(status),
            "",
            cut(_text(entry.because, entry), _LONGEST),
            _source(entry),
            entry.way_round or "",
            tuple(_case(report, case, ()) for case in cases),
        )


def _case(report: Report, case: str, cuts: tuple[int, ...]) -> CheckpointCase:
    return CheckpointCase(case, report.title(case), cuts, case in report.behaviours)


def _text(because: str, entry: DocumentedUpgrade | None) -> str:
    if entry is None or not entry.bug:
        return because
    return f"{BUG.glyph} known bug: {because}{'' if entry.link else entry.ticket}"


def _source(entry: DocumentedUpgrade | None) -> SourceLink | None:
    return SourceLink.of(entry.link) if entry is not None and entry.link else None


@dataclass(frozen=True)
class CaseCheckpoint:
    """What became of the checkpoint of one case between two versions."""

    origin: str
    to: str
    cut: int
    status: CheckpointStatus
    error: str
    because: str
    source: SourceLink | None
    workaround: str


def checkpoints_of_case(report: Report, case: str) -> tuple[CaseCheckpoint, ...]:
    """What became of the checkpoints of a case, those that did not resume normally first."""
    titles = {target.name: target.title for target in report.targets}
    cells = [cell for cell in report.results.upgrades if cell.case == case and cell.status in _TOLD]
    cells.sort(key=lambda cell: cell.status in NORMAL)
    return tuple(_of_case(cell, titles) for cell in cells)


_TOLD = frozenset(MARKS) - {"not-run", "not-applicable"}


def _of_case(cell: UpgradeCell, titles: dict[str, str]) -> CaseCheckpoint:
    entry = cell.entry
    return CaseCheckpoint(
        titles.get(cell.origin, cell.origin),
        titles.get(cell.to, cell.to),
        cell.cut,
        CheckpointStatus.of(cell.status),
        cell.error.name if cell.error is not None else "",
        cut(_text(entry.because, entry), _LONGEST) if entry is not None else "",
        _source(entry),
        (entry.way_round or "") if entry is not None else "",
    )
