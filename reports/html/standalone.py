"""Pages that need no other file: of a verdict, and of ``explain --output``."""

import os
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence, Set
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from conformance.core.data import Json
from conformance.core.errors import WrongUsage
from conformance.core.output_file import CannotWriteFile, FileKind, write_file
from conformance.core.wording import duration
from conformance.query_progress.causes import rule
from conformance.query_progress.query_page import QueryPage
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


def explanation_page(pages: Iterable[QueryPage], notes: Iterable[str] = ()) -> str:
    """Return the causes, a query over its micro-batches, which delay it needs, and what became of each row.

    ``notes``: what holds for all queries.
    """
    shown = [*pages]
    script = f"{asset('uplot.js')}\n{asset('explanation.js')}"
    return rendered(
        "explanation.html",
        title="Explanation",
        style=Markup(asset("report.css")),
        own_style=Markup(asset("explanation.css")),
        pages=shown,
        rule=rule,
        duration=duration,
        data=[*map(_data, shown)],
        notes=notes,
        script=Markup(script),
        script_hash=f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}",
    )


def _data(page: QueryPage) -> Json:
    """Return what the script draws."""
    points, delays = page.over_time.points, page.delays
    return {
        "batches": [point.batch for point in points],
        "clock": [point.clock for point in points],
        "values": [[point.values.get(series) for point in points] for series in page.over_time.series],
        "restarts": [at for at, point in enumerate(points) if point.begins],
        "delays": delays and {**delays.record, "labels": [row[:1] + row[-2:-1] for row in delays.table[1:]]},
    }
