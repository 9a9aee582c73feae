"""What the search finds: questions, bugs, cases, behaviours and pages of a report, and the documentation, by their words."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from conformance.core.data import read_data
from conformance.core.wording import counted
from reports.analysis.releases import release_lines
from reports.analysis.report import Report
from reports.analysis.specification import Clause, Evidence
from reports.html.addresses import compare_key
from reports.html.overview_pages import bugs_page, on_one_line, refusals, search_errors, search_words
from reports.html.texts import visible

Href: TypeAlias = Callable[..., str]
"""The address of a page, or of a place on it: ``href("bugs", "SPARK-50046")``, ``href("case", "late-drops/x")``."""

KINDS = ("Questions", "Known bugs", "Cases", "Behaviours", "Pages", "Documentation")
DOCUMENTATION = "https://watermark-conformance.github.io/watermark-conformance/"


@dataclass(frozen=True)
class SearchEntry:
    title: str
    text: str
    """What stands below the title; may be empty."""
    href: str
    words: str = ""
    """The words that find it besides title and text, in lower case, separated by spaces."""
    errors: str = ""
    """The error classes and the beginnings of messages that find it in a pasted error, in lower case, separated by ``|``."""


@dataclass(frozen=True)
class AskedQuestion:
    id: str
    question: str
    answer: str
    holds: str
    """On which versions: ``holds: 3.5 – 4.3``."""
    cases: tuple[str, ...]
    behaviours: tuple[str, ...]
    links: tuple[str, ...]


def asked_questions(report: Report) -> tuple[AskedQuestion, ...]:
    """Return the questions of the suite's catalogue whose cited cases are all in the report."""
    catalogue = report.catalogue.questions if report.catalogue is not None else None
    return tuple(
        AskedQuestion(
            id,
            on_one_line(entry, "question"),
            on_one_line(entry, "answer"),
            Evidence.of(report, clauses).summary,
            tuple(dict.fromkeys(clause.case for clause in clauses)),
            tuple(map(str, entry.get("behaviours", ()))),
            tuple(map(str, entry.get("links", ()))),
        )
        for id, entry in (catalogue or {}).items()
        if (clauses := Clause.all_of(report, entry)) and all(clause.case in report.matrix.places for clause in clauses)
    )


def entries(report: Report, pages: Mapping[str, str], href: Href) -> Mapping[str, tuple[SearchEntry, ...]]:
    """Return the entries of the search, by kind.

    ``pages``: the keys and titles of the pages that are about all results.
    """
    by_kind = (_questions, _bugs, _cases, _behaviours)
    of_results = (tuple(entries_of(report, href)) for entries_of in by_kind)
    return dict(zip(KINDS, (*of_results, tuple(_pages(report, pages, href)), tuple(_documentation())), strict=True))


def index(found: Mapping[str, tuple[SearchEntry, ...]]) -> list[dict[str, str]]:
    """Return what `search.js` reads: each entry with its kind."""
    all_entries = ({"kind": kind, **asdict(entry)} for kind, entries in found.items() for entry in entries)
    return [{key: str(visible(value)) for key, value in entry.items()} for entry in all_entries]


def _questions(report: Report, href: Href) -> Iterator[SearchEntry]:
    for asked in asked_questions(report):
        words = " ".join((*asked.behaviours, *asked.links, *map(report.title, asked.cases)))
        yield SearchEntry(asked.question, asked.answer, href("questions", asked.id), words)


def _bugs(report: Report, href: Href) -> Iterator[SearchEntry]:
    for row in bugs_page(report).rows:
        fixed = f"fixed in {', '.join(map(str, row.fixed_in))}" if row.fixed_in else "fixed in no release"
        advice = row.workaround
        others = [text for case, because in row.cases for text in (report.title(case), because)]
        helps = [advice.text, advice.setting or "", advice.said_by] if advice is not None else []
        words = " ".join(("bug", *others, *helps)).lower()
        yield SearchEntry(row.cases[0][1], f"{row.name}, {fixed}", href("bugs", row.place), words)


def _cases(report: Report, href: Href) -> Iterator[SearchEntry]:
    refused = refusals(report)
    for id in report.matrix.cases:
        behaviours = report.behaviours[id]
        words, errors = search_words(report.case(id), behaviours), search_errors(behaviours, refused.get(id, ()))
        yield SearchEntry(report.title(id), id, href("case", id), words, errors)


def _behaviours(report: Report, href: Href) -> Iterator[SearchEntry]:
    for id, entry in (report.catalogue.behaviours if report.catalogue is not None else {}).items():
        words = " ".join(map(str, (*entry.get("sources", ()), *entry.get("confs", ())))).lower()
        yield SearchEntry(on_one_line(entry, "sentence"), id, href("behaviours", id), words)


def _pages(report: Report, pages: Mapping[str, str], href: Href) -> Iterator[SearchEntry]:
    yield from (SearchEntry(title, "", href(key)) for key, title in pages.items())
    for pair in report.pairs:
        count = counted(len(pair.changes), "change")
        title = f"From {pair.before.title} to {pair.after.title}"
        compared = href(compare_key(pair.before.name, pair.after.name))
        yield SearchEntry(title, count, compared, "upgrade comparison checkpoints go back rollback")
    for line in release_lines(report).values():
        for release in line:
            known = counted(len(release.bugs), "known bug") if release.target is not None else "not run"
            yield SearchEntry(
                f"Spark {release.version}", known, href("releases", str(release.version)), "patch release"
            )


def _documentation() -> Iterator[SearchEntry]:
    """Yield the pages of the documentation, which is on the web."""
    pages: Mapping[str, Any] = read_data("reports.html", "documentation.yaml")
    for name, page in pages.items():
        yield SearchEntry(
            page["title"], page["begins"], f"{DOCUMENTATION}{name}.html", " ".join((*page["parts"], *page["names"]))
        )
