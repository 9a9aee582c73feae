"""The pages "Understand" and "A row vanished": which cases answer what people ask most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from conformance.account.account import account, batches_of
from conformance.core.data import read_data
from reports.analysis.model_agreement import in_each_mode
from reports.analysis.report import Report
from reports.html.ribbon import Ribbon, ribbon
from reports.html.timeline import Timeline, timeline
from reports.results.records import Target

NARROW = 400.0
"""The width of all columns of a picture that stands beside others, in pixels."""


@dataclass(frozen=True)
class Pictured:
    """A picture on a page of pictures; the template of a timeline reads it as the section of a case."""

    case: str
    title: str
    said: str
    timeline: Timeline
    targets: tuple[Target, ...]
    difference: None = None


@dataclass(frozen=True)
class Cause:
    sign: str
    because: str
    case: str
    title: str
    ribbon: Ribbon


@dataclass(frozen=True)
class UnderstandPage:
    modes: tuple[Pictured, ...]
    """The same trace in each output mode, as the reference model predicts it."""
    pictures: tuple[Pictured, ...]


def understand_page(report: Report) -> UnderstandPage | None:
    modes, pictures = tuple(_modes(report)), tuple(_pictures(report))
    if not modes and not pictures:
        return None
    return UnderstandPage(modes, pictures)


def causes(report: Report) -> tuple[Cause, ...]:
    """Returns why a row may be missing, most frequent first; empty if none of the cases is in the report."""
    ran = set(report.matrix.cases)
    return tuple(
        Cause(one["sign"], one["because"], one["case"], report.title(one["case"]), ribbon(report, one["case"]))
        for one in _written()["vanished"]
        if one["case"] in ran
    )


def _modes(report: Report) -> Iterator[Pictured]:
    written, newest = _written()["modes"], report.versions[-1:]
    case = report.cases.get(written["case"])
    version = newest[0].version if newest else None
    if report.model is None or case is None or version is None:
        return
    for changed, prediction in in_each_mode(case, version):
        drawn = timeline(changed, prediction.account, across=NARROW)
        mode = changed.output_mode
        if drawn is not None:
            yield Pictured(case.id, f"{mode.capitalize()} mode", written["said"][mode], drawn, newest)


def _pictures(report: Report) -> Iterator[Pictured]:
    by_name = {target.name: target for target in report.targets}
    for one in _written()["pictures"]:
        case, groups = report.cases.get(one["case"]), report.sections(one["case"])
        cell = groups[0].shown if groups else None
        if case is None or cell is None or cell.observation is None:
            continue
        predicted = report.model.predictions.get((cell.case, cell.target)) if report.model is not None else None
        target = by_name[cell.target]
        alone = () if predicted is not None else batches_of(account(case, target.version, cell.observation))
        drawn = timeline(case, predicted.account if predicted is not None else alone)
        if drawn is not None:
            said = report.title(case.id)
            yield Pictured(case.id, one["title"], said, drawn, (target,))


@cache
def _written() -> Mapping[str, Any]:
    found: Mapping[str, Any] = read_data("reports.html", "guides.yaml")
    return found
