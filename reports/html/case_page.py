"""A case as its page shows it: why, the query, and each behaviour that was seen with the versions that show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markupsafe import Markup

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion
from conformance.judging.finding import described
from conformance.policies.case import PolicyCase
from reports.analysis.change import change
from reports.analysis.equivalence import Behaviour, same_behaviour
from reports.analysis.report import Report
from reports.html.comparison import readable
from reports.html.pyspark_text import pyspark
from reports.html.ribbon import Ribbon, Sign, ribbon
from reports.html.sources import Source
from reports.html.step_accounts import Account, account, witnessed
from reports.html.timeline import Timeline, timeline
from reports.html.visible import cut, visible
from reports.results.records import Cell, DocumentedDifference, Target


@dataclass(frozen=True)
class Parting:
    """Where a behaviour first does otherwise than the one it is held against."""

    other: str
    """The version of the other."""
    what: str
    where: str
    aspect: str
    own: str
    others: str


@dataclass(frozen=True)
class Section:
    """Versions that did the same with the case, with the evidence of the newest of them."""

    letter: str
    targets: tuple[Target, ...]
    sign: Sign
    reason: DocumentedDifference | None
    source: Source | None
    parting: Parting | None
    findings: tuple[str, ...]
    notes: tuple[str, ...]
    timeline: Timeline | None
    account: Account | None
    """None where the case is not at hand, or nothing was seen."""
    columns: tuple[str, ...]
    model: tuple[tuple[str, str], ...]
    """The account of the model, each line with its tone; empty where there is none."""


@dataclass(frozen=True)
class Named:
    """A behaviour of the catalogue."""

    id: str
    sentence: str


@dataclass(frozen=True)
class CasePage:
    id: str
    title: str
    family: str
    case: Case | PolicyCase | None
    policy: bool
    """Whether it is on a watermark policy: then no Spark answers it."""
    changed: bool
    why: Markup | None
    query: str | None
    command: str
    sources: tuple[Source, ...]
    behaviours: tuple[Named, ...]
    ribbon: Ribbon
    sections: tuple[Section, ...]
    silent: tuple[tuple[Target, Sign, tuple[str, ...]], ...]
    """Versions that show no behaviour, and what is known of why."""
    previous: str | None
    next: str | None


def case_page(report: Report, id: str) -> CasePage:
    case, known_as = report.cases.get(id), report.case(id)
    around = report.matrix.cases
    at = around.index(id)
    known = report.catalogue.behaviours if report.catalogue is not None else {}
    named = known_as.behaviour if known_as is not None else ()
    return CasePage(
        id=id,
        title=report.title(id),
        family=id.rpartition("/")[0],
        case=known_as,
        policy=id in report.policies,
        changed=id in report.changed,
        why=_markdown(known_as.why) if known_as is not None and known_as.why else None,
        query=pyspark(case) if case is not None else None,
        command=_command(report, id),
        sources=tuple(Source.of(link) for link in known_as.links) if known_as is not None else (),
        behaviours=tuple(Named(one, str(known.get(one, {}).get("sentence", ""))) for one in named),
        ribbon=ribbon(report, id),
        sections=tuple(_sections(report, id, case)),
        silent=tuple(_silent(report, id)),
        previous=around[at - 1] if at else None,
        next=around[at + 1] if at + 1 < len(around) else None,
    )


def _command(report: Report, id: str) -> str:
    answering = report.versions if id not in report.policies else report.targets
    version = answering[-1].spark if answering else "newest"
    return f"conformance run cases/{id}.yaml --spark {version}"


def _markdown(text: str) -> Markup:
    """Markdown as HTML; HTML in it is text, and no address in it can run anything."""
    reader = MarkdownIt("commonmark", {"html": False}).disable("image")  # an image would be fetched from somewhere
    return Markup(reader.render(visible(text)))


def _sections(report: Report, id: str, case: Case | None) -> Iterator[Section]:
    by_name = {target.name: target for target in report.targets}
    groups = list(_told_apart(report.behaviours[id]))
    newest = groups[0].shown if groups else None
    for number, group in enumerate(groups):
        targets = tuple(by_name[name] for name in group.targets)
        yield _section(report, case, group.shown, targets, _letter(number), newest, by_name)


def _told_apart(behaviours: Sequence[Behaviour]) -> Iterator[Behaviour]:
    """Cells that did the same and are judged the same: what is right for one version may be wrong for another."""
    for behaviour in behaviours:
        judged: dict[tuple[str, DocumentedDifference | None], list[Cell]] = {}
        for cell in reversed(behaviour.cells):
            judged.setdefault((cell.status, cell.differs), []).append(cell)
        yield from (Behaviour(tuple(reversed(cells))) for cells in judged.values())


def _section(
    report: Report,
    case: Case | None,
    cell: Cell,
    targets: tuple[Target, ...],
    letter: str,
    newest: Cell | None,
    by_name: Mapping[str, Target],
) -> Section:
    target = targets[-1]
    version = target.version
    parting = _parting(cell, target, newest, by_name)
    divergence = change(newest, target, cell, target).where if newest is not None and parting is not None else None
    seen = cell.observation
    model = report.model(case, version) if report.model and case is not None and version is not None else None
    other: Observation | None = newest.observation if newest is not None and parting is not None else None
    entry = cell.differs if cell.status in ("differs", "bug", "unsupported", "violates") else None
    return Section(
        letter=letter,
        targets=targets,
        sign=Sign.of(cell, target),
        reason=entry,
        source=Source.of(entry.link) if entry is not None and entry.link else None,
        parting=parting,
        findings=tuple(cut(line) for line in described(cell.findings)),
        notes=cell.notes,
        timeline=timeline(case, seen, other, divergence) if case is not None and seen is not None else None,
        account=_account(case, version, cell, model.observation if model is not None else None),
        columns=tuple(f"{column.name} {column.type}" for column in seen.columns) if seen is not None else (),
        model=model.told if model is not None else (),
    )


def _account(
    case: Case | None, version: SparkVersion | None, cell: Cell, predicted: Observation | None
) -> Account | None:
    if cell.observation is None:
        return None
    if case is None or version is None:
        return witnessed(cell.observation)
    return account(case, version, cell, predicted)


def _parting(cell: Cell, target: Target, newest: Cell | None, by_name: Mapping[str, Target]) -> Parting | None:
    if newest is None or newest is cell or same_behaviour(newest, cell):
        return None
    other = by_name[newest.target]
    found = change(newest, other, cell, target)
    others, own = readable(found.where)
    return Parting(other.title, found.what, found.where.place, found.where.what.replace("_", " "), own, others)


def _silent(report: Report, id: str) -> Iterator[tuple[Target, Sign, tuple[str, ...]]]:
    shown = {name for behaviour in report.behaviours[id] for name in behaviour.targets}
    for target in report.targets:
        if target.name in shown:
            continue
        cell = report.matrix.cells.get((id, target.name))
        notes = cell.notes if cell is not None else ()
        runs = tuple(f"run {at}: {run.status}" for at, run in enumerate(cell.runs, 1)) if cell is not None else ()
        yield target, Sign.of(cell, target), tuple(map(cut, (*notes, *runs)))


def _letter(number: int) -> str:
    return chr(ord("A") + number) if number < 26 else str(number + 1)
