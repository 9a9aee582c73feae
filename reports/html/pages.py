"""The pages of a report, each as the HTML of its body."""

import re
from base64 import b32encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import sha256
from html import escape
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup

from conformance.core.versions import maintained_until
from conformance.judging.comparison import MEANINGS
from conformance.suite.conditions import KINDS
from conformance.suite.features import RULE
from reports.analysis.change import Changes
from reports.analysis.gate import WORDS
from reports.analysis.matrix import summary
from reports.analysis.releases import release_lines, released
from reports.analysis.report import Report
from reports.html.addresses import Addresses, SourceLink, case_key, compare_key, pair_name, short, slug, upgrade_files
from reports.html.case_page import case_page
from reports.html.comparison_page import checkpoint_section, comparison, other_pairs
from reports.html.overview_pages import (
    FrontPage,
    about_page,
    behaviours_page,
    bugs_page,
    causes,
    front_page,
    matrix_page,
    understand_page,
)
from reports.html.search import DOCUMENTATION, asked_questions, entries, index
from reports.html.texts import capitalized, cut, fact, in_code, visible
from reports.html.timeline import COUNTS, TREATMENTS
from reports.results.records import TargetRecord

TAB_GROUPS: Mapping[str, Mapping[str, str]] = {
    "Upgrade": {"index": "What changes", "releases": "Patch releases", "bugs": "Known bugs"},
    "Rows": {"vanished": "A row vanished", "understand": "Understand", "questions": "Questions"},
    "Look up": {"search": "Search", "matrix": "Matrix", "behaviours": "Behaviours", "about": "About this run"},
}
"""The pages of the navigation, with their labels."""
TABS = {key: label for tabs in TAB_GROUPS.values() for key, label in tabs.items()}
FRONT = "index"
OTHERS = "compare/others"

_FEW_CASES = 2


class Parts(dict[str, str]):
    """Parts that a page shares with others, by the mark that stands for each: a script puts them in its place."""

    def __init__(self, file: str, known: dict[tuple[object, ...], str]) -> None:
        super().__init__()
        self.file = file
        """What holds the parts of all pages; empty if the page is whole without a script."""
        self._known = known

    def share(self, *of: object, caller: Callable[[], str]) -> Markup:
        """Return what stands for what a template writes between ``call`` and ``endcall``; ``of``: what it follows from, on any page."""
        mark = self._known.get(of) or self.marked(caller())
        if of and self.file:
            self._known[of] = mark
        return Markup(f"<!--{mark}-->" if self.file else mark)

    def marked(self, part: str) -> str:
        """Return what stands for a text in the data of a page; the text itself if the page is whole."""
        if not self.file:
            return part
        mark = b32encode(sha256(part.encode("utf-8", "surrogatepass")).digest())[:8].decode().lower()
        self[mark] = str(part)
        return mark


@dataclass(frozen=True)
class Page:
    key: str
    title: str
    tab: str
    body: Markup
    parts: Parts


@dataclass(frozen=True)
class PairCell:
    count: int
    heat: int
    """A number from 0, nothing, to 4, most."""
    href: str
    title: str
    current: bool


class _Light(Extension):
    """Leaves out what HTML need not have, a fifth of a large page: indentation, quotes of simple values, ends that follow."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:  # noqa: ARG002
        light = _INDENTATION.sub("", source)
        return light if str(name).endswith(".svg") else _ENDS.sub("", _QUOTES.sub(r"=\1", light))


_INDENTATION = re.compile("^ +", re.MULTILINE)
_QUOTES = re.compile(r'(?<=[a-z])="([\w#./:,-]+|\{\{ (?:href|here|link)\([^}]*\) \}\})"(?=[ >])')
_ENDS = re.compile("</(?:li|dt|dd|tr|th|td|thead|tbody|option)>")


@cache
def templates() -> Environment:
    """Return the templates; everything they print is escaped."""
    environment = Environment(
        loader=PackageLoader("reports.html"),
        extensions=[_Light],
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=visible,
        auto_reload=False,
    )
    environment.filters.update(
        released=released,
        maintained=maintained_until,
        capfirst=capitalized,
        short=short,
        slug=slug,
        px=lambda number: f"{number:.1f}".removesuffix(".0"),
        cut=cut,
        fact=fact,
        in_code=in_code,
        code=lambda text: Markup(escape(visible(text), quote=False)),
        source_link=SourceLink.of,
    )
    environment.globals.update(
        documentation=DOCUMENTATION, conditions=KINDS, gate_words=WORDS, share=lambda caller: caller()
    )
    return environment


def rendered(template: str, **values: Any) -> str:
    return templates().get_template(template).render(values)


def renderings(report: Report, addresses: Addresses) -> Iterator[Callable[[], Page]]:
    """Yield what renders each page: the front page, those of the other tabs, those of pairs, then those of cases."""
    renderer = _Renderer(report, addresses)
    yield renderer.front
    yield from (partial(renderer.tab, key) for key in TABS if key != FRONT)
    if report.pairs_without_page:
        yield renderer.others
    yield from (partial(renderer.compare, pair) for pair in report.pairs)
    yield from (partial(renderer.case, id) for id in report.matrix.cases)


def search_index(report: Report, addresses: Addresses) -> list[dict[str, str]]:
    """Return what the search finds, with addresses as on the first page."""
    return index(entries(report, TABS, partial(_Renderer(report, addresses)._href, FRONT)))


@dataclass(frozen=True)
class _Renderer:
    report: Report
    addresses: Addresses
    _known: dict[str, dict[tuple[object, ...], str]] = field(default_factory=dict)
    """Maps the folder of pages to the marks of parts that one of them has by now."""

    def front(self) -> Page:
        pair = self.report.front_pair
        return self._comparison(FRONT, TABS[FRONT], pair, front=front_page(self.report, pair))

    def compare(self, pair: Changes) -> Page:
        key = compare_key(pair.before.name, pair.after.name)
        title = f"From {pair.before.title} to {pair.after.title}"
        return self._comparison(key, title, pair, front=None)

    def others(self) -> Page:
        title = "Any two releases"
        return self._page(OTHERS, title, "index", "others.html", others=other_pairs(self.report), **self._picks(OTHERS))

    def _picks(self, key: str) -> dict[str, Any]:
        """Return what the choice of two versions needs."""
        return {
            "releases": [target for target in self.report.every_release.targets if target.version is not None],
            "pairs": [pair_name(pair.before.name, pair.after.name) for pair in self.report.pairs],
            "pattern": self.addresses.page("compare/{from}..{to}", key).replace("%7B", "{").replace("%7D", "}"),
            "others_href": self.addresses.page(OTHERS, key) if self.report.pairs_without_page else "",
            "meanings": MEANINGS,
        }

    def tab(self, key: str) -> Page:
        return self._page(key, TABS[key], key, f"{key}.html", **self._content(key))

    def _content(self, key: str) -> dict[str, Any]:
        report = self.report
        match key:
            case "vanished":
                return {"causes": causes(report), "bugs": self._filtered("status", "bug")}
            case "understand":
                return {"page": understand_page(report), "counts": COUNTS, "treatments": TREATMENTS}
            case "matrix":
                return {"page": matrix_page(report), "summary": summary(report.matrix)}
            case "bugs":
                return {"page": bugs_page(report), "few": _FEW_CASES, "feed": self.addresses.feed}
            case "releases":
                return {"lines": release_lines(report), "meanings": MEANINGS}
            case "questions":
                return {"asked": asked_questions(report)}
            case "search":
                return {}
            case "behaviours":
                return {"sections": behaviours_page(report)}
            case _:
                return {"page": about_page(report), "summary": summary(report.matrix)}

    def case(self, id: str) -> Page:
        page, key = case_page(self.report, id), case_key(id)
        family = f"{self.addresses.page('matrix', key)}{self._filtered('family', page.family)}"
        return self._page(
            key,
            page.title,
            "matrix",
            "case.html",
            page=page,
            title_of=self.report.title,
            family_href=family,
            counts=COUNTS,
            treatments=TREATMENTS,
        )

    def _filtered(self, name: str, value: str) -> str:
        fragment = self.addresses.page("matrix", "matrix", "")
        return f"{'' if fragment.startswith('#') else '#'}?{name}={value}"

    def _comparison(self, key: str, title: str, pair: Changes | None, front: FrontPage | None) -> Page:
        return self._page(
            key,
            title,
            "index",
            "compare.html",
            comparison=comparison(self.report, pair) if pair is not None else None,
            checkpoints=checkpoint_section(self.report, pair.before, pair.after) if pair is not None else None,
            back=checkpoint_section(self.report, pair.after, pair.before) if pair is not None else None,
            targets=self.report.versions,
            grid=self._grid(key, pair),
            downloads=self._downloads(key, pair),
            rule=RULE,
            front=front,
            **self._picks(key),
        )

    def _downloads(self, seen_from: str, pair: Changes | None) -> tuple[str, ...]:
        folder = self.addresses.upgrades
        if pair is None or folder is None:
            return ()
        names = upgrade_files(pair.before.name, pair.after.name)
        return tuple(self.addresses.asset(f"{folder}/{name}", seen_from) for name in names)

    def _grid(self, seen_from: str, current: Changes | None) -> Mapping[TargetRecord, list[PairCell | None]]:
        targets = self.report.versions
        most = max((len(pair.changes) for pair in self.report.pairs), default=0)
        cells = {
            (pair.before, pair.after): PairCell(
                count=(count := len(pair.changes)),
                heat=0 if not count else 1 + 3 * (count - 1) // most,
                href=self.addresses.page(compare_key(pair.before.name, pair.after.name), seen_from),
                title=f"{pair.before.title} to {pair.after.title}",
                current=pair == current,
            )
            for pair in self.report.pairs
        }
        return {before: [cells.get((before, after)) for after in targets[1:]] for before in targets[:-1]}

    def _href(self, seen_from: str, kind: str, name: str = "") -> str:
        page, place = (case_key(name), "") if kind == "case" else (kind, name)
        return self.addresses.page(page, seen_from, place)

    def _page(self, key: str, title: str, tab: str, template: str, **about: Any) -> Page:
        parts = Parts(self.addresses.parts(key), self._known.setdefault(key[: key.rfind("/")], {}))
        body = rendered(
            template,
            share=parts.share,
            marked=lambda rows: [(parts.marked(features), *counts) for features, *counts in rows],
            whole=not parts.file,
            href=partial(self._href, key),
            here=partial(self.addresses.page, key, key),
            id=partial(self.addresses.id, key),
            report=self.report,
            **about,
        )
        return Page(key, title, tab, Markup(body), parts)
