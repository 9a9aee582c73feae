"""The page of a case: why it exists, its query, and each observed behaviour with the versions that show it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter

from markdown_it import MarkdownIt
from markupsafe import Markup

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion
from conformance.judging.comparison import contrast
from conformance.judging.finding import described
from conformance.policies.case import PolicyCase
from reports.analysis.equivalence import first_difference, same_behaviour
from reports.analysis.report import Report
from reports.analysis.step_table import StepTable, observed_only, step_table
from reports.exports.programs import pyspark, pyspark_script
from reports.html.addresses import SourceLink
from reports.html.comparison_page import CaseCheckpoints, checkpoints_of_case, readable
from reports.html.strip import CellSign, Strip, strip
from reports.html.texts import TimeNotation, cut, duration, visible
from reports.html.timeline import Timeline, timeline
from reports.results.known_bug import ListedBug, Workaround, explained, workaround
from reports.results.records import Cell, DocumentedDifference, TargetRecord


@dataclass(frozen=True)
class FirstDifference:
    """Where a behaviour first differs from that of the newest version."""

    other: str
    what: str
    where: str
    aspect: str
    own: str
    others: str


@dataclass(frozen=True)
class CaseSection:
    """Versions with the same behaviour, with the evidence of the newest of them."""

    letter: str
    targets: tuple[TargetRecord, ...]
    durations: tuple[tuple[TargetRecord, str], ...]
    """How long the whole case took on each of them, where it was measured."""
    sign: CellSign
    reason: DocumentedDifference | None
    source: SourceLink | None
    workaround: Workaround | None
    difference: FirstDifference | None
    findings: tuple[str, ...]
    notes: tuple[str, ...]
    timeline: Timeline | None
    table: StepTable | None
    columns: tuple[str, ...]
    explanation: tuple[tuple[str, str], ...]
    """The lines of the reference model's explanation, those of one tone together, each with its tone."""


@dataclass(frozen=True)
class CasePage:
    id: str
    title: str
    family: str
    case: Case | PolicyCase | None
    policy: bool
    """Whether it tests a watermark policy, which runs on the reference model."""
    changed: bool
    why: Markup | None
    query: str | None
    script: str | None
    command: str
    sources: tuple[SourceLink, ...]
    behaviours: Mapping[str, str]
    """Maps the id of each behaviour that the case tests to its sentence."""
    strip: Strip
    sections: tuple[CaseSection, ...]
    silent: tuple[tuple[TargetRecord, CellSign, tuple[str, ...]], ...]
    """The versions without a behaviour, and the reason if it is known."""
    explained: tuple[ListedBug, ...]
    """The bugs with a known cause that the case reports, or that a version in the report shows."""
    checkpoints: tuple[CaseCheckpoints, ...]
    previous: str | None
    next: str | None


def case_page(report: Report, id: str) -> CasePage:
    case, known_as = report.cases.get(id), report.case(id)
    around = report.matrix.cases
    at = report.matrix.places[id]
    known = report.catalogue.behaviours if report.catalogue is not None else {}
    named = known_as.behaviour if known_as is not None else ()
    sections = tuple(_sections(report, id, case))
    return CasePage(
        id=id,
        title=report.title(id),
        family=id.rpartition("/")[0],
        case=known_as,
        policy=id in report.policies,
        changed=id in report.changed,
        why=Markup(_markdown().render(visible(known_as.why))) if known_as is not None and known_as.why else None,
        query=pyspark(case) if case is not None else None,
        script=pyspark_script(case) if case is not None else None,
        command=_command(report, id),
        sources=tuple(SourceLink.of(link) for link in known_as.links) if known_as is not None else (),
        behaviours={behaviour: str(known.get(behaviour, {}).get("sentence", "")) for behaviour in named},
        strip=strip(report, id),
        sections=sections,
        silent=tuple(_silent(report, id)),
        explained=explained(id, (section.reason for section in sections if section.reason is not None)),
        checkpoints=tuple(checkpoints_of_case(report, id)),
        previous=around[at - 1] if at else None,
        next=around[at + 1] if at + 1 < len(around) else None,
    )


@cache
def _markdown() -> MarkdownIt:
    """Return a parser that shows HTML as text; its links cannot run anything, and an image would be downloaded."""
    return MarkdownIt("commonmark", {"html": False}).disable("image")


def _command(report: Report, id: str) -> str:
    if id in report.policies:
        return f"conformance run cases/{id}.yaml --spark model"
    version = report.versions[-1].spark if report.versions else "newest"
    return f"conformance run cases/{id}.yaml --spark {version}"


def _sections(report: Report, id: str, case: Case | None) -> Iterator[CaseSection]:
    by_name = {target.name: target for target in report.targets}
    groups = report.sections(id)
    newest = groups[0].shown if groups else None
    notation = TimeNotation.of(case)
    for number, group in enumerate(groups):
        targets = tuple(by_name[name] for name in group.targets)
        cell = group.shown
        compared = newest if newest is not cell and newest is not None and not same_behaviour(cell, newest) else None
        columns = cell.observation.columns if cell.observation is not None else ()
        predicted = report.prediction(cell)
        drawn = None
        if case is not None:
            other = compared.observation if compared is not None else None
            divergence = first_difference(compared, cell) if compared is not None else None
            drawn = timeline(case, report.batches(case, targets[-1], cell), other, divergence)
        entry = cell.differs if cell.status in ("differs", "bug", "unsupported", "violates") else None
        yield CaseSection(
            letter=chr(ord("A") + number) if number < 26 else str(number + 1),
            targets=targets,
            durations=tuple(
                (by_name[cell.target], duration(cell.duration_ms)) for cell in group.cells if cell.duration_ms
            ),
            sign=CellSign.of(cell, targets[-1]),
            reason=entry,
            source=SourceLink.of(entry.link) if entry is not None and entry.link else None,
            workaround=workaround(entry.link, entry.introduced_by) if entry is not None and entry.bug else None,
            difference=_first_difference(case, cell, compared, by_name) if compared is not None else None,
            findings=tuple(cut(notation.text(line)) for line in described(cell.findings)),
            notes=cell.notes,
            timeline=drawn,
            table=notation.table(_table(case, targets[-1].version, cell, predicted.observation if predicted else None)),
            columns=tuple(f"{column.name} {column.type}" for column in columns),
            explanation=tuple(
                (tone, "\n".join(notation.text(line) for _, line in lines))
                for tone, lines in groupby(predicted.explanation if predicted else (), key=itemgetter(0))
            ),
        )


def _table(case: Case | None, version: SparkVersion | None, cell: Cell, model: Observation | None) -> StepTable | None:
    if cell.observation is None:
        return None
    if case is None or version is None:
        return observed_only(cell.observation)
    return step_table(case, version, cell, model)


def _first_difference(
    case: Case | None, cell: Cell, newest: Cell, by_name: Mapping[str, TargetRecord]
) -> FirstDifference:
    other = by_name[newest.target]
    where = first_difference(newest, cell)
    others, own = readable(where, case)
    what = contrast(cell, newest, other.title)
    return FirstDifference(other.title, what, where.place, where.what.replace("_", " "), own, others)


def _silent(report: Report, id: str) -> Iterator[tuple[TargetRecord, CellSign, tuple[str, ...]]]:
    shown = {name for behaviour in report.behaviours[id] for name in behaviour.targets}
    for target in report.targets:
        if target.name in shown:
            continue
        cell = report.matrix.cell(id, target)
        notes = cell.notes if cell is not None else ()
        runs = tuple(f"run {at}: {run.status}" for at, run in enumerate(cell.runs, 1)) if cell is not None else ()
        yield target, CellSign.of(cell, target), tuple(map(cut, (*notes, *runs)))
