"""The gate before an upgrade: what changes between two versions, and whether it may pass.

Behaviours are compared, not pass marks. A change passes when it is below what the gate fails on, was there in an earlier
result already, or is accepted with a reason. Nothing passes for want of an answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

from conformance.core.case import Strength
from reports.analysis.acceptances import Acceptance
from reports.analysis.change import Change, Changes, Silent, changes
from reports.analysis.equivalence import same_behaviour
from reports.analysis.matrix import Matrix
from reports.results.known_bug import KnownBug
from reports.results.reading import Results
from reports.results.records import Target

FailOn: TypeAlias = Literal["any", "documented", "guaranteed"]
Passing: TypeAlias = Literal["fails", "accepted", "known", "tolerated"]

WORDS: Mapping[Passing, str] = {
    "fails": "fails the gate",
    "accepted": "accepted",
    "known": "there before",
    "tolerated": "not of what this gate fails on",
}


class NoSuchVersion(ValueError):
    """The results have no such version, or several."""

    exit_code: ClassVar[int] = 2

    def __init__(self, asked: str, found: Sequence[str], known: Sequence[str], where: str) -> None:
        names = ", ".join(known) or "none"
        problem = f"{asked} may be {' or '.join(found)}" if found else f"{where} no {asked}"
        super().__init__(f"{problem}; the versions there are: {names}")
        self.asked = asked
        self.known = tuple(known)


@dataclass(frozen=True)
class Ruling:
    """What the gate says of one change."""

    change: Change
    strength: Strength | None
    """How strongly its case is promised; None where that was not asked."""
    passing: Passing
    because: str | None = None
    """Why it is accepted."""


@dataclass(frozen=True)
class StandingBug:
    """A known bug that a case shows on both versions."""

    case: str
    because: str
    bug: KnownBug
    """As the later version has it."""


@dataclass(frozen=True)
class Gate:
    """The gate's answer."""

    compared: Changes
    fail_on: FailOn
    rulings: tuple[Ruling, ...]
    stale: tuple[Acceptance, ...]
    """Acceptances that no change needs any more."""
    bugs: tuple[StandingBug, ...] = ()
    """Known bugs that both versions have: no change, and still something to act on."""

    @property
    def failing(self) -> tuple[Ruling, ...]:
        return tuple(ruling for ruling in self.rulings if ruling.passing == "fails")

    @property
    def silent(self) -> tuple[Silent, ...]:
        return self.compared.silent

    @property
    def exit_code(self) -> int:
        """0 where all may pass, 1 where a change or a stale acceptance does not, 3 where answers are missing.

        A change is told first: it is certain, whatever else is missing.
        """
        if self.failing or self.stale:
            return 1
        return 3 if self.silent or not self.compared.compared else 0

    def summary(self) -> str:
        """One sentence: ``3.5.9 → 4.0.5: 291 cases compared, 12 changes: 2 fail the gate, 10 accepted.``"""
        pair = f"{self.compared.before.title} → {self.compared.after.title}"
        size = f"{self.compared.compared} case{'s' * (self.compared.compared != 1)} compared"
        counts = Counter(ruling.passing for ruling in self.rulings)
        words = {**WORDS, "fails": f"fail{'s' * (counts['fails'] == 1)} the gate"}
        parts = [f"{counts[passing]} {word}" for passing, word in words.items() if counts[passing]]
        kept = len(self.bugs)
        told = (
            f"{len(self.rulings)} change{'s' * (len(self.rulings) != 1)}: {', '.join(parts)}"
            if parts
            else "nothing changes"
        )
        rest = [f"{len(self.stale)} stale acceptance{'s' * (len(self.stale) != 1)}"] if self.stale else []
        rest += [f"{kept} known bug{'s' * (kept != 1)} in both"] if kept else []
        rest += [f"{len(self.silent)} cell{'s' * (len(self.silent) != 1)} without an answer"] if self.silent else []
        return f"{pair}: {size}, {'; '.join([told, *rest])}."


def gate(
    results: Results,
    before: str,
    after: str,
    *,
    fail_on: FailOn = "any",
    strengths: Mapping[str, Strength] | None = None,
    accepted: Sequence[Acceptance] = (),
    baseline: Results | None = None,
) -> Gate:
    """Hold two versions of the results against each other.

    Args:
        results: with both versions.
        before: the version one is on: ``3.5.9``, a line (``3.5``) or the name of a target.
        after: the version one wants.
        fail_on: ``any`` change; only those of what is ``documented``; or only where a documented result is ``guaranteed``
            no longer: rows are lost, added or altered, or the query is refused. A known bug that only the later version has
            fails whatever is chosen.
        strengths: case id → how strongly it is promised; a case that is not among them counts as documented. Not needed to
            fail on ``any`` change.
        accepted: changes that may pass.
        baseline: earlier results; changes that are in them already may pass.

    Raises:
        NoSuchVersion: one of the versions is not in the results, or not in the baseline.
    """
    matrix = Matrix.of(results)
    pair = (find(results, before), find(results, after))
    compared = changes(matrix, *pair)
    about = [entry for entry in accepted if entry.is_about(pair[0].spark, pair[1].spark)]
    earlier = _Earlier.of(baseline, before, after) if baseline is not None else None
    rulings = []
    used: set[Acceptance] = set()
    for change in compared.changes:
        strength = strengths.get(change.case, "documented") if strengths is not None else None
        covering = [entry for entry in about if entry.covers(change)]
        used.update(covering)
        passing: Passing = "fails"
        if earlier is not None and earlier.has(change):
            passing = "known"
        elif covering:
            passing = "accepted"
        elif not fails(change, strength, fail_on):
            passing = "tolerated"
        rulings.append(Ruling(change, strength, passing, covering[0].because if passing == "accepted" else None))
    stale = tuple(entry for entry in about if entry not in used)
    return Gate(compared, fail_on, tuple(rulings), stale, tuple(_standing_bugs(matrix, compared)))


def _standing_bugs(matrix: Matrix, compared: Changes) -> Iterator[StandingBug]:
    for case in compared.alike:
        cell = matrix.cells[case, compared.after.name]
        bug = KnownBug.of(cell, compared.after.spark)
        if bug is not None and cell.differs is not None:
            yield StandingBug(case, cell.differs.because or "", bug)


def fails(change: Change, strength: Strength | None, fail_on: FailOn) -> bool:
    """Whether a change is of what the gate fails on."""
    if fail_on == "any" or change.brings_a_bug:
        return True
    return strength != "observed" and (fail_on == "documented" or change.meaning in ("rows", "refused"))


def find(results: Results, asked: str) -> Target:
    """The target of a version, a line (the newest of it) or a name.

    Raises:
        NoSuchVersion: there is none, or more than one.
    """
    targets = results.header.targets
    # A column with a label may have the same number as Apache's release.
    exact = [target for target in targets if asked in (target.name, target.title)] or [
        target for target in targets if asked == target.spark
    ]
    found = exact or _newest([target for target in targets if target.version and target.version.line == asked])
    if len(found) != 1:
        where = ", ".join(path.name for path in results.paths) or "the results"
        have = "has" if len(results.paths) == 1 else "have"
        raise NoSuchVersion(asked, [one.name for one in found], [one.spark for one in targets], f"{where} {have}")
    return found[0]


@dataclass(frozen=True)
class _Earlier:
    """The same pair in earlier results."""

    matrix: Matrix
    before: Target
    after: Target

    @classmethod
    def of(cls, results: Results, before: str, after: str) -> _Earlier:
        return cls(Matrix.of(results), find(results, before), find(results, after))

    def has(self, change: Change) -> bool:
        """Whether both versions did then what they do now, with the same case."""
        then = [self.matrix.cells.get((change.case, target.name)) for target in (self.before, self.after)]
        return all(
            old is not None and old.case_digest == new.case_digest and same_behaviour(old, new)
            for old, new in zip(then, (change.before, change.after), strict=True)
        )


def published() -> tuple[Path, ...]:
    """The results of released versions that come with the suite."""
    return tuple(sorted((Path(__file__).parents[1] / "baselines").glob("*.jsonl")))


def _newest(targets: Sequence[Target]) -> list[Target]:
    newest = max((version for target in targets if (version := target.version)), default=None)
    return [target for target in targets if target.version == newest]
