"""Pages that need no other file: a verdict, a dossier. Their template extends ``standalone.html``."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from conformance.core.output_file import FileKind, write_file
from reports.html.pages import templates
from reports.results.status import Statement


def asset(name: str) -> str:
    """A file that pages use: ``report.css``, ``report.js``."""
    return (files("reports.html") / "assets" / name).read_text(encoding="utf-8")


def write_standalone(path: Path, kind: str, template: str, title: str, **values: object) -> None:
    """Write a page.

    Args:
        kind: what it is, for messages: ``a dossier``.
        template: its file name.
        title: of the page.
        values: what else the template shows.

    Raises:
        CannotWriteFile, OtherContent: see `conformance.core.output_file`.
    """
    text = templates().get_template(template).render(title=title, style=Markup(asset("report.css")), **values)
    write_file(path, text, page_kind(kind))


def page_kind(name: str) -> FileKind:
    """A file that only another page of ours may replace."""
    return FileKind(name, lambda start: b"Watermark conformance</title>" in start)


def write_verdict(path: Path, title: str, about: Sequence[str], statements: Sequence[Statement]) -> None:
    """Write the page.

    Args:
        title: the verdict in one line.
        about: what was tried, a line each.

    Raises:
        CannotWriteFile, OtherContent: see `conformance.core.output_file`.
    """
    write_standalone(path, "a page with a verdict", "verdict.html", title, about=about, statements=statements)
