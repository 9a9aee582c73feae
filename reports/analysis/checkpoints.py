"""Whether the checkpoints of one version resume on another: what was observed, and else what the cases document."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self, TypeAlias

from conformance.core.case import Case, Upgrade
from conformance.core.observation import FrozenRecord
from conformance.core.versions import SparkVersion, releases
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
from reports.results.published import SameFiles, same_files
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


Pair: TypeAlias = tuple[str, str]
"""The names of the targets that wrote a checkpoint and resumed it."""
_NOT_TRIED: tuple[Status, ...] = ("not-run", "not-applicable")


@dataclass(frozen=True)
class Checkpoints:
    """What is known about the checkpoints that one version wrote and another resumes."""

    before: TargetRecord
    after: TargetRecord
    cells: tuple[Cell, ...] = ()
    """The checkpoints that were tried, or that the results announce."""
    documented: tuple[DocumentedCheckpoint, ...] = ()
    """What the cases document for these versions and no result is about."""
    ran: Pair | None = None
    """Whose checkpoints were tried: of these versions, or else of the nearest pair; None if no pair of their lines was."""
    changes: Mapping[str, CheckpointChange] = field(default_factory=dict)
    """Of the checkpoints that do not resume as if the version had not changed, those whose case is at hand, by case and step."""

    def change(self, cell: Cell) -> CheckpointChange:
        return self.changes.get(f"{cell.case} {cell.cut}", CheckpointChange())

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
    def located_groups(self) -> list[tuple[CheckpointGroup, str]]:
        """The groups that were tried, then those that are documented, each with where, if that was not between these versions."""
        documented = [(group, f"not run for {self.pair}") for group in self.documented_groups]
        return [*((group, self.answered_by) for group in self.groups), *documented]

    @property
    def pair(self) -> str:
        return _titled(self.before.name, self.after.name)

    @property
    def answered_by(self) -> str:
        """The pair that was tried in place of these versions: ``3.5.9 → 4.3.0``; empty if these were, or none was."""
        tried = _titled(*self.ran) if self.ran is not None else ""
        return "" if tried == self.pair else tried

    @property
    def resumed_by(self) -> str:
        """The version that resumed what was tried: ``4.3.0``."""
        return (self.ran[1] if self.ran is not None else self.after.name).removeprefix("spark-")

    @property
    def tried(self) -> int:
        return _tried(self.cells)

    @property
    def untried(self) -> str:
        """The checkpoints of these versions without a result, in words: ``16 checkpoints``; empty if there are none."""
        same = self._same_files
        if self.ran is None or (self.answered_by and (same is None or same.settings)):
            return "every checkpoint"
        count = self.count("not-run", "broken")
        return counted(count, "checkpoint") if count else ""

    def count(self, *colours: Colour) -> int:
        return sum(map(self._colours.__getitem__, colours))

    @cached_property
    def _colours(self) -> Counter[Colour]:
        return Counter(colour_of(cell.status, cell.outcome) for cell in self.cells)

    def of(self, concerns: Callable[[str], bool]) -> Self:
        """Return what is known about the checkpoints of some cases."""
        cells = tuple(cell for cell in self.cells if concerns(cell.case))
        return replace(self, cells=cells, documented=tuple(known for known in self.documented if concerns(known.case)))

    def summary(self, *, conditions: bool = True) -> str:
        """Return ``of 57 tried checkpoints, 24 are refused; 5 not run``, after the pair that was tried if it is another one.

        ``conditions``: whether to count what is refused, or resumes with other results, by condition.
        """
        parts = [self._outcomes(conditions=conditions)]
        if self.ran is None:
            lines = dict.fromkeys(end.line or end.title for end in (self.before, self.after))
            parts = [
                f"{self.pair} was not run, nor any other pair of the line{'s' * (len(lines) > 1)} {' and '.join(lines)}"
            ]
        elif self.answered_by:
            parts = [f"{self.pair} was not run; {self.answered_by} was: {parts[0]}"]
            if (same := self._same_files) is not None:
                but = f", but for the recorded settings: {', '.join(same.settings)}" if same.settings else ""
                wrote = self.answered_by.partition(" ")[0]
                parts.append(f"{self.before.title} writes the same files as {wrote} in {same.queries} queries{but}")
        if self.ran and (not_run := self.count("not-run")):
            parts.append(f"{not_run} not run")
        if count := len(self.documented):
            verb = "documents" if count == 1 else "document"
            parts.append(f"without a run, {counted(count, 'case')} {verb} a refusal or other results for {self.pair}")
        return "; ".join(parts)

    @cached_property
    def _same_files(self) -> SameFiles | None:
        """How the earlier version writes the files that were tried; None if it writes others, or they were not compared."""
        wrote, resumed = self.ran or ("", "")
        return same_files(self.before.name, wrote) if resumed == self.after.name else None

    def _outcomes(self, *, conditions: bool) -> str:
        words: tuple[tuple[tuple[Colour, ...], str, str], ...] = (
            (("refused", "unsupported"), "is refused", "are refused"),
            (("differs", "bug"), "resumes with other results", "resume with other results"),
            (("violates", "flaky"), "is not as expected", "are not as expected"),
            (("broken",), "has no answer", "have no answer"),
        )
        parts = [
            f"{count} {single if count == 1 else several}{self._details(colours) if conditions else ''}"
            for colours, single, several in words
            if (count := self.count(*colours))
        ]
        outcome = ", ".join(parts) or "every one resumes as if the version had not changed"
        return f"of {counted(self.tried, 'tried checkpoint')}, {outcome}" if self.tried else "no checkpoint was tried"

    def _details(self, colours: Sequence[Colour]) -> str:
        """Return `` (82 with default settings, 5 only with a setting)``, for other results with the number of those with other rows."""
        own = [cell for cell in self.cells if colour_of(cell.status, cell.outcome) in colours]
        conditions = [self.change(cell).condition for cell in own]
        if all(condition == UNKNOWN for condition in conditions):
            return ""
        outcomes = Counter(cell.outcome for cell in own)
        parts = [by_condition(conditions, f"also with a checkpoint of {self.resumed_by}")]
        if "differs" in colours:
            parts.append(f"{outcomes['other rows'] or 'none'} with other rows")
            parts += [f"{count} then failed" for count in [outcomes["fails later"]] if count]
        return f" ({'; '.join(parts)})"


def _titled(origin: str, to: str) -> str:
    return " → ".join(name.removeprefix("spark-") for name in (origin, to))


def _tried(cells: Iterable[Cell]) -> int:
    return sum(cell.status not in _NOT_TRIED for cell in cells)


def by_pair(cells: Iterable[Cell]) -> Mapping[Pair, tuple[Cell, ...]]:
    """Group the cells of the upgrade matrix."""
    pairs: dict[Pair, list[Cell]] = {}
    for cell in cells:
        pairs.setdefault(cell.pair, []).append(cell)
    return {pair: tuple(own) for pair, own in pairs.items()}


@dataclass(frozen=True, eq=False)
class UpgradeMatrix:
    """The checkpoints that were tried, and the cases, which may document something for versions without a result."""

    handed: Mapping[Pair, tuple[Cell, ...]]
    cases: Mapping[str, Case]
    _known: dict[Pair, Checkpoints] = field(default_factory=dict)
    _changes: dict[Pair, Mapping[str, CheckpointChange]] = field(default_factory=dict)
    _outcomes: dict[tuple[object, ...], Outcome | None] = field(default_factory=dict)
    _said: dict[SparkVersion, int] = field(default_factory=dict)
    _numbers: dict[object, int] = field(default_factory=dict)
    _documented: dict[tuple[int, int], Sequence[DocumentedCheckpoint]] = field(default_factory=dict)

    def between(self, before: TargetRecord, after: TargetRecord) -> Checkpoints:
        """Return what is known about the checkpoints that one version wrote and another resumes.

        Where none was tried, those of the nearest pair answer: of the same lines, and of one of the two versions if there is such a pair.
        """
        names = before.name, after.name
        if names not in self._known:
            self._known[names] = self._between(before, after)
        return self._known[names]

    def _between(self, before: TargetRecord, after: TargetRecord) -> Checkpoints:
        own = (before.name, after.name)
        # Of one line, no other pair leads from an older release to a newer one, or back.
        sides = [
            {end.name, *(f"spark-{release}" for release in releases() if release.line == end.line != other.line)}
            for end, other in ((before, after), (after, before))
        ]
        near = (pair for pair, count in self._tried.items() if pair[0] in sides[0] and pair[1] in sides[1] and count)
        ran = max(near, key=lambda pair: (sum(map(str.__eq__, pair, own)), self._tried[pair]), default=None)
        cells = self.handed.get(own, ())
        if ran is None and cells and all(cell.status == "not-applicable" for cell in cells):
            ran = own  # no case has a checkpoint that could be tried
        answered = {cell.case for cell in cells if cell.status != "not-run"}
        documented = tuple(known for known in self._documented_for(before, after) if known.case not in answered)
        if ran is None:
            return Checkpoints(before, after, cells, documented)
        if ran not in self._changes:
            known = {end.name: end.version for end in (before, after)}
            versions = [known.get(name) or SparkVersion.parse(name.removeprefix("spark-")) for name in ran]
            self._changes[ran] = self._changes_of(ran, VersionPair(versions[0], versions[1]))
        return Checkpoints(before, after, self.handed[ran], documented, ran, self._changes[ran])

    @cached_property
    def _tried(self) -> Mapping[Pair, int]:
        return {pair: _tried(cells) for pair, cells in self.handed.items()}

    @cached_property
    def _documenting(self) -> Sequence[CheckpointHandoff]:
        return handoffs([case for case in self.cases.values() if case.upgrades])

    def _changes_of(self, ran: Pair, pair: VersionPair) -> Mapping[str, CheckpointChange]:
        alone = {(cell.case, cell.cut): cell for cell in self.handed.get((ran[1], ran[1]), ())}
        return {
            f"{cell.case} {cell.cut}": _change(cell, case, pair, alone.get((cell.case, cell.cut)))
            for cell in self.handed[ran]
            if cell.status not in NORMAL
            if (case := self.cases.get(cell.written)) is not None and case.digest == cell.case_digest
        }

    def _documented_for(self, before: TargetRecord, after: TargetRecord) -> Sequence[DocumentedCheckpoint]:
        if before.version is None or after.version is None:
            return ()
        pair = VersionPair(before.version, after.version)
        said = self._said_of(pair.origin), self._said_of(pair.to)
        if said not in self._documented:
            self._documented[said] = tuple(self._documented_of(pair))
        return self._documented[said]

    def _said_of(self, version: SparkVersion) -> int:
        """Return the number of what the cases say of a version: the versions of a line mostly share it."""
        if version not in self._said:
            said = tuple(
                (
                    case.applies_to(version),
                    id(case.differs_on(version)),
                    *(
                        known is None or version in known
                        for entry in case.upgrades
                        for known in (entry.from_, entry.to)
                    ),
                )
                for case in self.cases.values()
                if case.upgrades
            )
            self._said[version] = self._numbers.setdefault(said, len(self._numbers))
        return self._said[version]

    def _documented_of(self, pair: VersionPair) -> Iterator[DocumentedCheckpoint]:
        for handoff in self._documenting:
            case = handoff.case
            entry = next((entry for entry in case.upgrades if entry.speaks_of(pair.origin, pair.to, handoff.cut)), None)
            if entry is not None and (outcome := self._outcome(handoff, pair, entry)) is not None:
                yield DocumentedCheckpoint(case.id, as_documented(entry), outcome, DocumentedDifference.of(entry))

    def _outcome(self, handoff: CheckpointHandoff, pair: VersionPair, entry: Upgrade) -> Outcome | None:
        """Return what an entry documents; None if there is no checkpoint. All versions of which the case says the same share it."""
        case = handoff.case
        said = ((case.applies_to(end), id(case.differs_on(end))) for end in (pair.origin, pair.to))
        key = case.id, handoff.cut, id(entry), *said
        if key not in self._outcomes:
            is_there = no_checkpoint(handoff, pair) is None
            self._outcomes[key] = documented_outcome(handoff, pair)[0] if is_there else None
        return self._outcomes[key]


def _change(cell: Cell, case: Case, pair: VersionPair, alone: Cell | None) -> CheckpointChange:
    """Return how a checkpoint does not resume; ``alone``: what the later version did with its own, if that was tried."""
    handoff, own = CheckpointHandoff(case, cell.cut or 0), VersionPair(pair.to, pair.to)
    documented = documented_outcome(handoff, pair)
    if alone is not None and alone.status != "not-run":
        same = (alone.status, alone.outcome) == (cell.status, cell.outcome)
    else:
        same = no_checkpoint(handoff, own) is None and documented_outcome(handoff, own) == documented
    return CheckpointChange(differs_in=documented[1], condition=Condition.of(case, cell.cut, restart=same))


def groups_of(cells: Iterable[Cell], *, findings: bool = True) -> tuple[CheckpointGroup, ...]:
    """Group the checkpoints that do not resume as if the version had not changed by what they meet and why, worst first.

    ``findings``: whether the findings of an unexpected cell are a reason.
    """

    def reason(cell: Cell) -> _Reason:
        error, entry = cell.error.name if cell.error is not None else "", cell.differs
        if entry is not None and not entry.bug:  # of a bug, the versions say where it is fixed
            entry = entry.model_copy(update={"spark": "", "origin": None})
        return cell.status, cell.outcome, error, _because(cell, findings=findings), entry

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
