"""One page with a verdict: a heading, what it is about, and statements, each with a sign and details. It needs no other file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reports.html.standalone_page import write_standalone
from reports.results.status import Statement


def write_verdict(path: Path, title: str, about: Sequence[str], statements: Sequence[Statement]) -> None:
    """Write the page.

    Args:
        title: the verdict in one line.
        about: what was tried, a line each.

    Raises:
        CannotWriteFile, OtherContent: see `conformance.core.output_file`.
    """
    write_standalone(path, "a page with a verdict", "verdict.html", title, about=about, statements=statements)
