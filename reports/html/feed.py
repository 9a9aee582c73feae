"""The known bugs as an Atom feed, written beside the pages: a new bug is a new entry.

RFC 4287. An entry keeps its id as long as its bug has the same ticket, so that a reader shows each bug once.
"""

from __future__ import annotations

from datetime import datetime
from urllib.parse import quote
from xml.etree import ElementTree

from reports.analysis.report import Report
from reports.html.addresses import InAFolder
from reports.html.bugs_page import BugRow, bugs_page

_ATOM = "http://www.w3.org/2005/Atom"
_TAG = "tag:watermark-conformance,2026:bug"


def feed(report: Report, page: str) -> str:
    """The feed.

    Args:
        page: the address of the page of known bugs, relative to the feed.
    """
    ElementTree.register_namespace("", _ATOM)
    found = bugs_page(report)
    when = _instant(report.results.footer.finished)
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
        having = (target.title for target, count in zip(found.targets, row.shown, strict=True) if count)
        _text(entry, "summary", " ".join(_sentences(row, list(having))))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _sentences(row: BugRow, having: list[str]) -> list[str]:
    fixed = f"Fixed in {row.fixed_in}." if row.fixed_in is not None else "No release has fixed it."
    known = f"Workaround: {row.workaround}" if row.workaround is not None else "No workaround is known."
    cases = ", ".join(one.case for one in row.cases)
    return [f"Seen on {', '.join(having)}.", fixed, known, f"Cases: {cases}."]


def _instant(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _text(parent: ElementTree.Element, name: str, text: str) -> None:
    ElementTree.SubElement(parent, f"{{{_ATOM}}}{name}").text = "".join(one for one in text if one.isprintable())
