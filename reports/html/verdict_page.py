"""One page with a verdict: a heading, what it is about, and statements, each with a sign and details. It needs no other file."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Protocol

from markupsafe import Markup

from conformance.core.output_file import FileKind, write_file
from reports.html.pages import templates

_PAGE = FileKind("a page with a verdict", lambda start: b"Watermark conformance</title>" in start)


class Statement(Protocol):
    """One thing that was found; its kind is the status of a cell."""

    @property
    def kind(self) -> str: ...

    @property
    def glyph(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def details(self) -> tuple[str, ...]: ...


def write_verdict(path: Path, title: str, about: Sequence[str], statements: Sequence[Statement]) -> None:
    """Write the page.

    Args:
        title: the verdict in one line.
        about: what was tried, a line each.

    Raises:
        CannotWriteFile, OtherContent: see `conformance.core.output_file`.
    """
    style = (files("reports.html") / "assets" / "report.css").read_text(encoding="utf-8")
    template = templates().get_template("verdict.html")
    write_file(path, template.render(title=title, about=about, statements=statements, style=Markup(style)), _PAGE)
