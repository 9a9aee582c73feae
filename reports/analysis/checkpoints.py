"""Whether the checkpoints of one version resume on another: what was observed, and else what the cases document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from conformance.core.case import Case
from conformance.core.observation import FrozenRecord
from conformance.core.wording import counted
from conformance.judging.checkpoint_verdict import (
    CheckpointHandoff,
    VersionPair,
    documented_outcome,
    handoffs,
    no_checkpoint,
)
from conformance.judging.finding import described
from conformance.judging.verdict import Outcome, Status, as_documented
from conformance.suite.conditions import UNKNOWN, Condition, by_condition
from reports.results.checkpoint_status import NORMAL, WORST_FIRST, Colour, colour_of
from reports.results.errors import CellKey
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


class CheckpointChange(FrozenRecord):
    """How a checkpoint does not resume as if the version had not changed."""

    differs_in: tuple[str, ...] = ()
    """``rows``, ``error``, ``batches``, ``watermark``, ``dropped``, ``state``, as the case documents it; nothing if it is refused."""
    condition: Condition = UNKNOWN
    """Its ``restart`` says whether the later version does the same with a checkpoint of its own."""


@dataclass(frozen=True)
class Checkpoints:
    before: TargetRecord
    after: TargetRecord
    cells: tuple[Cell, ...]
    """The checkpoints that were tried, or that the results announce."""
    documented: tuple[DocumentedCheckpoint, ...] = ()
    changes: Mapping[CellKey, CheckpointChange] = field(default_factory=dict)
    """Of the checkpoints that do not resume as if the version had not changed, those whose case is at hand."""

    def change(self, cell: Cell) -> CheckpointChange:
        return self.changes.get(cell.key, CheckpointChange())

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
        words: tuple[tuple[tuple[Colour, ...], str, str], ...] = (
            (("refused", "unsupported"), "is refused", "are refused"),
            (("differs",), "resumes with other results", "resume with other results"),
            (("violates",), "is not as expected", "are not as expected"),
            (("broken",), "has no answer", "have no answer"),
        )
        parts = [
            f"{count} {single if count == 1 else several}{self._details(colours)}"
            for colours, single, several in words
            if (count := self.count(*colours))
        ]
        outcome = ", ".join(parts) or "every one resumes as if the version had not changed"
        summary = f"of {counted(self.tried, 'tried checkpoint')}, {outcome}"
        if not_run := self.count("not-run"):
            summary += f"; {not_run} not run"
            if self.documented:
                summary += f", {len(self.documented)} of them documented as refused or with other results"
        return summary

    def _details(self, colours: Sequence[Colour]) -> str:
        """Return `` (82 with default settings, 5 only with a setting)``, for other results with the number of those with other rows."""
        own = [cell for cell in self.cells if colour_of(cell.status, cell.outcome) in colours]
        conditions = [self.change(cell).condition for cell in own]
        if all(condition == UNKNOWN for condition in conditions):
            return ""
        outcomes = Counter(cell.outcome for cell in own)
        parts = [by_condition(conditions, f"also with a checkpoint of {self.after.title}")]
        if "differs" in colours:
            parts.append(f"{outcomes['other rows'] or 'none'} with other rows")
            parts += [f"{count} then failed" for count in [outcomes["fails later"]] if count]
        return f" ({'; '.join(parts)})"


def checkpoints(
    cells: Iterable[Cell], cases: Iterable[Case], before: TargetRecord, after: TargetRecord
) -> Checkpoints | None:
    """Return what is known about the checkpoints that one version wrote and another resumes; None if that is nothing.

    ``cells``: every cell of the upgrade matrix; ``cases``: may document something for versions without a result.
    """
    cells, at_hand = tuple(cells), {case.id: case for case in cases}
    own = tuple(cell for cell in cells if cell.pair == (before.name, after.name))
    alone = {(cell.case, cell.cut): cell for cell in cells if cell.pair == (after.name, after.name)}
    changes = {
        cell.key: _change(cell, case, VersionPair(before.version, after.version), alone.get((cell.case, cell.cut)))
        for cell in own
        if cell.status not in NORMAL and before.version is not None and after.version is not None
        if (case := at_hand.get(cell.written)) is not None and case.digest == cell.case_digest
    }
    answered = {cell.case for cell in own if cell.status != "not-run"}
    documented = tuple(known for known in _documented(at_hand.values(), before, after) if known.case not in answered)
    return Checkpoints(before, after, own, documented, changes) if own or documented else None


def _change(cell: Cell, case: Case, pair: VersionPair, alone: Cell | None) -> CheckpointChange:
    """Return how a checkpoint does not resume; ``alone``: what the later version did with its own, if that was tried."""
    handoff, own = CheckpointHandoff(case, cell.cut or 0), VersionPair(pair.to, pair.to)
    documented = documented_outcome(handoff, pair)
    if alone is not None and alone.status != "not-run":
        same = (alone.status, alone.outcome) == (cell.status, cell.outcome)
    else:
        same = no_checkpoint(handoff, own) is None and documented_outcome(handoff, own) == documented
    return CheckpointChange(differs_in=documented[1], condition=Condition.of(case, cell.cut, restart=same))


def _documented(cases: Iterable[Case], before: TargetRecord, after: TargetRecord) -> Iterator[DocumentedCheckpoint]:
    if before.version is None or after.version is None:
        return
    pair = VersionPair(before.version, after.version)
    for handoff in handoffs([case for case in cases if case.upgrades]):
        entry = handoff.case.upgrade_between(pair.origin, pair.to, handoff.cut)
        if entry is not None and no_checkpoint(handoff, pair) is None:
            outcome, _ = documented_outcome(handoff, pair)
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
