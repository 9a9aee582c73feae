"""On which versions a statement or an answer holds: by the steps that its clauses cite, and by nothing else of their cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any, Literal, TypeAlias

from conformance.core import metrics
from conformance.core.versions import SparkVersion, VersionRange
from conformance.judging.expected import FIELDS, ExpectedStep, Steps, Unsupported, as_newest, expected
from conformance.judging.finding import ErrorDiffers, Finding
from conformance.language.catalogue import CLAUSES
from reports.analysis.report import Report
from reports.results.records import DocumentedDifference, TargetRecord
from reports.results.status import DOES_NOT_CONFORM, MARKS, NO_RESULT

Standing: TypeAlias = Literal["violates", "bug", "differs", "holds", "untested", "outside"]

STANDINGS: Mapping[Standing, str] = {
    "violates": f"{MARKS['violates'].glyph} violated",
    "bug": f"{MARKS['bug'].glyph} broken by a known bug",
    "differs": f"{MARKS['differs'].glyph} differs, as a case documents",
    "holds": f"{MARKS['conforms'].glyph} holds",
    "untested": "○ not tried",
    "outside": f"{MARKS['not-applicable'].glyph} does not apply",
}
"""In the order in which those of its clauses decide about a statement."""
_WITHOUT_ANSWER = {*NO_RESULT, "not-applicable"}
_Shown: TypeAlias = tuple[Standing, DocumentedDifference | None]


@dataclass(frozen=True)
class Clause:
    """A part of a sentence, and the step of a case that would fail if it were wrong."""

    says: str
    case: str
    title: str
    """Of the case."""
    step: int
    shows: str
    """The key of ``expect`` that would not be met: ``watermark``; ``checkpoint`` if another version ran the steps before."""
    versions: VersionRange
    """The versions that it is about."""
    differs: VersionRange | None = None
    """The versions of which it says what an entry of ``differs`` or ``upgrades`` documents, such as a known bug; None for none."""
    origin: VersionRange | None = None
    """The versions that wrote the checkpoint; None for all older ones."""

    @classmethod
    def all_of(cls, report: Report, entry: Mapping[str, Any]) -> tuple[Clause, ...]:
        """Return the clauses of an entry of ``behaviours.yaml`` or ``questions.yaml``; none is about more versions than the entry."""
        within = VersionRange.parse(str(entry.get("versions", "all")).replace("all", ">=0"))
        return tuple(
            cls(
                title=report.title(each["case"]),
                versions=within & each.get("versions", within),
                origin=each.get("from"),
                **{key: value for key, value in each.items() if key not in ("from", "versions")},
            )
            for each in CLAUSES.value(entry.get("clauses", ()))
        )

    def on(self, report: Report, target: TargetRecord) -> _Shown:
        """Return what its step shows of it on a target, and the entry of the case that says why the step differs or did not run."""
        case, cell, version = report.cases.get(self.case), report.matrix.cell(self.case, target), target.version
        if version is None or version not in self.versions:
            return "outside", None
        if self.shows == "checkpoint":
            return self._resumed_on(report, target, version)
        if case is None or cell is None or cell.status in _WITHOUT_ANSWER:
            return "untested", None
        findings = [*chain(cell.findings, *(run.findings for run in cell.runs))]
        if cell.status in DOES_NOT_CONFORM and (not findings or any(map(self._is_about, findings))):
            return "violates", None
        wanted = expected(case, version)
        if isinstance(wanted, Steps):
            return self._as_expected(wanted, as_newest(case), version)
        return "untested", DocumentedDifference.of(wanted.entry) if isinstance(wanted, Unsupported) else None

    def _as_expected(self, wanted: Steps, newest: Steps, version: SparkVersion) -> _Shown:
        """Return what a version shows that does what the case expects of it."""
        entry = DocumentedDifference.of(wanted.differs) if wanted.differs is not None else None
        step, written = wanted.of(self.step), newest.of(self.step)
        if step is None or not self._compared(step, version):
            return "untested", entry if step is None else None
        same = written is not None and self._value(step) == self._value(written)
        return self._judged(None if same else entry, version, same=same)

    def _judged(self, reason: DocumentedDifference | None, version: SparkVersion, *, same: bool) -> _Shown:
        """Return what it is worth if the version does the same as the others, or what the reason documents."""
        if same == (self.differs is None or version not in self.differs):
            return "holds", reason
        return "bug" if reason is not None and reason.bug else "differs", reason

    def _resumed_on(self, report: Report, target: TargetRecord, version: SparkVersion) -> _Shown:
        """Return what the checkpoints show that other versions left before its step and the target resumed."""
        wrote = {
            origin.name
            for origin in report.versions
            if (own := origin.version) is not None and (own < version if self.origin is None else own in self.origin)
        }
        tried = [
            cell
            for cell in report.upgrades_of_cases.get(self.case, ())
            if (cell.cut, cell.target) == (self.step, target.name) and cell.origin in wrote
            if cell.status not in _WITHOUT_ANSWER
        ]
        if any(cell.status in DOES_NOT_CONFORM for cell in tried):
            return "violates", None
        shown = [self._judged(cell.differs, version, same=cell.status == "conforms") for cell in tried]
        return min(shown, key=lambda one: [*STANDINGS].index(one[0]), default=("untested", None))

    def _is_about(self, finding: Finding) -> bool:
        """Return whether the finding is about its step, or about an entry, which says of no step that it is right."""
        unreached = finding.unreached if isinstance(finding, ErrorDiffers) else ()
        return finding.place.step in (None, self.step) or self.step in unreached

    def _value(self, step: ExpectedStep) -> object:
        return (FIELDS[self.shows] in step.checked, getattr(step.expectation, FIELDS[self.shows]))

    def _compared(self, step: ExpectedStep, version: SparkVersion) -> bool:
        """Return whether what it shows is compared on the version: an error takes the place of all else, a metric may be missing."""
        paths = {"dropped": [metrics.DROPPED], "progress": step.expectation.progress or {}}.get(self.shows, ())
        missing = any(metrics.missing(path, version) for path in paths)
        return step.ends_the_case or (FIELDS[self.shows] in step.checked and not missing)


@dataclass(frozen=True)
class Variation:
    """What cited steps show on some versions instead of what they show on the others, or why they did not run, as a case documents it."""

    versions: str
    """The versions on which it was seen: ``3.0 – 3.3``."""
    reason: DocumentedDifference
    cases: tuple[str, ...]


@dataclass(frozen=True)
class Evidence:
    spans: tuple[tuple[Standing, str], ...]
    """Each standing and the versions in a row that have it, oldest first: ``3.4 – 4.3``."""
    variations: tuple[Variation, ...]
    """By what the entries say; known bugs come first."""

    @property
    def summary(self) -> str:
        """``○ not tried: 3.0 – 3.3; ● holds: 3.4 – 4.3``."""
        return "; ".join(f"{STANDINGS[standing]}: {versions}" for standing, versions in self.spans)

    @classmethod
    def of(cls, report: Report, clauses: Sequence[Clause]) -> Evidence:
        shown = {target.name: [(one, *one.on(report, target)) for one in clauses] for target in report.versions}

        def standing(target: TargetRecord) -> Standing:
            met = {met for _, met, _ in shown[target.name]}
            return next((known for known in STANDINGS if known in met), "untested")

        spans = tuple((known, span([*group], report.versions)) for known, group in groupby(report.versions, standing))
        return cls(spans, tuple(_variations(shown, report.versions)))


def _variations(
    shown: Mapping[str, Sequence[tuple[Clause, Standing, DocumentedDifference | None]]], targets: Sequence[TargetRecord]
) -> Iterator[Variation]:
    entries: dict[tuple[bool, str, str], tuple[DocumentedDifference, dict[str, TargetRecord], set[str]]] = {}
    for target in targets:
        for clause, _, reason in shown[target.name]:
            if reason is not None:
                key = not reason.bug, reason.reason, reason.ticket
                _, having, cases = entries.setdefault(key, (reason, {}, set()))
                having[target.name] = target
                cases.add(clause.case)
    for _, (reason, having, cases) in sorted(entries.items(), key=lambda item: item[0][0]):
        yield Variation(span([*having.values()], targets), reason, tuple(sorted(cases)))


def span(some: Sequence[TargetRecord], every: Sequence[TargetRecord]) -> str:
    """Write some of all tested versions, both oldest first, as ranges: ``3.0, 3.3 – 4.3``; whole lines by their name, else in full."""
    named = {target.name for target in some}
    runs = [[*group] for within, group in groupby(every, key=lambda target: target.name in named) if within]
    ends = (dict.fromkeys((_short(run[0], run, every), _short(run[-1], run, every))) for run in runs)
    return ", ".join(map(" – ".join, ends))


def _short(target: TargetRecord, run: Sequence[TargetRecord], every: Sequence[TargetRecord]) -> str:
    """Return ``3.5`` if all tested releases of the line are among them, else ``3.5.9``."""
    if target.line is None or not target.apache:
        return target.title
    whole = {other.name for other in every if other.line == target.line} <= {other.name for other in run}
    return target.line if whole else target.title
