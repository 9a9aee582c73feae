"""What a report of a bug of Spark says beside what its catalogue says: which releases have it, and what they did instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from conformance.core.case import Case, Differs
from conformance.core.versions import SparkVersion, falling_into, releases
from conformance.judging.finding import described
from conformance.judging.verdict import judge
from reports.results.known_bug import ListedBug, fixes, listed_bugs
from reports.results.reading import Results
from reports.results.records import Cell, DocumentedDifference


@dataclass(frozen=True)
class BugReport:
    case: Case
    listed: ListedBug
    entry: Differs | None
    """Where the case documents the bug; None if it expects what is reported, because Spark's documentation does not exclude it."""
    answers: tuple[tuple[SparkVersion, Cell], ...]
    """The published answers to the case as it is, by release, oldest first."""

    @classmethod
    def of(cls, case: Case, results: Iterable[Results]) -> BugReport | None:
        """Returns the report of the newest bug that the case shows; None if the catalogue has no cause of it.

        ``results``: those whose answers say which releases have it.
        """
        bugs = sorted((entry for entry in case.differs if entry.bug), key=lambda entry: falling_into(entry.spark)[-1])
        entry = bugs[-1] if bugs else None
        keys = [(None, None, case.id), *([(entry.link, entry.introduced_by, None)] if entry is not None else [])]
        listed = next((found for key in keys if (found := listed_bugs().get(key)) is not None), None)
        if listed is None or listed.cause is None:
            return None
        return cls(case, listed, entry, tuple(sorted(_answers(case, results), key=lambda answer: answer[0])))

    @property
    def affected(self) -> tuple[SparkVersion, ...]:
        """The releases whose published answer has the bug."""
        return tuple(version for version, cell in self.answers if self._has_it(cell))

    @property
    def fixed_in(self) -> tuple[SparkVersion, ...]:
        """The releases that fixed it, one for each line; none if the newest release has it."""
        return fixes(str(entry.spark) for entry in self._entries()) if self.entry is not None else ()

    @property
    def unfixed(self) -> tuple[SparkVersion, ...]:
        """The newest releases of lines that keep the bug although a later line is without it."""
        if not self.fixed_in:
            return ()
        newest = {version.line: version for version in releases()}.values()
        return tuple(version for version in newest if any(version in entry.spark for entry in self._entries()))

    @property
    def found(self) -> tuple[SparkVersion, str] | None:
        """What the newest affected release did that the case without the bug does not expect; None without an answer that says it."""
        plain = self.case.model_copy(update={"differs": tuple(each for each in self.case.differs if not each.bug)})
        for version, cell in reversed(self.answers):
            if self.entry is not None and self._has_it(cell) and cell.observation is not None:
                verdict = judge(plain, version, cell.observation)
                return version, "\n".join(described(verdict.findings))
        return None

    def _entries(self) -> Iterator[Differs]:
        own = self.entry
        if own is not None:
            yield from (each for each in self.case.differs if each.bug and _same(each, own))

    def _has_it(self, cell: Cell) -> bool:
        if self.entry is None:
            return cell.status == "conforms"
        return cell.status == "bug" and cell.differs is not None and _same(cell.differs, self.entry)


def _same(one: Differs | DocumentedDifference, other: Differs) -> bool:
    return (one.link, one.introduced_by) == (other.link, other.introduced_by)


def _answers(case: Case, results: Iterable[Results]) -> Iterator[tuple[SparkVersion, Cell]]:
    """Of releases of Apache's alone; no other column counts as a release."""
    for each in results:
        versions = {target.name: target.version for target in each.header.targets if target.apache}
        for cell in each.cells:
            version = versions.get(cell.target)
            if cell.case == case.id and cell.case_digest == case.digest and version is not None:
                yield version, cell
