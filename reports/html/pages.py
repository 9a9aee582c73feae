"""The pages of a report, each as the HTML of its body."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reports.analysis.change import MEANINGS, Changes
from reports.analysis.features import RULE
from reports.analysis.matrix import summary
from reports.analysis.releases import release_lines, released
from reports.analysis.report import Report
from reports.html.addresses import Addresses, SourceLink, case_key, compare_key, short, slug, upgrade_files
from reports.html.bugs_page import bugs_page
from reports.html.case_page import case_page
from reports.html.comparison import checkpoint_section, comparison
from reports.html.guides import causes, understand_page
from reports.html.overview_pages import about_page, behaviours_page, headline, matrix_page, own_result
from reports.html.texts import cut, visible
from reports.html.timeline import COUNTS, FATES
from reports.results.records import Target

TABS = (
    ("index", "What changes"),
    ("vanished", "A row vanished"),
    ("understand", "Understand"),
    ("matrix", "Matrix"),
    ("bugs", "Known bugs"),
    ("releases", "Patch releases"),
    ("behaviours", "Behaviours"),
    ("about", "About this run"),
)

_FEW_CASES = 2


@dataclass(frozen=True)
class Page:
    key: str
    title: str
    tab: str
    """The tab it belongs to."""
    body: Markup


@dataclass(frozen=True)
class PairCell:
    """How many answers change from one version to another."""

    count: int
    heat: int
    """From 0, nothing, to 4, most."""
    href: str
    title: str
    current: bool


@dataclass(frozen=True)
class PairRow:
    target: Target
    cells: tuple[PairCell | None, ...]


@cache
def templates() -> Environment:
    """The templates; everything they print is escaped."""
    found = Environment(
        loader=PackageLoader("reports.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=visible,
        auto_reload=False,
    )
    found.filters.update(
        released=released, capfirst=_capitalised, short=short, slug=slug, px=_pixels, cut=cut, source_link=SourceLink.of
    )
    return found


def pages(report: Report, addresses: Addresses) -> Iterator[Page]:
    """Every page, the front page first."""
    return (render() for render in renderings(report, addresses))


def renderings(report: Report, addresses: Addresses) -> Iterator[Callable[[], Page]]:
    """What renders each page, in the order of ``pages``: those of the tabs first, then those of pairs, then those of cases."""
    renderer = _Renderer(report, addresses)
    yield renderer.front
    yield renderer.vanished
    yield renderer.understand
    yield renderer.matrix
    yield renderer.bugs
    yield renderer.releases
    yield renderer.behaviours
    yield renderer.about
    yield from (partial(renderer.compare, pair) for pair in report.pairs)
    yield from (partial(renderer.case, id) for id in report.matrix.cases)


class _Renderer:
    def __init__(self, report: Report, addresses: Addresses) -> None:
        self._report = report
        self._addresses = addresses
        self._summary = summary(report.matrix)

    def front(self) -> Page:
        pair = self._report.front_pair
        return self._comparison(
            "index",
            "What changes",
            pair,
            headline=headline(self._report, pair),
            front=True,
            subject=subject(self._report),
            own=own_result(self._report),
        )

    def compare(self, pair: Changes) -> Page:
        key = compare_key(pair.before.name, pair.after.name)
        title = f"From {pair.before.title} to {pair.after.title}"
        return self._comparison(key, title, pair, headline=None, front=False, subject="", own=None)

    def vanished(self) -> Page:
        return self._page(
            "vanished",
            "A row vanished",
            "vanished",
            "vanished.html",
            causes=causes(self._report),
            bugs=self._filtered("status", "bug"),
        )

    def understand(self) -> Page:
        page = understand_page(self._report)
        return self._page(
            "understand", "Understand", "understand", "understand.html", page=page, counts=COUNTS, fates=FATES
        )

    def matrix(self) -> Page:
        page = matrix_page(self._report)
        return self._page("matrix", "Matrix", "matrix", "matrix.html", page=page, summary=self._summary)

    def bugs(self) -> Page:
        page = bugs_page(self._report)
        return self._page(
            "bugs", "Known bugs", "bugs", "bugs.html", page=page, few=_FEW_CASES, feed=self._addresses.feed
        )

    def releases(self) -> Page:
        lines = release_lines(self._report)
        return self._page("releases", "Patch releases", "releases", "releases.html", lines=lines, meanings=MEANINGS)

    def behaviours(self) -> Page:
        sections = behaviours_page(self._report)
        return self._page("behaviours", "Behaviours", "behaviours", "behaviours.html", sections=sections)

    def about(self) -> Page:
        page = about_page(self._report)
        return self._page("about", "About this run", "about", "about.html", page=page, summary=self._summary)

    def case(self, id: str) -> Page:
        page, key = case_page(self._report, id), case_key(id)
        family = f"{self._addresses.page('matrix', key)}{self._filtered('family', page.family)}"
        return self._page(
            key,
            page.title,
            "matrix",
            "case.html",
            page=page,
            title_of=self._report.title,
            family_href=family,
            counts=COUNTS,
            fates=FATES,
        )

    def _filtered(self, name: str, value: str) -> str:
        """The suffix of an address of the matrix that filters it."""
        fragment = self._addresses.page("matrix", "matrix", "")
        return f"{'' if fragment.startswith('#') else '#'}?{name}={value}"

    def _comparison(self, key: str, title: str, pair: Changes | None, **about: Any) -> Page:
        return self._page(
            key,
            title,
            "index",
            "compare.html",
            comparison=comparison(self._report, pair) if pair is not None else None,
            checkpoints=checkpoint_section(self._report, pair) if pair is not None else None,
            targets=self._report.versions,
            grid=self._grid(key, pair),
            dossier=self._dossier(key, pair),
            pairs=[f"{short(one.before.name)}..{short(one.after.name)}" for one in self._report.pairs],
            rule=RULE,
            pattern=self._addresses.page("compare/{from}..{to}", key).replace("%7B", "{").replace("%7D", "}"),
            **about,
        )

    def _dossier(self, seen_from: str, pair: Changes | None) -> tuple[str, ...]:
        """The addresses of the files of the dossier of a pair; empty if there is none."""
        folder = self._addresses.upgrades
        if pair is None or folder is None:
            return ()
        names = upgrade_files(pair.before.name, pair.after.name)
        return tuple(self._addresses.asset(f"{folder}/{name}", seen_from) for name in names)

    def _grid(self, seen_from: str, current: Changes | None) -> tuple[PairRow, ...]:
        targets = self._report.versions
        found = {(pair.before.name, pair.after.name): pair for pair in self._report.pairs}
        most = max((len(pair.changes) for pair in found.values()), default=0)
        rows = []
        for before in targets[:-1]:
            cells: list[PairCell | None] = []
            for after in targets[1:]:
                pair = found.get((before.name, after.name))
                cells.append(self._pair(pair, most, seen_from, pair == current) if pair is not None else None)
            rows.append(PairRow(before, tuple(cells)))
        return tuple(rows)

    def _pair(self, pair: Changes, most: int, seen_from: str, current: bool) -> PairCell:
        count = len(pair.changes)
        return PairCell(
            count=count,
            heat=0 if not count else 1 + 3 * (count - 1) // max(most, 1),
            href=self._addresses.page(compare_key(pair.before.name, pair.after.name), seen_from),
            title=f"{pair.before.title} to {pair.after.title}",
            current=current,
        )

    def _page(self, key: str, title: str, tab: str, template: str, **about: Any) -> Page:
        def href(kind: str, name: str = "") -> str:
            return (
                self._addresses.page(case_key(name), key) if kind == "case" else self._addresses.page(kind, key, name)
            )

        body = (
            templates()
            .get_template(template)
            .render(
                href=href,
                here=partial(self._addresses.page, key, key),
                id=partial(self._addresses.id, key),
                report=self._report,
                **about,
            )
        )
        return Page(key, title, tab, Markup(body))


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _pixels(number: float) -> str:
    """A length, to a tenth of a pixel."""
    return f"{number:.1f}".removesuffix(".0")


def subject(report: Report) -> str:
    """What the report is about: ``How Spark Structured Streaming treats late rows, 3.0 – 4.3``."""
    lines = list(dict.fromkeys(version.line for target in report.versions if (version := target.version) is not None))
    between = f", {lines[0]} – {lines[-1]}" if len(lines) > 1 else f", {lines[0]}" if lines else ""
    return f"How Spark Structured Streaming treats late rows{between}"
