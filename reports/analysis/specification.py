"""The specification "Event-time semantics of Structured Streaming, as tested", made from four things.

The catalogue of behaviours states, the results of the steps that it cites are the evidence, and the reference model gives each rule
with its values and the functions that decide by it. Numbers are stored in the catalogue, so that a statement keeps its address.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pkgutil import resolve_name
from textwrap import dedent
from types import FunctionType
from typing import Any

from conformance.core.case import Case
from conformance.core.errors import WrongUsage
from conformance.core.versions import SparkVersion
from conformance.judging.verdict import not_applicable
from conformance.model.catalogue import RuleValue
from conformance.model.catalogue import catalogue as model_rules
from conformance.model.errors import Unpredictable
from conformance.model.rules import RulesRead, features
from conformance.oracle.prediction import predict
from reports.analysis.divided_work import divide
from reports.analysis.report import Report
from reports.analysis.standing import Clause, Evidence, span
from reports.results.records import TargetRecord

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
    def of(cls, report: Report) -> Specification:
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
