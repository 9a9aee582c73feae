"""The page of the catalogue of behaviours: which cases test each behaviour, their results, and the gaps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reports.analysis.report import Report
from reports.html.ribbon import Ribbon, ribbon
from reports.html.sources import SourceLink


@dataclass(frozen=True)
class TestingCase:
    """A case that tests a behaviour."""

    case: str
    title: str
    ribbon: Ribbon | None
    """None if it is not in the results."""


@dataclass(frozen=True)
class CatalogueBehaviour:
    id: str
    sentence: str
    versions: str
    sources: tuple[SourceLink, ...]
    confs: tuple[str, ...]
    cases: tuple[TestingCase, ...]
    unreachable: str | None
    """Why no case can test it; None if one can."""

    @property
    def untested(self) -> bool:
        return not self.cases and self.unreachable is None


@dataclass(frozen=True)
class CatalogueSection:
    name: str
    behaviours: tuple[CatalogueBehaviour, ...]


def behaviours_page(report: Report) -> tuple[CatalogueSection, ...]:
    sections: dict[str, list[CatalogueBehaviour]] = {}
    for behaviour, section in _behaviours(report):
        sections.setdefault(section, []).append(behaviour)
    return tuple(CatalogueSection(name, tuple(found)) for name, found in sections.items())


def _behaviours(report: Report) -> Iterator[tuple[CatalogueBehaviour, str]]:
    if report.catalogue is None:
        return
    pinned = report.covered[0].pinned if report.covered else {}
    ran = set(report.matrix.cases)
    for id, entry in report.catalogue.behaviours.items():
        cases = tuple(
            TestingCase(case, report.title(case), ribbon(report, case) if case in ran else None)
            for case in pinned.get(id, ())
        )
        yield _behaviour(id, entry, cases), str(entry.get("section", "others"))


def _behaviour(id: str, entry: Mapping[str, Any], cases: tuple[TestingCase, ...]) -> CatalogueBehaviour:
    return CatalogueBehaviour(
        id=id,
        sentence=" ".join(str(entry.get("sentence", "")).split()),
        versions=str(entry.get("versions", "all")),
        sources=tuple(SourceLink.of(str(source)) for source in entry.get("sources", ())),
        confs=tuple(map(str, entry.get("confs", ()))),
        cases=cases,
        unreachable=None if entry.get("reachable", True) else " ".join(str(entry.get("why", "")).split()),
    )
