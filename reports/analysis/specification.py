"""The specification "Event-time semantics of Structured Streaming, as tested", made from four things.

The catalogue of behaviours states, the results of the steps that it cites are the evidence, and the reference model gives each rule
with its values and the functions that decide by it. Numbers are stored in the catalogue, so that a statement keeps its address. A
statement, or an answer, holds on a version by the steps that its clauses cite, and by nothing else of their cases.
"""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain, groupby
from pkgutil import resolve_name
from textwrap import dedent
from types import FunctionType
from typing import Any, Literal, Self, TypeAlias

from conformance.core import metrics
from conformance.core.case import Case
from conformance.core.errors import WrongUsage
from conformance.core.versions import SparkVersion, VersionRange
from conformance.judging.expected import FIELDS, ExpectedStep, Steps, Unsupported, as_newest, expected
from conformance.judging.finding import ErrorDiffers, Finding
from conformance.judging.verdict import not_applicable
from conformance.language.catalogue import CLAUSES
from conformance.model.catalogue import RuleValue
from conformance.model.catalogue import catalogue as model_rules
from conformance.model.errors import Unpredictable
from conformance.model.rules import RulesRead, features
from conformance.oracle.prediction import predict
from reports.analysis.divided_work import divide
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
    def all_of(cls, report: Report, entry: Mapping[str, Any]) -> tuple[Self, ...]:
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
    def of(cls, report: Report, clauses: Sequence[Clause]) -> Self:
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


TITLE = "Event-time semantics of Structured Streaming, as tested"
_LONGEST = 16
"""The lines of a function that are shown."""
_NUMBER = re.compile(r"([1-9][0-9]*)\.([1-9][0-9]*)")


@dataclass(frozen=True)
class StatedRule:
    name: str
    source: str
    versions: tuple[tuple[str, str | None, str], ...]
    """What it says, on which versions (None for all), and its value as Python: data, or the source of a function."""


@dataclass(frozen=True)
class RuleReader:
    """A function of the model that decides by a rule."""

    name: str
    """``conformance.model.lateness.is_late``."""
    text: str | None
    """Its source; None if that is long."""


@dataclass(frozen=True)
class TestedBy:
    case: str
    title: str
    bugs: str = ""
    """The versions on which it shows a known bug, in any of its steps: ``3.2 – 3.5``."""


@dataclass(frozen=True)
class SpecifiedStatement:
    number: str
    """``3.2``, also its anchor: never changed and never reused."""
    id: str
    """Its name in the catalogue: ``late-wm-previous``."""
    sentence: str
    observable: str
    """Where it can be observed, a PEP 440 range; ``all`` from 3.0 on."""
    sources: tuple[str, ...]
    confs: tuple[str, ...]
    cases: tuple[TestedBy, ...]
    evidence: Evidence
    rules: tuple[StatedRule, ...]
    untested: str | None
    """Why no case tests it; None if a case does."""
    clauses: tuple[Clause, ...]


@dataclass(frozen=True)
class Chapter:
    number: int
    title: str
    statements: tuple[SpecifiedStatement, ...]

    @property
    def name(self) -> str:
        """The name of its page: ``02-column-rules-and-metadata``."""
        return f"{self.number:02}-" + re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True)
class Specification:
    chapters: tuple[Chapter, ...]
    targets: tuple[TargetRecord, ...]
    """The versions with results, oldest first."""
    checked: tuple[Case, ...]
    """The cases that the model is asked about."""

    @property
    def features(self) -> Iterator[tuple[str, str, tuple[str, str] | None, str]]:
        """Each feature that some versions lack, the versions that have it, the class and the message of the error of the others
        (None if they ignore it or refuse it elsewhere), and the ticket."""
        for name, feature in features().items():
            missing = feature.missing
            error = (missing.classes[0], missing.text.replace("{what}", "…")) if missing is not None else None
            yield name, str(feature.spark), error, feature.link

    @cached_property
    def _asked(self) -> tuple[dict[str, list[str]], dict[str, set[tuple[str, str]]]]:
        """What the model says about the cases on the newest version: the ids of cases by the construct that it does not predict, and
        the functions, with their modules, by the rule that they read. On older versions the same functions read the same rules."""
        version = [target.version for target in self.targets if target.version is not None][-1]
        unpredicted: dict[str, list[str]] = {}
        readers: dict[str, set[tuple[str, str]]] = {}
        for part in divide(self.checked, partial(_asked_about, version)):
            for case, answer in part:
                if isinstance(answer, str):
                    unpredicted.setdefault(answer, []).append(case)
                else:
                    for rule, reader in answer.items():
                        readers.setdefault(rule, set()).add(reader)
        return unpredicted, readers

    @property
    def unpredicted(self) -> Mapping[str, Sequence[str]]:
        """The ids of the cases by the construct in them that the model does not predict on the newest version."""
        return self._asked[0]

    def readers(self, rule: str) -> Iterator[RuleReader]:
        """Yield the functions that decided by a rule when the model predicted the cases."""
        for module, name in sorted(self._asked[1].get(rule, ())):
            yield _reader(module, name)

    @property
    def statements(self) -> tuple[SpecifiedStatement, ...]:
        return tuple(statement for chapter in self.chapters for statement in chapter.statements)

    @classmethod
    def of(cls, report: Report) -> Self:
        """Specify a suite by its results.

        Raises WrongUsage: there is no catalogue, or a behaviour has no number of its own, or one of another chapter.
        """
        if report.catalogue is None:
            raise WrongUsage("these cases have no behaviours.yaml, so there is nothing to specify")
        cases = report.covered[0].cases
        chapters: dict[int, tuple[str, dict[int, SpecifiedStatement]]] = {}
        for id, entry in report.catalogue.behaviours.items():
            number = _NUMBER.fullmatch(str(entry.get("number", "")))
            if number is None:
                raise _not_numbered(id, "it has no number")
            chapter, place = int(number[1]), int(number[2])
            section = str(entry.get("section", ""))
            title, statements = chapters.setdefault(chapter, (section, {}))
            if title != section:
                raise _not_numbered(id, f"chapter {chapter} is {title!r}, not {section!r}")
            if place in statements:
                raise _not_numbered(id, f"{chapter}.{place} is the number of {statements[place].id}")
            statements[place] = _statement(report, id, entry, cases.get(id, ()))
        ordered = (
            Chapter(number, title[:1].upper() + title[1:], tuple(statements[place] for place in sorted(statements)))
            for number, (title, statements) in sorted(chapters.items())
        )
        return cls(tuple(ordered), report.versions, tuple(report.cases.values()))


@cache
def _reader(module: str, name: str) -> RuleReader:
    function = resolve_name(f"{module}:{name}")
    text = dedent(inspect.getsource(getattr(function, "fget", function))).rstrip()
    return RuleReader(f"{module}.{name}", text if len(text.splitlines()) <= _LONGEST else None)


def _asked_about(version: SparkVersion, cases: Sequence[Case]) -> list[tuple[str, str | Mapping[str, tuple[str, str]]]]:
    """Return the id of each case that applies to the version, with the construct that is not predicted, or the rules that were read."""
    answers: list[tuple[str, str | Mapping[str, tuple[str, str]]]] = []
    for case in cases:
        if not_applicable(case, version) is not None:
            continue
        read = RulesRead()
        try:
            predict(case, version, read=read)
        except Unpredictable as unknown:
            answers.append((case.id, unknown.construct))
        else:
            answers.append((case.id, read.rules))
    return answers


def _not_numbered(id: str, why: str) -> WrongUsage:
    return WrongUsage(
        f"behaviours.yaml: {id}: {why}; give it `number`, the chapter and the next free place in it, such as 3.18"
    )


def _statement(report: Report, id: str, entry: Mapping[str, Any], cases: Iterable[str]) -> SpecifiedStatement:
    names = tuple(cases)
    versions = str(entry.get("versions", "all"))
    clauses = Clause.all_of(report, entry)
    bugs = {case: [one for one in report.versions if report.matrix.status(case, one.name) == "bug"] for case in names}
    why = entry.get("why") or entry.get("reason")
    return SpecifiedStatement(
        number=str(entry["number"]),
        id=id,
        sentence=" ".join(str(entry.get("sentence", "")).split()),
        observable=versions,
        sources=tuple(map(str, entry.get("sources", ()))),
        confs=tuple(map(str, entry.get("confs", ()))),
        cases=tuple(TestedBy(case, report.title(case), span(bugs[case], report.versions)) for case in names),
        evidence=Evidence.of(report, clauses),
        rules=tuple(stated_rule(str(name)) for name in entry.get("rules", ())),
        untested=None if names else " ".join(str(why or "No case tests this.").split()),
        clauses=clauses,
    )


def stated_rule(name: str) -> StatedRule:
    rule = model_rules().get(name)
    if rule is None:
        raise WrongUsage(f"behaviours.yaml names the rule {name!r}, which is not in conformance/model/rules.yaml")
    versions = tuple(
        (value.says, str(value.spark) if value.spark is not None else None, _as_python(name, value))
        for value in rule.values
    )
    return StatedRule(name, rule.source, versions)


def _as_python(rule: str, value: RuleValue) -> str:
    if isinstance(value.value, FunctionType):
        return dedent(inspect.getsource(value.value)).rstrip()
    return f"rules.{rule} = {value.name!r}"
