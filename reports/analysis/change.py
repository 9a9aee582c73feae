"""What changes between two versions, classified by what it means for an upgrade.

Changes are found in observed behaviour, not in statuses: two versions may both do what the case expects of them and still
behave differently. Where a behaviour changes from one version to the next, the release that changed it is named.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from conformance.core.case import Case
from conformance.core.versions import SparkVersion, VersionRange, falling_into
from conformance.core.wording import counted, ticket
from conformance.judging.comparison import MEANINGS, OF_ROWS, WITHOUT_BEHAVIOUR, BehaviourChange, Meaning, has_behaviour
from conformance.judging.verdict import Status
from conformance.suite.conditions import UNKNOWN, Condition
from reports.analysis.equivalence import behaviour_change, same_behaviour
from reports.analysis.matrix import Matrix
from reports.results.known_bug import KnownBug, first_outside
from reports.results.records import Cell, DocumentedDifference, TargetRecord
from reports.results.status import GREEN


@dataclass(frozen=True)
class Reason:
    """Why a version behaves as it does, according to the case."""

    spark: str
    text: str
    link: str | None
    bug: KnownBug | None = None
    """The known bug of that version, unless the change is documented as intended."""

    @property
    def ticket(self) -> str:
        return self.bug.ticket if self.bug is not None else ticket(self.link, None, bug=False)

    def __str__(self) -> str:
        return f"{f'{self.bug}: ' if self.bug else ''}{self.text}{self.ticket}"


@dataclass(frozen=True)
class Change(BehaviourChange):
    """A case that behaves differently on two versions."""

    case: str
    before: Cell
    after: Cell
    reasons: tuple[Reason, ...]

    @property
    def of_rows(self) -> bool:
        """Whether the rows of a running query can meet it."""
        return self.meaning in OF_ROWS

    @property
    def brings_a_bug(self) -> bool:
        return self.after.status == "bug" and self.before.differs != self.after.differs

    @property
    def fixes_a_bug(self) -> bool:
        """Whether a known bug of the earlier version is gone: what changes was wrong before."""
        return self.before.status == "bug" and self.after.status in GREEN and self.after.status != "bug"

    def condition(self, case: Case | None) -> Condition:
        """Return under which condition a job can meet the change; ``case``: its case, None if it is not at hand."""
        ran = case is not None and case.digest == self.after.case_digest
        return Condition.of(case, self.step) if case is not None and ran else UNKNOWN


@dataclass(frozen=True)
class MissingAnswer:
    """A cell without a result, or with one of another text of the case, so its case cannot be compared."""

    case: str
    target: str
    status: Status
    other_text: bool = False

    @property
    def why(self) -> str:
        other = "it ran another text of the case than the other version; run both again"
        return other if self.other_text else self.status


NOTHING_COMPARED = "nothing compared, as no case has a result on both versions"


@dataclass(frozen=True)
class Changes:
    before: TargetRecord
    after: TargetRecord
    changes: tuple[Change, ...]
    """The changes, the worst first, then by case."""
    same: tuple[str, ...]
    wrong_on_both: tuple[str, ...]
    """Those of the same behaviour that show a known bug on both versions."""
    outside: tuple[str, ...]
    one_sided: tuple[str, ...]
    """Those outside that one of the two versions runs."""
    missing: tuple[MissingAnswer, ...]

    def of(self, meaning: Meaning) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.meaning == meaning)

    @property
    def of_rows(self) -> int:
        """The number of cases that emit other rows, emit them at another time, or are refused; others change what they accept or report."""
        return sum(change.of_rows for change in self.changes)

    @property
    def compared(self) -> int:
        """The number of cases with a result on both versions."""
        return len(self.changes) + len(self.same)

    @property
    def basis(self) -> str:
        """What the comparison rests on: ``3 cases compared, 1 of them wrong on both; 2 cells without a result``."""
        missing, wrong, one = map(len, (self.missing, self.wrong_on_both, self.one_sided))
        compared = f"{counted(self.compared, 'case')} compared" if self.compared else NOTHING_COMPARED
        parts = (
            f"{compared}, {wrong} of them wrong on both: a known bug of both" if wrong else compared,
            f"{counted(missing, 'cell')} without a result" if missing else "",
            f"{counted(one, 'case')} on only one version" if one else "",
        )
        return "; ".join(filter(None, parts))


def changes(matrix: Matrix, before: TargetRecord, after: TargetRecord) -> Changes:
    """Find the changes from one target of the matrix to another, once."""
    known = _KNOWN.setdefault(matrix, {})
    names = before.name, after.name
    if names not in known:
        known[names] = find_changes(matrix, before, after)
    return known[names]


_KNOWN: WeakKeyDictionary[Matrix, dict[tuple[str, str], Changes]] = WeakKeyDictionary()
"""Matrix → the names of two targets → the changes between them."""


def find_changes(matrix: Matrix, before: TargetRecord, after: TargetRecord) -> Changes:
    """Compare two targets without keeping the result, as `changes` does: for callers that ask about hundreds of pairs."""
    different: list[Change] = []
    same: dict[str, bool] = {}
    outside: dict[str, bool] = {}
    missing: list[MissingAnswer] = []
    both = matrix.answers[before.name], matrix.answers[after.name]
    for case, one, other in zip(matrix.cases, *both, strict=True):
        if one is not None and other is not None:
            a, b = one[1], other[1]
            if a.case_digest != b.case_digest:
                missing.append(MissingAnswer(case, before.name, a.status, other_text=True))
            elif one[0] == other[0] or same_behaviour(a, b):
                same[case] = a.status == b.status == "bug"
            else:
                different.append(change(a, before, b, after, matrix.bugs.get(case, ())))
            continue
        silent = [target for target, answer in ((before, one), (after, other)) if answer is None]
        open_ = [(target, matrix.status(case, target.name)) for target in silent]
        if any(WITHOUT_BEHAVIOUR.get(status, "no answer") == "no answer" for _, status in open_):
            missing += [
                MissingAnswer(case, target.name, status) for target, status in open_ if status != "not-applicable"
            ]
        else:
            outside[case] = len(open_) == 1
    order = list(MEANINGS)
    different.sort(key=lambda changed: (order.index(changed.meaning), changed.case))
    wrong_on_both, one_sided = (tuple(case for case, is_so in cases.items() if is_so) for cases in (same, outside))
    return Changes(
        before, after, tuple(different), tuple(same), wrong_on_both, tuple(outside), one_sided, tuple(missing)
    )


def change(
    a: Cell, before: TargetRecord, b: Cell, after: TargetRecord, bugs: Sequence[DocumentedDifference] = ()
) -> Change:
    """Return the change between two cells of a case whose behaviour differs; ``bugs``: all that the case shows on some version."""
    reasons: dict[tuple[str, str | None], Reason] = {}
    for cell, target in ((a, before), (b, after)):
        entry = cell.differs
        if entry is not None and (text := entry.because or entry.unsupported) is not None:
            bug = KnownBug.of(cell, target.spark, bugs)
            reasons.setdefault((text, entry.link), Reason(target.spark, text, entry.link, bug))
    return Change(**vars(behaviour_change(a, b)), case=a.case, before=a, after=b, reasons=tuple(reasons.values()))


@dataclass(frozen=True)
class Since:
    """The release from which on a behaviour holds."""

    release: str
    """``4.0`` for the first one of a line, ``3.5.4`` for a later one; the title of a build that is not Apache's."""
    seen: str | None
    """The version that showed it, unless that is the release."""

    def __str__(self) -> str:
        return f"{self.release} (seen on {self.seen})" if self.seen else self.release


@dataclass(frozen=True)
class Turn:
    """A version on which a case behaves differently from the one before it."""

    place: int
    before: tuple[Cell, TargetRecord]
    after: tuple[Cell, TargetRecord]
    since: Since


def turns(cells: Sequence[Cell | None], targets: Sequence[TargetRecord]) -> Iterator[Turn]:
    """Yield where the behaviour of a case changes; ``cells`` are those of the targets, oldest version first."""
    previous: tuple[Cell, TargetRecord] | None = None
    for place, (cell, target) in enumerate(zip(cells, targets, strict=True)):
        if cell is None or not has_behaviour(cell):
            continue
        if previous is not None and not same_behaviour(previous[0], cell):
            yield Turn(place, previous, (cell, target), since(*previous, cell, target))
        previous = cell, target


def since(a: Cell, before: TargetRecord, b: Cell, after: TargetRecord) -> Since:
    """Return ``4.0 (seen on 4.0.5)``, or only ``4.0.5`` if no case says which release changed it.

    ``a``: the cell of ``before``, the last version that behaves otherwise; ``b``: that of ``after``, the first that behaves like this.
    """
    changed = _changed_in(a, before, b, after)
    if changed is None or not after.apache:
        return Since(after.title, None)
    name = changed.line if changed.patch == 0 else str(changed)
    return Since(name, None if str(changed) == after.spark else after.title)


def _changed_in(a: Cell, before: TargetRecord, b: Cell, after: TargetRecord) -> SparkVersion | None:
    old, new = before.version, after.version
    if old is None or new is None or old >= new:
        return None
    releases = []
    if a.differs is not None:
        releases.append(first_outside(a.differs.spark, old))
    if b.differs is not None:
        covered = falling_into(VersionRange.parse(b.differs.spark.split(" or ")))
        releases.append(next((release for release in covered if release > old), None))
    return max((release for release in releases if release is not None and old < release <= new), default=None)
