"""The specification "Event-time semantics of Structured Streaming, as tested", made from four things.

The catalogue of behaviours states, cases and their results are the evidence, and the reference model gives each rule as text that
it executes. Numbers are stored in the catalogue, so that a statement keeps its address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.core.errors import WrongUsage
from conformance.core.versions import VersionRange
from conformance.model.catalogue import catalogue as model_rules
from conformance.model.rule_text import RuleReader, readers, value_text
from conformance.model.versioned_data import Wording, features
from conformance.oracle.unpredicted import VARIES, UnpredictedConstruct, unpredicted
from reports.analysis.report import Report
from reports.analysis.standing import Evidence
from reports.results.records import Target

TITLE = "Event-time semantics of Structured Streaming, as tested"
_NUMBER = re.compile(r"([1-9][0-9]*)\.([1-9][0-9]*)")


class NotNumbered(WrongUsage):
    """A behaviour of the catalogue has no number, or one that another has."""

    def __init__(self, id: str, why: str) -> None:
        super().__init__(
            f"behaviours.yaml: {id}: {why}; give it `number`, the chapter and the next free place in it, such as 3.18"
        )
        self.id = id


@dataclass(frozen=True)
class RuleVersion:
    """What a rule says on some versions."""

    says: str
    versions: str | None
    """A PEP 440 range; None for all."""
    text: str | None
    """The function that is its value, as Python; None if it is data."""
    value: object
    """The value, or the name of the function."""


@dataclass(frozen=True)
class StatedRule:
    """A rule of the reference model that a statement states."""

    name: str
    source: str
    versions: tuple[RuleVersion, ...]
    readers: tuple[RuleReader, ...]
    """Where the model reads it."""


@dataclass(frozen=True)
class TestedBy:
    """A case that tests a statement."""

    case: str
    title: str


@dataclass(frozen=True)
class Statement:
    """One numbered statement."""

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
    """Why no case tests it; None if one does."""


@dataclass(frozen=True)
class Chapter:
    number: int
    title: str
    statements: tuple[Statement, ...]

    @property
    def name(self) -> str:
        """Of its page: ``02-column-rules-and-metadata``."""
        return f"{self.number:02}-" + re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True)
class StatedFeature:
    """A construct that some versions lack, as the model has it."""

    name: str
    spark: str
    """The versions that have it."""
    link: str
    """The ticket."""
    error: tuple[str, str] | None
    """Class and message on the other versions; None if they ignore it or refuse it elsewhere."""


@dataclass(frozen=True)
class Specification:
    chapters: tuple[Chapter, ...]
    targets: tuple[Target, ...]
    """The versions with results, oldest first."""

    @property
    def features(self) -> tuple[StatedFeature, ...]:
        """What some versions lack."""
        return tuple(
            StatedFeature(name, str(one.spark), one.link, None if one.missing is None else _error(one.missing))
            for name, one in features().items()
        )

    @property
    def unpredicted(self) -> tuple[UnpredictedConstruct, ...]:
        """What the model does not predict."""
        return unpredicted()

    @property
    def statements(self) -> tuple[Statement, ...]:
        return tuple(statement for chapter in self.chapters for statement in chapter.statements)

    @classmethod
    def of(cls, report: Report) -> Specification:
        """The specification of a suite and its results.

        Raises:
            NotNumbered: a behaviour has no number of its own, or one of another chapter.
        """
        if report.catalogue is None:
            raise WrongUsage("these cases have no behaviours.yaml, so there is nothing to specify")
        pinned = report.covered[0].pinned
        chapters: dict[int, tuple[str, dict[int, Statement]]] = {}
        for id, entry in report.catalogue.behaviours.items():
            chapter, place = _place(id, entry)
            section = str(entry.get("section", ""))
            title, statements = chapters.setdefault(chapter, (section, {}))
            if title != section:
                raise NotNumbered(id, f"chapter {chapter} is {title!r}, not {section!r}")
            if place in statements:
                raise NotNumbered(id, f"{chapter}.{place} is the number of {statements[place].id}")
            statements[place] = _statement(report, id, entry, pinned.get(id, ()))
        return cls(
            tuple(
                Chapter(number, title[:1].upper() + title[1:], tuple(one for _, one in sorted(found.items())))
                for number, (title, found) in sorted(chapters.items())
            ),
            report.versions,
        )


def _error(missing: Wording) -> tuple[str, str]:
    return missing.classes[0], missing.text.replace("{what}", VARIES)


def _place(id: str, entry: Mapping[str, Any]) -> tuple[int, int]:
    found = _NUMBER.fullmatch(str(entry.get("number", "")))
    if found is None:
        raise NotNumbered(id, "it has no number")
    return int(found[1]), int(found[2])


def _statement(report: Report, id: str, entry: Mapping[str, Any], cases: Iterable[str]) -> Statement:
    names = tuple(cases)
    why = entry.get("why") or entry.get("reason")
    return Statement(
        number=str(entry["number"]),
        id=id,
        sentence=" ".join(str(entry.get("sentence", "")).split()),
        observable=str(entry.get("versions", "all")),
        sources=tuple(map(str, entry.get("sources", ()))),
        confs=tuple(map(str, entry.get("confs", ()))),
        cases=tuple(TestedBy(case, report.title(case)) for case in names),
        evidence=Evidence.of(report.matrix, names, report.versions, _range(entry)),
        rules=tuple(stated_rule(str(name)) for name in entry.get("rules", ())),
        untested=None if names else " ".join(str(why or "No case tests this.").split()),
    )


def _range(entry: Mapping[str, Any]) -> VersionRange | None:
    versions = entry.get("versions", "all")
    return None if versions == "all" else VersionRange.parse(versions)


def stated_rule(name: str) -> StatedRule:
    """A rule of the reference model, by its name in ``conformance/model/rules.yaml``.

    Raises:
        WrongUsage: there is no such rule.
    """
    rule = model_rules().get(name)
    if rule is None:
        raise WrongUsage(f"behaviours.yaml names the rule {name!r}, which is not in conformance/model/rules.yaml")
    versions = tuple(
        RuleVersion(
            one.says, str(one.spark) if one.spark is not None else None, value_text(name, str(one.name)), one.name
        )
        for one in rule.values
    )
    return StatedRule(name, rule.source, versions, readers(name))
