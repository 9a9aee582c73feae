"""The catalogue of behaviours as its page shows it: which cases pin each, how they came out, and the holes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reports.analysis.report import Report
from reports.html.covered import Covered, covered
from reports.html.ribbon import Ribbon, ribbon
from reports.html.sources import Source


@dataclass(frozen=True)
class Pinning:
    """A case that pins a behaviour."""

    case: str
    title: str
    ribbon: Ribbon | None
    """None where it is not among the results."""


@dataclass(frozen=True)
class Behaviour:
    id: str
    sentence: str
    versions: str
    sources: tuple[Source, ...]
    confs: tuple[str, ...]
    pinned: tuple[Pinning, ...]
    unreachable: str | None
    """Why no case can pin it, where none can."""

    @property
    def hole(self) -> bool:
        return not self.pinned and self.unreachable is None


@dataclass(frozen=True)
class Section:
    name: str
    behaviours: tuple[Behaviour, ...]


@dataclass(frozen=True)
class BehavioursPage:
    sections: tuple[Section, ...]
    covered: tuple[Covered, ...]


def behaviours_page(report: Report) -> BehavioursPage:
    sections: dict[str, list[Behaviour]] = {}
    for behaviour, section in _behaviours(report):
        sections.setdefault(section, []).append(behaviour)
    return BehavioursPage(tuple(Section(name, tuple(found)) for name, found in sections.items()), covered(report))


def _behaviours(report: Report) -> Iterator[tuple[Behaviour, str]]:
    if report.catalogue is None:
        return
    pinned = report.covered[0].pinned if report.covered else {}
    ran = set(report.matrix.cases)
    for id, entry in report.catalogue.behaviours.items():
        cases = tuple(
            Pinning(case, report.title(case), ribbon(report, case) if case in ran else None)
            for case in pinned.get(id, ())
        )
        yield _behaviour(id, entry, cases), str(entry.get("section", "others"))


def _behaviour(id: str, entry: Mapping[str, Any], cases: tuple[Pinning, ...]) -> Behaviour:
    return Behaviour(
        id=id,
        sentence=" ".join(str(entry.get("sentence", "")).split()),
        versions=str(entry.get("versions", "all")),
        sources=tuple(Source.of(str(source)) for source in entry.get("sources", ())),
        confs=tuple(map(str, entry.get("confs", ()))),
        pinned=cases,
        unreachable=None if entry.get("reachable", True) else " ".join(str(entry.get("why", "")).split()),
    )
