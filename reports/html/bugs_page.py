"""The page of known bugs: which release has which, the release that fixed it, a workaround, and the cases that show it; and their feed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote
from xml.etree import ElementTree

from reports.analysis.report import Report
from reports.html.addresses import InAFolder, SourceLink, slug
from reports.results.known_bug import KnownBug, Workaround
from reports.results.records import Cell, Target

_TICKET = re.compile(r"SPARK-[0-9]+")


@dataclass(frozen=True)
class BugCase:
    case: str
    title: str
    because: str


@dataclass(frozen=True)
class BugRow:
    """A bug: a ticket, or what a case says if no ticket reports it."""

    source: SourceLink | None
    ticket: str
    """What stands in for a source: ``no ticket, introduced by SPARK-51955``; may be empty."""
    cases: tuple[BugCase, ...]
    shown: tuple[int, ...]
    """The number of cases that show it on each version."""
    fixed_in: str | None
    workaround: Workaround | None

    @property
    def name(self) -> str:
        """``SPARK-58904``; without a ticket, what stands in for it."""
        return self.source.label if self.source is not None else self.ticket or "No ticket"

    @property
    def place(self) -> str:
        """Where it is on the page; stays the same as long as the bug has the same ticket, or without one the same first case."""
        named = _TICKET.search(self.name)
        return named[0] if named is not None else slug(self.cases[0].case)


@dataclass(frozen=True)
class BugsPage:
    targets: tuple[Target, ...]
    rows: tuple[BugRow, ...]
    """The bugs that no release has fixed, then the others by the release that did, newest first."""
    counts: tuple[int, ...]
    """The number of bugs of each version."""


def bugs_page(report: Report) -> BugsPage:
    rows = (_row(report, cells) for cells in report.matrix.known_bugs(report.versions).values())
    found = sorted(rows, key=lambda row: (row.fixed_in is not None, [-n for n in _numbers(row.fixed_in)]))
    targets = report.versions
    return BugsPage(
        targets, tuple(found), tuple(sum(1 for row in found if row.shown[at]) for at in range(len(targets)))
    )


def _numbers(release: str | None) -> list[int]:
    return [int(number) for number in release.split(".")] if release is not None else []


def _row(report: Report, cells: Mapping[tuple[str, str], Cell]) -> BugRow:
    newest = {case: cell for (case, _), cell in cells.items()}
    spark = {target.name: target.spark for target in report.versions}
    bugs = [KnownBug.of(cell, spark[cell.target], report.matrix.bugs[case]) for case, cell in newest.items()]
    fixed = [bug.fixed_in for bug in bugs if bug is not None]
    first = next(bug for bug in bugs if bug is not None)
    cases = {case: cell.differs.because or "" for case, cell in newest.items() if cell.differs is not None}
    return BugRow(
        source=SourceLink.of(first.link) if first.link else None,
        ticket=first.ticket.strip().strip("()") if not first.link else "",
        cases=tuple(BugCase(case, report.title(case), because) for case, because in cases.items()),
        shown=tuple(sum(1 for case in cases if (case, target.name) in cells) for target in report.versions),
        fixed_in=None if None in fixed else max((one for one in fixed if one is not None), key=_numbers),
        workaround=first.workaround,
    )


_ATOM = "http://www.w3.org/2005/Atom"
_TAG = "tag:watermark-conformance,2026:bug"


def feed(report: Report, page: str) -> str:
    """Returns the feed; ``page``: the address of the page of known bugs, relative to the feed."""
    ElementTree.register_namespace("", _ATOM)
    found = bugs_page(report)
    when = f"{report.results.footer.finished:%Y-%m-%dT%H:%M:%SZ}"
    root = ElementTree.Element(f"{{{_ATOM}}}feed")
    _text(root, "id", f"{_TAG}s")
    _text(root, "title", "Known bugs of Spark's watermarks")
    _text(root, "updated", when)
    _text(ElementTree.SubElement(root, f"{{{_ATOM}}}author"), "name", "Watermark conformance")
    ElementTree.SubElement(root, f"{{{_ATOM}}}link", rel="self", href=InAFolder.feed)
    ElementTree.SubElement(root, f"{{{_ATOM}}}link", rel="alternate", type="text/html", href=page)
    for row in found.rows:
        entry = ElementTree.SubElement(root, f"{{{_ATOM}}}entry")
        _text(entry, "id", f"{_TAG}/{row.place}")
        _text(entry, "title", f"{row.name}: {row.cases[0].because}")
        _text(entry, "updated", when)
        ElementTree.SubElement(
            entry, f"{{{_ATOM}}}link", rel="alternate", type="text/html", href=f"{page}#{quote(row.place)}"
        )
        having = ", ".join(target.title for target, count in zip(found.targets, row.shown, strict=True) if count)
        fixed = f"Fixed in {row.fixed_in}." if row.fixed_in is not None else "No release has fixed it."
        known = f"Workaround: {row.workaround}" if row.workaround is not None else "No workaround is known."
        cases = ", ".join(one.case for one in row.cases)
        _text(entry, "summary", f"Seen on {having}. {fixed} {known} Cases: {cases}.")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _text(parent: ElementTree.Element, name: str, text: str) -> None:
    ElementTree.SubElement(parent, f"{{{_ATOM}}}{name}").text = "".join(one for one in text if one.isprintable())
