"""What a report of a bug of Spark says beside what its catalogue says: which releases have it, and what they did instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from conformance.core.case import Case, Differs
from conformance.core.versions import SparkVersion, falling_into, releases
from conformance.judging.finding import described
from conformance.judging.verdict import judge
from reports.results.known_bug import ListedBug, fixes, listed_bugs
from reports.results.reading import Results
from reports.results.records import Cell


@dataclass(frozen=True)
class BugReport:
    case: Case
    listed: ListedBug
    entry: Differs | None
    """Where the case documents the bug; None if it expects what is reported."""
    answers: tuple[tuple[SparkVersion, Cell], ...]
    """The published answers to the case as it is, by release, oldest first."""

    @classmethod
    def of(cls, case: Case, results: Iterable[Results]) -> BugReport | None:
        """Return the report of the newest bug that the case shows, from the answers in ``results``; None if the catalogue has none."""
        listed = next((bug for bug in listed_bugs().values() if bug.cause is not None and bug.case == case.id), None)
        if listed is None:
            return None
        entry = max(
            (entry for entry in case.differs if entry.bug),
            key=lambda entry: falling_into(entry.spark)[-1],
            default=None,
        )
        return cls(case, listed, entry, tuple(sorted(_answers(case, results), key=lambda answer: answer[0])))

    @property
    def is_bug(self) -> bool:
        """Whether a test of what should happen fails; if not, the case and its suite state what happens."""
        return self.entry is not None or bool(written_by_hand(self.case))

    @property
    def affected(self) -> tuple[SparkVersion, ...]:
        """The releases whose published answer has the bug."""
        return tuple(version for version, cell in self.answers if self._has_it(cell))

    @property
    def fixed_in(self) -> tuple[SparkVersion, ...]:
        """The releases that fixed it, one for each line; none if the newest release has it."""
        return fixes([str(self.entry.spark)]) if self.entry is not None else ()

    @property
    def unfixed(self) -> tuple[SparkVersion, ...]:
        """The newest releases of lines that keep the bug although a later line is without it."""
        newest = {version.line: version for version in releases()}.values()
        return tuple(version for version in newest if self.fixed_in and self.entry and version in self.entry.spark)

    @property
    def found(self) -> tuple[SparkVersion, str] | None:
        """What the newest affected release did that the case without the bug does not expect; None without an answer that says it."""
        plain = self.case.model_copy(update={"differs": tuple(entry for entry in self.case.differs if not entry.bug)})
        for version, cell in reversed(self.answers):
            if self.entry is not None and self._has_it(cell) and cell.observation is not None:
                verdict = judge(plain, version, cell.observation)
                return version, "\n".join(described(verdict.findings))
        return None

    def _has_it(self, cell: Cell) -> bool:
        if self.entry is None or cell.differs is None:
            return self.entry is None and cell.status == "conforms"
        return cell.status == "bug" and cell.differs.spark == str(self.entry.spark)


def written_by_hand(case: Case) -> dict[str, str]:
    """Return the program and the suite of a report, by the names of their files, where the case can be neither; else nothing."""
    folder = Path(__file__).parent / "by_hand" / case.id.rpartition("/")[2]
    written = folder.iterdir() if folder.is_dir() else ()
    return {path.name.removesuffix(".txt"): path.read_text(encoding="utf-8") for path in written}


def _answers(case: Case, results: Iterable[Results]) -> Iterator[tuple[SparkVersion, Cell]]:
    """Of releases of Apache's alone; no other column counts as a release."""
    for published in results:
        versions = {target.name: target.version for target in published.header.targets if target.apache}
        for cell in published.cells:
            version = versions.get(cell.target)
            if cell.case == case.id and cell.case_digest == case.digest and version is not None:
                yield version, cell
