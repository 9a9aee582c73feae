"""What changes between two versions, classified by what it means for an upgrade.

Changes are found in observed behaviour, not in statuses: two versions may both do what the case expects of them and still
behave differently. Where a behaviour changes from one version to the next, the release that changed it is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from conformance.core.observation import ErrorSeen, Observation
from conformance.core.versions import SparkVersion, VersionRange, falling_into
from conformance.core.wording import counted, ticket
from conformance.judging.divergence import Aspect, Divergence, different_rows
from conformance.judging.step_comparison import OutputSchema
from conformance.judging.verdict import Status
from reports.analysis.equivalence import (
    WITHOUT_BEHAVIOUR,
    all_differences,
    first_difference,
    has_behaviour,
    once_for_each_answer,
    same_behaviour,
)
from reports.analysis.matrix import Matrix
from reports.results.known_bug import KnownBug, first_outside
from reports.results.records import Cell, DocumentedDifference, Target
from reports.results.status import GREEN

Meaning: TypeAlias = Literal["rows", "refused", "timing", "accepted", "metric"]


@dataclass(frozen=True)
class MeaningText:
    glyph: str
    title: str
    explained: str


MEANINGS: Mapping[Meaning, MeaningText] = {
    "rows": MeaningText("✗", "Rows lost, added or with different values", "The same input gives a different result."),
    "refused": MeaningText("⊘", "Refused, or fails", "The query, or its checkpoint, no longer runs."),
    "timing": MeaningText("◷", "Rows emitted later or earlier", "The same rows, in a different micro-batch."),
    "accepted": MeaningText(
        "+", "Newly accepted", "A query that was refused, or a feature that did not exist, now runs."
    ),
    "metric": MeaningText(
        "∘", "Only a metric or an error", "The rows are the same; the watermark, state or counts differ."
    ),
}
"""Every kind of change, worst first."""

OF_ROWS: frozenset[Meaning] = frozenset({"rows", "refused", "timing"})
"""What the rows of a running query can meet; the other kinds change only what Spark accepts or reports."""


@dataclass(frozen=True)
class Reason:
    """Why a version behaves as it does, according to the case."""

    spark: str
    """The version that the reason applies to."""
    text: str
    link: str | None
    bug: KnownBug | None = None
    """The known bug of that version, unless the change is documented as intended."""

    @property
    def ticket(self) -> str:
        return self.bug.ticket if self.bug is not None else ticket(self.link, None, bug=False)


@dataclass(frozen=True)
class Change:
    """A case that behaves differently on two versions."""

    case: str
    before: Cell
    after: Cell
    meaning: Meaning
    what: str
    """A sentence about the later version."""
    where: Divergence
    reasons: tuple[Reason, ...]
    """The reasons that the case documents."""
    met_by_running_queries: bool
    """Whether a query that runs on the earlier version can meet the change.

    It cannot if the earlier version never ran the query, or failed on it and the later one only fails otherwise.
    """

    @property
    def brings_a_bug(self) -> bool:
        return self.after.status == "bug" and self.before.differs != self.after.differs

    @property
    def fixes_a_bug(self) -> bool:
        """Whether a known bug of the earlier version is gone: what changes was wrong before."""
        return self.before.status == "bug" and self.after.status in GREEN and self.after.status != "bug"


@dataclass(frozen=True)
class MissingAnswer:
    """A cell without a result, or with one of another text of the case, so its case cannot be compared."""

    case: str
    target: str
    status: Status
    other_text: bool = False

    @property
    def why(self) -> str:
        return (
            "it ran another text of the case than the other version; run both again" if self.other_text else self.status
        )


@dataclass(frozen=True)
class Changes:
    before: Target
    after: Target
    changes: tuple[Change, ...]
    """The changes, the worst first, then by case."""
    same: tuple[str, ...]
    outside: tuple[str, ...]
    missing: tuple[MissingAnswer, ...]

    def of(self, meaning: Meaning) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.meaning == meaning)

    @property
    def of_rows(self) -> int:
        """How many cases emit other rows, emit them at another time, or are refused; the others change what they accept or report."""
        return sum(change.meaning in OF_ROWS for change in self.changes)

    @property
    def compared(self) -> int:
        """How many cases have a result on both versions."""
        return len(self.changes) + len(self.same)


def changes(matrix: Matrix, before: Target, after: Target) -> Changes:
    """Returns the changes from one target of the matrix to another, which are found once."""
    names = before.name, after.name
    if names not in matrix.compared:
        matrix.compared[names] = _changes(matrix, before, after)
    return matrix.compared[names]


def _changes(matrix: Matrix, before: Target, after: Target) -> Changes:
    different: list[Change] = []
    same: list[str] = []
    outside: list[str] = []
    missing: list[MissingAnswer] = []
    for case in matrix.cases:
        pair = [(target, matrix.cells.get((case, target.name))) for target in (before, after)]
        a, b = pair[0][1], pair[1][1]
        open_ = [(target, cell.status if cell else "not-run") for target, cell in pair if not has_behaviour(cell)]
        if any(WITHOUT_BEHAVIOUR.get(status, "no answer") == "no answer" for _, status in open_):
            missing += [
                MissingAnswer(case, target.name, status) for target, status in open_ if status != "not-applicable"
            ]
        elif open_ or a is None or b is None:
            outside.append(case)
        elif a.case_digest != b.case_digest:
            missing.append(MissingAnswer(case, before.name, a.status, other_text=True))
        elif same_behaviour(a, b):
            same.append(case)
        else:
            different.append(change(a, before, b, after, matrix.bugs.get(case, ())))
    order = list(MEANINGS)
    different.sort(key=lambda changed: (order.index(changed.meaning), changed.case))
    return Changes(before, after, tuple(different), tuple(same), tuple(outside), tuple(missing))


def change(a: Cell, before: Target, b: Cell, after: Target, bugs: Sequence[DocumentedDifference] = ()) -> Change:
    """Returns the change between two cells of a case whose behaviour differs; ``bugs``: all that the case shows on some version."""
    meaning, what = _meaning(a, b)
    reasons: dict[tuple[str, str | None], Reason] = {}
    for cell, target in ((a, before), (b, after)):
        entry = cell.differs
        if entry is not None and (text := entry.because or entry.unsupported) is not None:
            bug = KnownBug.of(cell, target.spark, bugs)
            reasons.setdefault((text, entry.link), Reason(target.spark, text, entry.link, bug))
    met = _met_by_running_queries(a, b)
    return Change(a.case, a, b, meaning, what, first_difference(a, b), tuple(reasons.values()), met)


@once_for_each_answer
def _met_by_running_queries(before: Cell, after: Cell) -> bool:
    if _meaning(before, after)[0] == "accepted":
        return False
    seen = before.observation
    if seen is None or seen.error is None:
        return True
    return _ran(seen) and any(difference.what != "error" for difference in all_differences(before, after))


@once_for_each_answer
def _meaning(before: Cell, after: Cell) -> tuple[Meaning, str]:
    a, b = before.observation, after.observation
    if a is None or b is None:
        return "metric", "no observation was recorded"
    old, new = a.error, b.error
    # If only one of two failing versions ran, it alone has a feature: no rows are lost or added by that.
    if new is not None and (old is None or (_ran(a) and not _ran(b))):
        return "refused", _refusal(new)
    if old is not None and new is None:
        return "accepted", f"runs; {_before(before, old)}"
    if old is not None and new is not None and _ran(b) and not _ran(a):
        return "accepted", f"starts, then {_refusal(new)}; {_before(before, old)}"
    lost, added = _different_rows(a, b)
    if lost or added:
        return _other_rows(a, b, lost, added)
    if old is not None and new is not None:
        if _is_absent(before) and not _is_absent(after):
            return "metric", f"{_refusal(new)}; {_before(before, old)}"
        if old.stage != new.stage:
            return "metric", f"fails at {new.stage} instead of {old.stage}"
        if old.name != new.name:
            return "metric", f"fails with {new.title} instead of {old.title}"
    if moved := _moved(a, b):
        return "timing", moved
    return "metric", _metrics(before, after)


def contrast(own: Cell, other: Cell, name: str) -> str:
    """Says what a cell does and what another of the same case does, whichever is older; ``name``: the version of the other."""
    a, b = own.observation, other.observation
    if a is None or b is None:
        return "no observation was recorded"
    mine, theirs = a.error, b.error
    outcomes = f"here the query {_outcome(a, own)}; on {name} it {_outcome(b, other)}"
    if (mine is None) != (theirs is None) or (mine is not None and _ran(a) != _ran(b)):
        return outcomes
    only_here, only_there = _different_rows(a, b)
    if only_here or only_there:
        return _rows_apart(a, b, only_here, only_there, name)
    if mine is not None and theirs is not None and (mine.stage, mine.name) != (theirs.stage, theirs.name):
        return outcomes
    if moved := _moved(b, a):
        return f"{moved}, compared with {name}"
    return _metrics(own, other)


def _outcome(observation: Observation, cell: Cell) -> str:
    error = observation.error
    if error is None:
        return "runs"
    if _is_absent(cell):
        return f"uses a feature that is not available ({error.title})"
    return f"starts, then {_refusal(error)}" if _ran(observation) else _refusal(error)


def _rows_apart(a: Observation, b: Observation, only_here: int, only_there: int, name: str) -> str:
    if only_here == only_there:
        return f"{counted(only_here, 'row')} {'has' if only_here == 1 else 'have'} other values here than on {name}"
    parts = [f"{counted(only_here, 'row')} emitted only here"] if only_here else []
    parts += [f"{counted(only_there, 'row')} emitted only on {name}"] if only_there else []
    if more := _dropped(a) - _dropped(b):
        parts.append(f"{abs(more)} more dropped as late {'here' if more > 0 else f'on {name}'}")
    elif _held(a) != _held(b):
        parts.append(f"state at the end: {counted(_held(a), 'row')} here, {_held(b)} on {name}")
    return ", ".join(parts)


def _is_absent(cell: Cell) -> bool:
    return cell.differs is not None and cell.differs.unsupported is not None


def _ran(observation: Observation) -> bool:
    return any(step.batches for step in observation.steps)


def _refusal(error: ErrorSeen) -> str:
    verb = "fails while it runs" if error.stage == "run" else f"is refused at {error.stage}"
    return f"{verb}: {error.title}"


def _before(cell: Cell, error: ErrorSeen) -> str:
    if _is_absent(cell):
        return f"not available before ({error.title})"
    verb = "failed while it ran" if error.stage == "run" else f"was refused at {error.stage}"
    return f"it {verb} ({error.title}) before"


def _rows(observation: Observation) -> list[str]:
    return [row for step in observation.steps for batch in step.batches for row in batch.behaviour.rows]


def _different_rows(a: Observation, b: Observation) -> tuple[int, int]:
    only_a, only_b = different_rows(_rows(a), _rows(b), (OutputSchema.of(a.columns), OutputSchema.of(b.columns)))
    return len(only_a), len(only_b)


def _other_rows(a: Observation, b: Observation, lost: int, added: int) -> tuple[Meaning, str]:
    """Tells rows that only one version emitted: they are lost, or late if they are still in state when the case ends."""
    held, dropped = _held(b) - _held(a), _dropped(b) - _dropped(a)
    if lost and not added and held >= lost and dropped <= 0:
        return "timing", f"{counted(lost, 'row')} later: still in state when the case ends"
    if added and not lost and -held >= added and dropped >= 0:
        return "timing", f"{counted(added, 'row')} earlier: previously still in state when the case ends"
    if lost and added:
        same = f"{counted(lost, 'row')} {'has' if lost == 1 else 'have'} different values"
        return "rows", same if added == lost else f"{counted(added, 'different row')} instead of {lost}"
    if lost:
        late = f", {dropped} more dropped as late" if dropped > 0 else ""
        verb = "is" if lost == 1 else "are"
        return "rows", f"{lost} of {counted(len(_rows(a)), 'row')} {verb} no longer emitted{late}"
    fewer = f", {-dropped} fewer dropped as late" if dropped < 0 else ""
    return "rows", f"{counted(added, 'more row')} than before{fewer}"


def _held(observation: Observation) -> int:
    last = [sum(batch.state) for step in observation.steps for batch in step.batches]
    return last[-1] if last else 0


def _dropped(observation: Observation) -> int:
    return sum(batch.dropped or 0 for step in observation.steps for batch in step.batches)


def _moved(a: Observation, b: Observation) -> str | None:
    """Tells whether rows that both emitted come later or earlier; None if all come in the same place."""
    old_places, new_places = _places(a), _places(b)
    if old_places == new_places:
        return None
    pairs = [pair for row, old in old_places.items() for pair in zip(old, new_places.get(row, old), strict=False)]
    later, earlier = sum(new > old for old, new in pairs), sum(new < old for old, new in pairs)
    parts = [f"{counted(later, 'row')} later"] if later else []
    parts += [f"{counted(earlier, 'row')} earlier"] if earlier else []
    within = ", within the same step" if all(old[0] == new[0] for old, new in pairs) else ""
    return " and ".join(parts) + within


def _places(observation: Observation) -> dict[str, list[tuple[int, int]]]:
    places: dict[str, list[tuple[int, int]]] = {}
    for step in observation.steps:
        for at, batch in enumerate(step.batches):
            for row in batch.behaviour.rows:
                places.setdefault(row, []).append((step.number, at))
    return places


_METRICS: Mapping[Aspect, str] = {
    "micro-batches": "number of micro-batches",
    "watermark": "watermark",
    "next_watermark": "watermark",
    "watermark after the step": "watermark",
    "dropped": "rows dropped as late",
    "state": "rows in state",
    "kind": "kind of a micro-batch",
    "id": "micro-batch ids",
}


def _metrics(a: Cell, b: Cell) -> str:
    names = dict.fromkeys(
        _METRICS[difference.what] for difference in all_differences(a, b) if difference.what in _METRICS
    )
    return f"same rows; differs in {', '.join(names)}" if names else "same rows"


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
    """The position of the version among all."""
    before: tuple[Cell, Target]
    after: tuple[Cell, Target]
    since: Since


def turns(cells: Sequence[Cell | None], targets: Sequence[Target]) -> Iterator[Turn]:
    """Yields where the behaviour of a case changes; ``cells`` are those of the targets, oldest version first."""
    previous: tuple[Cell, Target] | None = None
    for place, (cell, target) in enumerate(zip(cells, targets, strict=True)):
        if cell is None or not has_behaviour(cell):
            continue
        if previous is not None and not same_behaviour(previous[0], cell):
            yield Turn(place, previous, (cell, target), since(*previous, cell, target))
        previous = cell, target


def since(a: Cell, before: Target, b: Cell, after: Target) -> Since:
    """Returns ``4.0 (seen on 4.0.5)``, or only ``4.0.5`` if no case says which release changed it.

    ``a``: the cell of ``before``, the last version that behaves otherwise; ``b``: that of ``after``, the first that behaves like this.
    """
    changed = _changed_in(a, before, b, after)
    if changed is None or not after.apache:
        return Since(after.title, None)
    name = changed.line if changed.patch == 0 else str(changed)
    return Since(name, None if str(changed) == after.spark else after.title)


def _changed_in(a: Cell, before: Target, b: Cell, after: Target) -> SparkVersion | None:
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
