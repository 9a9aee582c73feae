"""Whether the checkpoints of one version resume on another: what was observed, and else what the cases document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from conformance.core.case import Case
from conformance.core.wording import counted
from conformance.judging.checkpoint_verdict import VersionPair, documented_outcome, handoffs, no_checkpoint
from conformance.judging.finding import described
from conformance.judging.verdict import Outcome, Status, as_documented
from reports.results.checkpoint_status import NORMAL, WORST_FIRST, Colour, colour_of
from reports.results.records import Cell, DocumentedDifference, TargetRecord
from reports.results.status import GREEN


@dataclass(frozen=True)
class CheckpointGroup:
    """Checkpoints that meet the same for the same reason."""

    status: Status
    outcome: Outcome | None
    error: str
    """The class of the error, to search for; empty if there is none."""
    because: str
    entry: DocumentedDifference | None
    cases: Mapping[str, tuple[int, ...]]
    """Maps the id of a case to the steps before which its versions changed; no steps if it was not run between these versions."""

    @property
    def count(self) -> int:
        return sum(max(1, len(cuts)) for cuts in self.cases.values())


@dataclass(frozen=True)
class DocumentedCheckpoint:
    """What a case documents about its checkpoint between two versions without a result."""

    case: str
    status: Status
    outcome: Outcome
    entry: DocumentedDifference


@dataclass(frozen=True)
class Checkpoints:
    before: TargetRecord
    after: TargetRecord
    cells: tuple[Cell, ...]
    """The checkpoints that were tried, or that the results announce."""
    documented: tuple[DocumentedCheckpoint, ...] = ()

    @cached_property
    def groups(self) -> tuple[CheckpointGroup, ...]:
        """The checkpoints that do not resume as if the version had not changed, worst first, then the reason with the most."""
        return groups_of(self.cells)

    @cached_property
    def documented_groups(self) -> tuple[CheckpointGroup, ...]:
        """What the cases document, whichever the two versions; refusals first."""
        entries = ((known, known.entry.model_copy(update={"spark": "", "origin": None})) for known in self.documented)
        return _grouped(
            ((known.status, known.outcome, "", entry.reason, entry), known.case, None) for known, entry in entries
        )

    @property
    def tried(self) -> int:
        return len(self.cells) - self.count("not-applicable", "not-run")

    def count(self, *colours: Colour) -> int:
        return sum(colour_of(cell.status, cell.outcome) in colours for cell in self.cells)

    def summary(self) -> str:
        """Return ``24 of 57 tried checkpoints are refused, 3 resume with other results; 5 not run``"""
        if not self.tried:
            count = len(self.documented)
            verb = "documents" if count == 1 else "document"
            known = f"{counted(count, 'case')} {verb} a refusal or other results"
            return f"not run between these versions; {known}" if self.documented else "nothing was handed over"
        words = (
            (self.count("refused", "unsupported"), "is refused", "are refused"),
            (self.count("differs"), "resumes with other results", "resume with other results"),
            (self.count("violates"), "is not as expected", "are not as expected"),
            (self.count("broken"), "has no answer", "have no answer"),
        )
        parts = [f"{count} {single if count == 1 else several}" for count, single, several in words if count]
        outcome = ", ".join(parts) or "every one resumes as if the version had not changed"
        summary = f"of {counted(self.tried, 'tried checkpoint')}, {outcome}"
        if not_run := self.count("not-run"):
            summary += f"; {not_run} not run"
            if self.documented:
                summary += f", {len(self.documented)} of them documented as refused or with other results"
        return summary


def checkpoints(
    cells: Iterable[Cell], cases: Iterable[Case], before: TargetRecord, after: TargetRecord
) -> Checkpoints | None:
    """Return what is known about the checkpoints that one version wrote and another resumes; None if that is nothing.

    ``cells``: every cell of the upgrade matrix; ``cases``: may document something for versions without a result.
    """
    own = tuple(cell for cell in cells if cell.pair == (before.name, after.name))
    answered = {cell.case for cell in own if cell.status != "not-run"}
    documented = tuple(known for known in _documented(cases, before, after) if known.case not in answered)
    return Checkpoints(before, after, own, documented) if own or documented else None


def _documented(cases: Iterable[Case], before: TargetRecord, after: TargetRecord) -> Iterator[DocumentedCheckpoint]:
    if before.version is None or after.version is None:
        return
    pair = VersionPair(before.version, after.version)
    for handoff in handoffs([case for case in cases if case.upgrades]):
        entry = handoff.case.upgrade_between(pair.origin, pair.to, handoff.cut)
        if entry is not None and no_checkpoint(handoff, pair) is None:
            outcome = documented_outcome(handoff, pair)
            yield DocumentedCheckpoint(handoff.case.id, as_documented(entry), outcome, DocumentedDifference.of(entry))


def groups_of(cells: Iterable[Cell], *, findings: bool = True) -> tuple[CheckpointGroup, ...]:
    """Group the checkpoints that do not resume as if the version had not changed by what they meet and why, worst first.

    ``findings``: whether the findings of an unexpected cell are a reason.
    """

    def reason(cell: Cell) -> _Reason:
        error = cell.error.name if cell.error is not None else ""
        return cell.status, cell.outcome, error, _because(cell, findings=findings), cell.differs

    return _grouped((reason(cell), cell.case, cell.cut) for cell in cells if cell.status not in NORMAL)


_Reason: TypeAlias = tuple[Status, Outcome | None, str, str, DocumentedDifference | None]
"""The first five fields of a group."""


def _grouped(checkpoints: Iterable[tuple[_Reason, str, int | None]]) -> tuple[CheckpointGroup, ...]:
    """Group checkpoints by reason; each comes with its case, and the cut if the case was run."""
    cuts_of_cases: dict[_Reason, dict[str, tuple[int, ...]]] = {}
    for reason, case, cut in checkpoints:
        cuts = cuts_of_cases.setdefault(reason, {})
        cuts[case] = (*cuts.get(case, ()), *(() if cut is None else (cut,)))
    groups = (CheckpointGroup(*reason, cuts) for reason, cuts in cuts_of_cases.items())
    return tuple(
        sorted(groups, key=lambda group: (WORST_FIRST.index(colour_of(group.status, group.outcome)), -group.count))
    )


def _because(cell: Cell, *, findings: bool) -> str:
    if cell.differs is not None:
        return cell.differs.reason
    return "; ".join([*described(cell.findings), *cell.notes]) if findings or cell.status in GREEN else ""
