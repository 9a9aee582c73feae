"""Pages that need no other file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence, Set
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path

from conformance.core.errors import WrongUsage
from conformance.core.output_file import CannotWriteFile, FileKind, write_file
from reports.html.pages import rendered
from reports.results.status import Statement


def asset(name: str) -> str:
    return (files("reports.html") / "assets" / name).read_text(encoding="utf-8")


def make_folder(folder: Path) -> None:
    """Make the folder of ``--output`` if it is new. Raises WrongUsage: it is a file; CannotWriteFile: it cannot be made."""
    try:
        if folder.exists() and not folder.is_dir():
            raise WrongUsage(f"{folder} is a file: give --output a folder, new or not")
        Path(os.path.realpath(folder)).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWriteFile(folder, error) from None


def check_folder(folder: Path) -> None:
    """Raise as `make_folder` before anything is read for the pages; a new folder is not left."""
    is_new = not os.path.lexists(folder)
    make_folder(folder)
    if is_new:
        with suppress(OSError):  # another process writes into it already
            folder.rmdir()


def write_standalone(path: Path, kind: str, template: str, title: str, **values: object) -> None:
    """Write a page from a template, which shows the values; ``kind``: of the file, for messages: ``the page of an upgrade``.

    Raises as `conformance.core.output_file.write_file`.
    """
    text = rendered(template, title=title, style="", **values)
    classes = {name for names in re.findall('class="?([^">]*)', text) for name in names.split()}
    style = "\n".join(line for line, needed in _style() if not needed or needed & classes)
    write_file(path, text.replace("<style>", f"<style>{style}", 1), page_kind(kind))


@cache
def _style() -> Sequence[tuple[str, Set[str]]]:
    """Return each line of the stylesheet with the classes that its rules are about."""
    return [(line, {*_CLASS.findall(line)}) for line in asset("report.css").splitlines()]


_CLASS = re.compile(r"\.([a-z][\w-]*)(?=[^{}]*\{)")


def page_kind(name: str) -> FileKind:
    """Return a file that only another page of ours may replace."""
    return FileKind(name, lambda start: b"Watermark conformance</title>" in start, synced=False)


def write_verdict(path: Path, title: str, about: Sequence[str], statements: Sequence[Statement]) -> None:
    """Write the page of a verdict, whose conclusion is the title; ``about``: what was tried, a line each.

    Raises as `conformance.core.output_file.write_file`.
    """
    write_standalone(path, "a page with a verdict", "verdict.html", title, about=about, statements=statements)
