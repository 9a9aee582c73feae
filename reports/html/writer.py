"""Writes a report as a folder of pages, or as one file."""

from __future__ import annotations

import json
import os
import shutil
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path

from markupsafe import Markup

from conformance.core.output_file import CannotWriteFile, FileKind, OtherContent, OutputFile, any_content, write_file
from conformance.core.temporary_folder import temporary_folder
from reports.analysis.change import Changes
from reports.analysis.divided_work import divide
from reports.analysis.gate import DRAFT
from reports.analysis.report import Report
from reports.html.addresses import InAFolder, InOneFile
from reports.html.overview_pages import feed
from reports.html.pages import FRONT, TAB_GROUPS, Page, Parts, rendered, renderings, search_index
from reports.html.standalone import asset, make_folder, page_kind
from reports.html.upgrade_page import PICTURE, write_upgrade_page

ASSETS = ("report.css", "report.js", "minisearch.js", "search.js")
ONE_FILE = "report.html"
PAGE = page_kind("a page of a report")
ASSET = FileKind("an asset of a report", any_content, synced=False)


def write(report: Report, out: Path) -> Path:
    """Write the report as a folder of pages, and return the page to open; other files in the folder stay.

    The pages take their places when all are written: what was there stays if one cannot be written.

    Raises WrongUsage: the folder is a file; otherwise as `conformance.core.output_file.write_file`.
    """
    addresses = InAFolder()
    front = out / addresses.file(FRONT)
    with _beside(out, front) as folder:
        report.find_shared()
        upgrades = [partial(_upgrade_page, report, pair, folder / addresses.upgrades) for pair in report.pairs]
        rendered = [partial(_write, render, folder, addresses) for render in renderings(report, addresses)]
        # What takes longest comes first.
        jobs: list[Callable[[], Parts | None]] = [*upgrades, *rendered]
        parts: dict[str, dict[str, str]] = {}
        for file, shared in chain.from_iterable(divide(jobs, _do)):
            parts.setdefault(file, {}).update(shared)
        for file, shared in parts.items():
            _put(folder / file, _script("shared", dict(sorted(shared.items()))))
        _put(folder / addresses.feed, feed(report, addresses.page("bugs", "bugs")))
        for name in ASSETS:
            _put(folder / name, asset(name))
        _put(folder / "search-index.js", _script("searchEntries", search_index(report, addresses)))
    return front


@contextmanager
def _beside(out: Path, front: Path) -> Iterator[Path]:
    """Yield a folder whose files are moved to their places in another one at the end; an error leaves that one as it was."""
    is_new = not os.path.lexists(out)
    make_folder(out)
    try:
        # In a folder that has a first page of somebody else's, nothing is written at all.
        OutputFile(front, PAGE).discard()
        with ExitStack() as stack:
            try:
                folder = stack.enter_context(temporary_folder(out)) / "report"
                folder.mkdir()
            except OSError as error:
                raise CannotWriteFile(out, error) from None
            yield folder
            _move(folder, out)
    finally:
        if is_new:
            with suppress(OSError):
                out.rmdir()


def _move(folder: Path, out: Path) -> None:
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    places = [(file, out / file.relative_to(folder)) for file in files]
    for file, place in [(file, place) for file, place in places if _may_take(place)]:
        try:
            with suppress(FileNotFoundError):
                shutil.copymode(place, file)
            file.replace(place.resolve())
        except OSError as error:
            raise CannotWriteFile(place, error) from None


def _may_take(place: Path) -> bool:
    """Tell whether a file may take its place; reasons that somebody has written stay. Raises as `OutputFile`."""
    try:
        OutputFile(place, {".html": PAGE, ".svg": PICTURE, ".yaml": DRAFT}.get(place.suffix, ASSET)).discard()
    except OtherContent:
        if place.suffix == ".yaml":
            return False
        raise
    return True


def write_one_file(report: Report, out: Path) -> Path:
    """Write the report as a single file, ``report.html`` in a folder; links and essentials work without JavaScript.

    Raises: as ``write``.
    """
    make_folder(out)
    style, *scripts = map(asset, ASSETS)
    script = "\n".join((*scripts[1:], scripts[0]))
    text = rendered(
        "single.html",
        groups=TAB_GROUPS,
        link=lambda key: f"#{key}",
        pages=(render() for render in renderings(report, InOneFile())),
        found=search_index(report, InOneFile()),
        style=Markup(style),
        script=Markup(script),
        script_hash=f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}",
    )
    _put(out / ONE_FILE, text)
    return out / ONE_FILE


def _write(render: Callable[[], Page], out: Path, addresses: InAFolder) -> Parts:
    page = render()
    text = rendered(
        "page.html",
        key=page.key,
        page_title=page.title,
        tab=page.tab,
        groups=TAB_GROUPS,
        body=page.body,
        parts=page.parts.file,
        share=page.parts.share,
        link=lambda key: addresses.page(key, page.key),
        asset=lambda name: addresses.asset(name, page.key),
    )
    _put(out / addresses.file(page.key), text)
    return page.parts


def _upgrade_page(report: Report, pair: Changes, folder: Path) -> None:
    for _ in write_upgrade_page(report, pair.before.name, pair.after.name, folder):
        pass


def _do(jobs: Iterable[Callable[[], Parts | None]]) -> list[tuple[str, dict[str, str]]]:
    return [(parts.file, {**parts}) for job in jobs if (parts := job())]


def _put(path: Path, text: str) -> None:
    write_file(path, text, PAGE if path.suffix == ".html" else ASSET)


def _script(name: str, value: object) -> str:
    """Return a script that names a value: a page that is opened as a file may load a script, but no JSON."""
    return f"globalThis.{name} = {json.dumps(value, ensure_ascii=False, separators=(',', ':'))};\n"
