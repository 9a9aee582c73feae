"""The pages about all results: the front page, the matrix, known bugs with their feed, behaviours, the run, and what people ask most."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from markupsafe import Markup

from conformance.core import metrics
from conformance.core.case import AnyCase, Case, Expectation
from conformance.core.data import read_data
from conformance.core.observation import ErrorSeen
from conformance.core.versions import SparkVersion
from conformance.core.wording import counted, ticket
from conformance.judging.verdict import Status
from reports.analysis.change import Changes
from reports.analysis.equivalence import Behaviour
from reports.analysis.matrix import CellTotal, Matrix
from reports.analysis.model_agreement import in_each_mode
from reports.analysis.report import Report
from reports.html.addresses import InAFolder, SourceLink, slug
from reports.html.strip import SHORT_WORDS, CellSign, Strip, strip
from reports.html.texts import capitalized, duration, fact
from reports.html.timeline import Timeline, timeline
from reports.results.known_bug import Workaround, fixes, workaround
from reports.results.records import Cell, TargetRecord
from reports.results.status import MARKS, Mark


@dataclass(frozen=True)
class MatrixRow:
    strip: Strip
    words: str
    """The words that find it besides its title, separated by spaces."""
    errors: str
    """The error classes and the beginnings of messages that find it in a pasted error, in lower case, separated by ``|``."""
    tags: tuple[str, ...]
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
    targets: tuple[TargetRecord, ...]
    families: tuple[FamilyRows, ...]
    totals: tuple[CellTotal, ...]
    total: CellTotal
    legend: tuple[tuple[Status, str, Mark, int], ...]
    """Each status that occurs, with its short word, its look and how often it occurs."""
    tags: tuple[str, ...]


def matrix_page(report: Report) -> MatrixPage:
    matrix = report.matrix
    names = [target.name for target in report.targets]
    refused = refusals(report)
    families = tuple(
        FamilyRows(
            family or "(no family)",
            tuple(_row(report, case, refused.get(case, ())) for case in cases),
            CellTotal.of_counts(matrix.count(cases, names)),
            tuple(CellTotal.of_counts(matrix.count(cases, [name])) for name in names),
        )
        for family, cases in matrix.families.items()
    )
    rows = [row for family in families for row in family.rows]
    counts = Counter(place.sign.status for row in rows for place in row.strip.cells)
    return MatrixPage(
        targets=report.targets,
        families=families,
        totals=tuple(CellTotal.of_counts(matrix.by_target[name]) for name in names),
        total=CellTotal.of_counts(matrix.parts[0].totals),
        legend=tuple(
            (status, SHORT_WORDS[status], mark, counts[status]) for status, mark in MARKS.items() if counts[status]
        ),
        tags=tuple(sorted({tag for row in rows for tag in row.tags})),
    )


def _row(report: Report, id: str, refused: Iterable[str]) -> MatrixRow:
    row = strip(report, id)
    case = report.case(id)
    return MatrixRow(
        strip=row,
        words=search_words(case, report.behaviours[id]),
        errors=search_errors(report.behaviours[id], refused),
        tags=case.tags if case is not None else (),
        behaviours=" ".join("-" if place.behaviour is None else str(place.behaviour) for place in row.cells),
    )


def refusals(report: Report) -> Mapping[str, set[str]]:
    """Map a case to the error classes with which its checkpoints were refused."""
    classes: dict[str, set[str]] = defaultdict(set)
    for cell in report.results.upgrades:
        if cell.error is not None:
            classes[cell.case].add(cell.error.name)
    return classes


def search_errors(behaviours: Iterable[Behaviour], refused: Iterable[str]) -> str:
    """Return what finds a case in a pasted error: error classes and pieces of messages, in lower case, separated by ``|``."""
    texts = (text.lower() for text in (*sorted(refused), *_errors(behaviours)) if len(text) > 20)
    return "|".join(dict.fromkeys(texts))


_FUNCTION = re.compile(r"(\w+)\(")
_TICKET = re.compile(r"SPARK-\d+")


def search_words(case: AnyCase | None, behaviours: Iterable[Behaviour]) -> str:
    """Return the words that find a case, each once, in lower case, separated by spaces."""
    words = [word for behaviour in behaviours for word in _of_behaviour(behaviour)]
    if case is not None:
        words += _TICKET.findall(" ".join(case.links))
    if isinstance(case, Case):
        words += _of_case(case)
    return " ".join(dict.fromkeys(word.lower() for word in words))


def _of_case(case: Case) -> Iterator[str]:
    yield f"{case.output_mode}-mode"
    yield from case.conf
    for operation in case.operations():
        yield operation.name
        yield from _FUNCTION.findall(repr(operation.wire()))
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


_OF_A_QUERY = re.compile(r"\S*[\d/|]\S*|\[[^\]]*\]|'[^']*'|`[^`]*`|\"[^\"]*\"")
"""What is another in each query: numbers, paths, names."""
_MOST_PIECES = 6


def _errors(behaviours: Iterable[Behaviour]) -> Iterator[str]:
    for behaviour in behaviours:
        for error in _errors_of(behaviour):
            yield from (name for name in error.classes if "_" in name)
            pieces = (piece.strip(" .,:;()") for line in error.reason for piece in _OF_A_QUERY.split(line))
            yield from [piece for piece in pieces if len(piece) > 20][:_MOST_PIECES]


def _errors_of(behaviour: Behaviour) -> Iterator[ErrorSeen]:
    observation = behaviour.shown.observation
    return (step.error for step in (observation.steps if observation is not None else ()) if step.error is not None)


def _of_behaviour(behaviour: Behaviour) -> Iterator[str]:
    for cell in behaviour.cells:
        if (entry := cell.differs) is not None:
            yield from _TICKET.findall(f"{entry.link} {entry.introduced_by} {entry.because}")
    for error in _errors_of(behaviour):
        yield from (*error.classes, *(word for line in error.reason[:_MOST_PIECES] for word in line.split()))


WORST_FIRST: tuple[Status, ...] = ("violates", "bug", "flaky", "broken", "not-run")
"""What is listed case by case; everything else is as expected, and counted."""


@dataclass(frozen=True)
class OwnResult:
    target: TargetRecord
    applying: int
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
        (case, CellSign.of(report.matrix.cell(case, target), target))
        for status in WORST_FIRST
        for case in report.matrix.cases
        if report.matrix.status(case, target.name) == status
    )
    return OwnResult(target, applying, counts["bug"], listed, bool(report.background))


@dataclass(frozen=True)
class FrontPage:
    subject: str
    """``How Spark Structured Streaming treats late rows, 3.0 – 4.3``."""
    headline: tuple[Markup, ...]
    """Sentences: what changes, what becomes of checkpoints, what is not as expected or without a result, what ran."""
    bugs: str
    own: OwnResult | None


def front_page(report: Report, pair: Changes | None) -> FrontPage:
    having = sum(bool(report.matrix.by_target[target.name]["bug"]) for target in report.versions)
    versions = len(report.versions)
    bugs = f"{having} of {counted(versions, 'release')} {'has' if having == 1 else 'have'} known bugs" if having else ""
    return FrontPage(
        _subject(report),
        tuple(_headline(report, pair)),
        f"All {versions} releases have known bugs" if having == versions > 1 else bugs,
        own_result(report),
    )


def _subject(report: Report) -> str:
    lines = list(dict.fromkeys(target.line for target in report.versions))
    between = f", {lines[0]} – {lines[-1]}" if len(lines) > 1 else f", {lines[0]}" if lines else ""
    return f"How Spark Structured Streaming treats late rows{between}"


def _headline(report: Report, pair: Changes | None) -> Iterator[Markup]:
    if pair is not None and pair.compared:
        ends = (pair.before, pair.after)
        rows = fact(counted(pair.of_rows, "case") if pair.of_rows else "no case", "changes of rows", *ends)
        others = len(pair.changes) - pair.of_rows
        sentence = Markup("From {} to {}, {} can change your rows or fail").format(*(end.title for end in ends), rows)
        if pair.of_rows:
            sentence += f": {report.by_condition(pair)}"
        if others:
            count = fact(others, "changes of no row", *ends)
            sentence += Markup("{} {} cannot: they change only what Spark accepts or reports").format(
                ";" if pair.of_rows else ", and", count
            )
        yield sentence + "."
    if pair is not None:
        known = report.upgrades.between(pair.before, pair.after)
        yield fact(capitalized(known.summary()), "checkpoints", known.before, known.after) + "."
    totals = report.matrix.parts[0]
    if totals.totals["violates"]:
        yield Markup("{} not as expected.").format(counted(totals.totals["violates"], "cell"))
    without = sum(totals.totals[status] for status in ("broken", "not-run", "flaky"))
    if without:
        yield Markup("{} without a result.").format(counted(without, "cell"))
    cases = fact(counted(len(totals.cases), "case"), "cases")
    yield Markup("{} on {}.").format(cases, counted(len(report.versions), "Spark version"))


@dataclass(frozen=True)
class EngineRun:
    target: TargetRecord
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
            (id, on_one_line(entry, "sentence"), on_one_line(entry, "why"))
            for id, entry in behaviours.items()
            if not entry.get("reachable", True)
        ),
        unknown=sum(1 for case in report.matrix.cases if report.case(case) is None and case not in report.changed),
    )


def _engine(report: Report, target: TargetRecord) -> EngineRun:
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
    cases: tuple[tuple[str, Strip | None], ...]
    """The cases that test it, with None for a case that is not in the results."""
    unreachable: str | None

    @property
    def untested(self) -> bool:
        return not self.cases and self.unreachable is None


def behaviours_page(report: Report) -> Mapping[str, list[CatalogueBehaviour]]:
    sections: dict[str, list[CatalogueBehaviour]] = {}
    cases = report.covered[0].cases if report.covered else {}
    for id, entry in (report.catalogue.behaviours if report.catalogue is not None else {}).items():
        behaviour = CatalogueBehaviour(
            id=id,
            sentence=on_one_line(entry, "sentence"),
            versions=str(entry.get("versions", "all")),
            sources=tuple(SourceLink.of(str(source)) for source in entry.get("sources", ())),
            confs=tuple(map(str, entry.get("confs", ()))),
            cases=tuple(
                (case, strip(report, case) if case in report.matrix.places else None) for case in cases.get(id, ())
            ),
            unreachable=None if entry.get("reachable", True) else on_one_line(entry, "why"),
        )
        sections.setdefault(str(entry.get("section", "others")), []).append(behaviour)
    return sections


def on_one_line(entry: Mapping[str, Any], key: str) -> str:
    """Return a text of a catalogue's entry; empty if it has none."""
    return " ".join(str(entry.get(key, "")).split())


@dataclass(frozen=True)
class BugRow:
    """A bug: a ticket, or what a case says if no ticket reports it."""

    source: SourceLink | None
    ticket: str
    """What stands in for a source: ``no ticket, introduced by SPARK-51955``; may be empty."""
    cases: tuple[tuple[str, str], ...]
    """Each case that shows it, and what goes wrong there."""
    shown: tuple[int, ...]
    """The number of cases that show it on each version."""
    until: tuple[str, ...]
    """The last earlier release of the line that shows it, for each version; empty if the version shows it, or none does."""
    fixed_in: tuple[SparkVersion, ...]
    """The releases that fixed it, one for each line; none if the newest release has it."""
    workaround: Workaround | None

    @property
    def name(self) -> str:
        """``SPARK-58904``; without a ticket, what stands in for it."""
        return self.source.label if self.source is not None else self.ticket or "No ticket"

    @property
    def place(self) -> str:
        """Where it is on the page; stays the same as long as the bug has the same ticket, or without one the same first case."""
        named = _TICKET.search(self.name)
        return named[0] if named is not None else slug(self.cases[0][0])


@dataclass(frozen=True)
class BugsPage:
    targets: tuple[TargetRecord, ...]
    """The versions of the report, newest first, then the newest release of each line that has only patch releases."""
    rows: tuple[BugRow, ...]
    """The bugs that no release has fixed, then the others by the last release that did, newest first."""
    counts: tuple[int, ...]
    """The number of bugs of each version."""


def bugs_page(report: Report) -> BugsPage:
    every = report.every_release
    lines = {target.line for target in report.versions}
    shown = [target for target in every.targets if target.version is not None]
    others = {target.line: target for target in shown if target.line not in lines}
    targets = tuple(reversed((*others.values(), *report.versions)))
    rows = (_bug_row(every, targets, cells) for cells in every.known_bugs(shown).values())
    ordered = sorted(rows, key=lambda row: row.fixed_in[-1:], reverse=True)
    ordered.sort(key=lambda row: bool(row.fixed_in))
    counts = (sum(bool(row.shown[at]) for row in ordered) for at in range(len(targets)))
    return BugsPage(targets, tuple(ordered), tuple(counts))


def _bug_row(matrix: Matrix, targets: Sequence[TargetRecord], cells: Mapping[tuple[str, str], Cell]) -> BugRow:
    cases = {case: cell.differs for (case, _), cell in cells.items() if cell.differs is not None}
    first = next(iter(cases.values()))
    of_lines = {
        target.line: target
        for target in matrix.targets
        if target.apache and any((case, target.name) in cells for case in cases)
    }
    shown = tuple(sum((case, target.name) in cells for case in cases) for target in targets)
    until = (
        of_lines[target.line].title if not count and target.apache and target.line in of_lines else ""
        for target, count in zip(targets, shown, strict=True)
    )
    return BugRow(
        source=SourceLink.of(first.link) if first.link else None,
        ticket=ticket(None, first.introduced_by, bug=True).strip().strip("()") if not first.link else "",
        cases=tuple((case, entry.because or "") for case, entry in cases.items()),
        shown=shown,
        until=tuple(until),
        fixed_in=fixes(dict.fromkeys(cell.differs.spark for cell in cells.values() if cell.differs is not None)),
        workaround=workaround(first.link, first.introduced_by),
    )


_ATOM = "http://www.w3.org/2005/Atom"
_TAG = "tag:watermark-conformance,2026:bug"


def feed(report: Report, page: str) -> str:
    """Return the feed; ``page``: the address of the page of known bugs, relative to the feed."""
    ElementTree.register_namespace("", _ATOM)
    bugs = bugs_page(report)
    when = f"{report.results.footer.finished:%Y-%m-%dT%H:%M:%SZ}"
    root = ElementTree.Element(f"{{{_ATOM}}}feed")
    _text(root, "id", f"{_TAG}s")
    _text(root, "title", "Known bugs of Spark's watermarks")
    _text(root, "updated", when)
    _text(ElementTree.SubElement(root, f"{{{_ATOM}}}author"), "name", "Watermark conformance")
    ElementTree.SubElement(root, f"{{{_ATOM}}}link", rel="self", href=InAFolder.feed)
    ElementTree.SubElement(root, f"{{{_ATOM}}}link", rel="alternate", type="text/html", href=page)
    for row in bugs.rows:
        entry = ElementTree.SubElement(root, f"{{{_ATOM}}}entry")
        _text(entry, "id", f"{_TAG}/{row.place}")
        _text(entry, "title", f"{row.name}: {row.cases[0][1]}")
        _text(entry, "updated", when)
        ElementTree.SubElement(
            entry, f"{{{_ATOM}}}link", rel="alternate", type="text/html", href=f"{page}#{quote(row.place)}"
        )
        releases = zip(bugs.targets, row.shown, row.until, strict=True)
        having = [target.title if count else until for target, count, until in releases if count or until]
        fixed = f"Fixed in {' and '.join(map(str, row.fixed_in))}." if row.fixed_in else "No release has fixed it."
        known = f"Workaround: {row.workaround}" if row.workaround is not None else "No workaround is known."
        cases = ", ".join(case for case, _ in row.cases)
        _text(entry, "summary", f"Seen on {', '.join(reversed(having))}. {fixed} {known} Cases: {cases}.")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _text(parent: ElementTree.Element, name: str, text: str) -> None:
    ElementTree.SubElement(parent, f"{{{_ATOM}}}{name}").text = "".join(char for char in text if char.isprintable())


NARROW = 400.0
"""The width of all columns of a picture that stands beside others, in pixels."""


@dataclass(frozen=True)
class Pictured:
    """A picture on a page of pictures; the template of a timeline reads it as the section of a case."""

    case: str
    title: str
    said: str
    timeline: Timeline
    targets: tuple[TargetRecord, ...]
    difference: None = None


@dataclass(frozen=True)
class VanishedCause:
    sign: str
    because: str
    case: str
    strip: Strip


@dataclass(frozen=True)
class UnderstandPage:
    modes: tuple[Pictured, ...]
    """The same trace in each output mode, as the reference model predicts it."""
    pictures: tuple[Pictured, ...]


def understand_page(report: Report) -> UnderstandPage | None:
    modes, pictures = tuple(_modes(report)), tuple(_pictures(report))
    return UnderstandPage(modes, pictures) if modes or pictures else None


def causes(report: Report) -> tuple[VanishedCause, ...]:
    """Return why a row may be missing, most frequent first; empty if none of the cases is in the report."""
    ran = set(report.matrix.cases)
    return tuple(
        VanishedCause(cause["sign"], cause["because"], cause["case"], strip(report, cause["case"]))
        for cause in _written()["vanished"]
        if cause["case"] in ran
    )


def _modes(report: Report) -> Iterator[Pictured]:
    written, newest = _written()["modes"], report.versions[-1:]
    case = report.cases.get(written["case"])
    version = newest[0].version if newest else None
    if report.model is None or case is None or version is None:
        return
    for changed, prediction in in_each_mode(case, version):
        mode = changed.output_mode
        if (drawn := timeline(changed, prediction.account, across=NARROW)) is not None:
            yield Pictured(case.id, f"{mode.capitalize()} mode", written["said"][mode], drawn, newest)


def _pictures(report: Report) -> Iterator[Pictured]:
    by_name = {target.name: target for target in report.targets}
    for picture in _written()["pictures"]:
        case, groups = report.cases.get(picture["case"]), report.sections(picture["case"])
        cell = groups[0].shown if groups else None
        if case is None or cell is None:
            continue
        target = by_name[cell.target]
        if (drawn := timeline(case, report.batches(case, target, cell))) is not None:
            yield Pictured(case.id, picture["title"], report.title(case.id), drawn, (target,))


@cache
def _written() -> Mapping[str, Any]:
    written: Mapping[str, Any] = read_data("reports.html", "guides.yaml")
    return written
