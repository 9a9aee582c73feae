"""The pages about all results: the front page, the matrix with a ribbon for each case, the catalogue of behaviours, and the run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from conformance.core import metrics
from conformance.core.case import Case, Expectation
from conformance.core.wording import counted
from conformance.judging.verdict import Status
from conformance.policies.case import PolicyCase
from reports.analysis.change import Changes
from reports.analysis.equivalence import Behaviour
from reports.analysis.matrix import CellTotal
from reports.analysis.report import Report
from reports.html.addresses import SourceLink
from reports.html.comparison import checkpoint_section
from reports.html.ribbon import WORDS, CellSign, Ribbon, ribbon
from reports.html.texts import duration
from reports.results.records import Target
from reports.results.status import MARKS, Mark


@dataclass(frozen=True)
class MatrixRow:
    ribbon: Ribbon
    title: str
    words: str
    """The words that find it besides its title, separated by spaces."""
    tags: tuple[str, ...]
    kinds: str
    """The status on each version, separated by spaces."""
    behaviours: str
    """The number of the behaviour on each version, separated by spaces; ``-`` without a behaviour."""


@dataclass(frozen=True)
class FamilyRows:
    name: str
    rows: tuple[MatrixRow, ...]
    total: CellTotal
    totals: tuple[CellTotal, ...]


@dataclass(frozen=True)
class MatrixPage:
    targets: tuple[Target, ...]
    families: tuple[FamilyRows, ...]
    totals: tuple[CellTotal, ...]
    total: CellTotal
    legend: tuple[tuple[Status, str, Mark, int], ...]
    """Each status that occurs, with its short word, its look and how often it occurs."""
    tags: tuple[str, ...]


def matrix_page(report: Report) -> MatrixPage:
    matrix = report.matrix
    targets = report.targets[::-1]
    names = [target.name for target in targets]
    families = tuple(
        FamilyRows(
            family or "(no family)",
            tuple(_row(report, case) for case in cases),
            CellTotal.of_counts(matrix.count(cases, names)),
            tuple(CellTotal.of_counts(matrix.count(cases, [name])) for name in names),
        )
        for family, cases in matrix.families.items()
    )
    rows = [row for family in families for row in family.rows]
    counts = Counter(place.sign.status for row in rows for place in row.ribbon.cells)
    return MatrixPage(
        targets=targets,
        families=families,
        totals=tuple(CellTotal.of_counts(matrix.by_target[name]) for name in names),
        total=CellTotal.of_counts(matrix.parts[0].totals),
        legend=tuple((status, WORDS[status], mark, counts[status]) for status, mark in MARKS.items() if counts[status]),
        tags=tuple(sorted({tag for row in rows for tag in row.tags})),
    )


def _row(report: Report, id: str) -> MatrixRow:
    found = ribbon(report, id, newest_first=True)
    case = report.case(id)
    return MatrixRow(
        ribbon=found,
        title=report.title(id),
        words=search_words(case, report.behaviours[id]),
        tags=case.tags if case is not None else (),
        kinds=" ".join(place.sign.status for place in found.cells),
        behaviours=" ".join("-" if place.behaviour is None else str(place.behaviour) for place in found.cells),
    )


_FUNCTION = re.compile(r"(\w+)\(")
_TICKET = re.compile(r"SPARK-\d+")


def search_words(case: Case | PolicyCase | None, behaviours: Iterable[Behaviour]) -> str:
    """Returns the words that find a case, each once, in lower case, separated by spaces."""
    found = [word for one in behaviours for word in _of_behaviour(one)]
    if case is not None:
        found += _TICKET.findall(" ".join(case.links))
    if isinstance(case, Case):
        found += _of_case(case)
    return " ".join(dict.fromkeys(word.lower() for word in found))


def _of_case(case: Case) -> Iterator[str]:
    yield f"{case.output_mode}-mode"
    yield from case.conf
    for operation in case.operations():
        yield operation.name
        yield from _FUNCTION.findall(repr(operation.arguments))
    for step in case.steps:
        if step.expect is not None:
            yield from _metrics(step.expect)


def _metrics(expected: Expectation) -> Iterator[str]:
    if expected.dropped is not None:
        yield metrics.DROPPED.rpartition(".")[2]
    if expected.state is not None:
        yield "numRowsTotal"
    if expected.event_time is not None:
        yield "eventTime"
    yield from (key.rpartition(".")[2] for key in expected.progress or {})


def _of_behaviour(behaviour: Behaviour) -> Iterator[str]:
    for cell in behaviour.cells:
        entry = cell.differs
        if entry is not None:
            yield from _TICKET.findall(f"{entry.link} {entry.introduced_by} {entry.because}")
    seen = behaviour.shown.observation
    for step in seen.steps if seen is not None else ():
        if step.error is not None:
            yield from step.error.classes


@dataclass(frozen=True)
class Headline:
    """The sentence, around the part that says which releases have known bugs."""

    before: str
    bugs: str = ""
    after: str = ""

    def __str__(self) -> str:
        return self.before + self.bugs + self.after


def headline(report: Report, pair: Changes | None) -> Headline:
    """The report in one sentence.

    ``16 Spark versions, 214 cases: 11 results change between 3.3.4 and 4.3.0; all 16 releases have known bugs.``
    """
    of_spark = report.matrix.parts[0]
    size = f"{counted(len(report.versions), 'Spark version')}, {counted(len(of_spark.cases), 'case')}"
    first = []
    if pair is not None and pair.compared:
        count = len(pair.changes)
        changed = f"{counted(count, 'result')} change{'s' * (count == 1)}" if count else "nothing changes"
        first.append(f"{changed} between {pair.before.title} and {pair.after.title}")
    handed = checkpoint_section(report, pair) if pair is not None else None
    if handed is not None and handed.abnormal:
        verb = "does" if handed.abnormal == 1 else "do"
        first.append(f"{handed.abnormal} of {counted(handed.tried, 'checkpoint')} {verb} not resume normally")
    counts = of_spark.totals
    last = []
    if counts["violates"]:
        last.append(f"{counted(counts['violates'], 'cell')} not as expected")
    if open_ := counts["broken"] + counts["not-run"] + counts["flaky"]:
        last.append(f"{counted(open_, 'cell')} without a result")
    bugs = _bugs(report)
    if not first and not last and not bugs:
        return Headline(f"{size}.")
    before = f"{size}: {'; '.join(first)}{'; ' if first and (bugs or last) else ''}"
    return Headline(before, bugs, f"{'; ' if bugs and last else ''}{'; '.join(last)}.")


def _bugs(report: Report) -> str:
    having, of = len(releases_with_bugs(report)), len(report.versions)
    if not having:
        return ""
    if having == of > 1:
        return f"all {of} releases have known bugs"
    return f"{having} of {counted(of, 'release')} {'has' if having == 1 else 'have'} known bugs"


def releases_with_bugs(report: Report) -> tuple[str, ...]:
    """Names the versions that show a known bug, whether or not a later release fixes it."""
    found = {cell.target for cell in report.matrix.cells.values() if cell.status == "bug"}
    return tuple(target.name for target in report.versions if target.name in found)


WORST_FIRST: tuple[Status, ...] = ("violates", "bug", "flaky", "broken", "not-run")
"""What is listed case by case; everything else is as expected, and counted."""


@dataclass(frozen=True)
class OwnResult:
    target: Target
    applying: int
    """The number of cases that apply to the version."""
    bugs: int
    listed: tuple[tuple[str, CellSign], ...]
    compared: bool
    """Whether published results of other versions stand beside it."""

    @property
    def good(self) -> int:
        return self.applying - len(self.listed)

    @property
    def bad(self) -> int:
        return len(self.listed) - self.bugs


def own_result(report: Report) -> OwnResult | None:
    if len(report.own) != 1:
        return None
    (target,) = report.own
    counts = report.matrix.by_target[target.name]
    applying = sum(counts.values()) - counts["not-applicable"]
    listed = tuple(
        (case, CellSign.of(report.matrix.cells.get((case, target.name)), target))
        for status in WORST_FIRST
        for case in report.matrix.cases
        if report.matrix.status(case, target.name) == status
    )
    return OwnResult(target, applying, counts["bug"], listed, bool(report.background))


@dataclass(frozen=True)
class EngineRun:
    target: Target
    total: CellTotal
    lasted: str
    """The time of all its cells; for cached results, the time of the run that produced them."""
    reused: int


@dataclass(frozen=True)
class AboutPage:
    lasted: str
    commands: tuple[str, ...]
    engines: tuple[EngineRun, ...]
    reused: int
    unreachable: tuple[tuple[str, str, str], ...]
    """Each behaviour that no case can test, what it is, and why."""
    unknown: int
    """The number of cases whose file was not found."""


def about_page(report: Report) -> AboutPage:
    header, footer = report.results.header, report.results.footer
    behaviours = report.catalogue.behaviours if report.catalogue is not None else {}
    return AboutPage(
        lasted=duration((footer.finished - header.started) // timedelta(milliseconds=1)),
        commands=tuple(header.command.split(" ; ")) if header.command else (),
        engines=tuple(_engine(report, target) for target in report.own),
        reused=sum(cell.reused for cell in report.matrix.cells.values()),
        unreachable=tuple(
            (id, _on_one_line(entry, "sentence"), _on_one_line(entry, "why"))
            for id, entry in behaviours.items()
            if not entry.get("reachable", True)
        ),
        unknown=sum(1 for case in report.matrix.cases if report.case(case) is None and case not in report.changed),
    )


def _engine(report: Report, target: Target) -> EngineRun:
    cells = [cell for cell in report.matrix.cells.values() if cell.target == target.name]
    counts = report.matrix.by_target[target.name]
    lasted = duration(sum(cell.duration_ms for cell in cells))
    return EngineRun(target, CellTotal.of_counts(counts), lasted, sum(cell.reused for cell in cells))


@dataclass(frozen=True)
class CatalogueBehaviour:
    id: str
    sentence: str
    versions: str
    sources: tuple[SourceLink, ...]
    confs: tuple[str, ...]
    cases: tuple[tuple[str, Ribbon | None], ...]
    """The cases that test it, with None for a case that is not in the results."""
    unreachable: str | None

    @property
    def untested(self) -> bool:
        return not self.cases and self.unreachable is None


def behaviours_page(report: Report) -> Mapping[str, list[CatalogueBehaviour]]:
    sections: dict[str, list[CatalogueBehaviour]] = {}
    pinned = report.covered[0].pinned if report.covered else {}
    for id, entry in (report.catalogue.behaviours if report.catalogue is not None else {}).items():
        behaviour = CatalogueBehaviour(
            id=id,
            sentence=_on_one_line(entry, "sentence"),
            versions=str(entry.get("versions", "all")),
            sources=tuple(SourceLink.of(str(source)) for source in entry.get("sources", ())),
            confs=tuple(map(str, entry.get("confs", ()))),
            cases=tuple(
                (case, ribbon(report, case) if case in report.matrix.places else None) for case in pinned.get(id, ())
            ),
            unreachable=None if entry.get("reachable", True) else _on_one_line(entry, "why"),
        )
        sections.setdefault(str(entry.get("section", "others")), []).append(behaviour)
    return sections


def _on_one_line(entry: Mapping[str, Any], key: str) -> str:
    return " ".join(str(entry.get(key, "")).split())
