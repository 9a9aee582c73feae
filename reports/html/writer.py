"""Writes a report as a folder of pages, or as one file; and one upgrade as files of its own.

These are a page to print, a picture for a slide, and a file of changes to accept.
"""

import json
import os
import shutil
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path

from markupsafe import Markup

from conformance.core.output_file import CannotWriteFile, FileKind, OtherContent, OutputFile, any_content, write_file
from conformance.core.temporary_folder import temporary_folder
from reports.analysis.change import Changes
from reports.analysis.divided_work import divide
from reports.analysis.gate import DRAFT, Gate, draft, known_pair
from reports.analysis.releases import Route, RouteRelease, fewest_bugs, releases_between, routes, with_checkpoints
from reports.analysis.report import Report
from reports.html.addresses import InAFolder, InOneFile, SourceLink, upgrade_files
from reports.html.comparison_page import CheckpointSection, Comparison, checkpoint_section, comparison
from reports.html.overview_pages import feed
from reports.html.pages import FRONT, TAB_GROUPS, Page, Parts, rendered, renderings, search_index
from reports.html.standalone import asset, make_folder, page_kind, write_standalone
from reports.results.records import TargetRecord

PICTURE = FileKind("a picture", lambda start: start.startswith(b"<svg"))


@dataclass(frozen=True)
class UpgradePage:
    gate: Gate
    comparison: Comparison
    checkpoints: CheckpointSection
    fixed: tuple[tuple[str, SourceLink | None, int], ...]
    """Each known bug of the earlier version that the later one does not show, its ticket, and how many cases show it."""
    workarounds: tuple[str, ...]
    releases: tuple[RouteRelease, ...]
    route: Route | None
    """The route with the fewest refused checkpoints; None if of each route an upgrade was not tried."""
    direct: Route | None
    instead: tuple[tuple[TargetRecord, TargetRecord], ...]
    """A version none of whose checkpoints were tried, and the release of its line whose route is shown instead."""
    fewest: tuple[RouteRelease, ...]
    """The release with the fewest known bugs of each line on the way."""

    @property
    def title(self) -> str:
        pair = self.comparison.pair
        return f"Upgrade from Spark {pair.before.title} to {pair.after.title}"


def upgrade_page(report: Report, before: str, after: str) -> UpgradePage:
    """Return the page of a pair of versions, named as in ``conformance gate``. Raises as `reports.results.published.find_both`."""
    cases = tuple(report.cases.values())
    ruled = known_pair(report.results, before, after, cases, report.matrix, upgrades=report.upgrades).ruled()
    pair = ruled.compared
    compared, handed = comparison(report, pair), checkpoint_section(report, pair.before, pair.after)
    ends = (pair.before, pair.after)
    tried = tuple(with_checkpoints(report, target) for target in ends)
    possible = routes(report, *tried) if tried[0] != tried[1] else ()
    between = tuple(releases_between(report, *ends))
    return UpgradePage(
        gate=ruled,
        comparison=compared,
        checkpoints=handed,
        fixed=tuple(_fixed(compared)),
        workarounds=tuple(dict.fromkeys(_workarounds(compared, handed))),
        releases=between,
        route=possible[0] if possible else None,
        direct=next((route for route in possible if len(route.releases) == 2), None),
        instead=tuple(pair for pair in zip(ends, tried, strict=True) if possible and pair[0] != pair[1]),
        fewest=fewest_bugs(between),
    )


def write_upgrade_page(report: Report, before: str, after: str, out: Path) -> Iterator[str]:
    """Write ``upgrade-A-B.html``, ``upgrade-A-B.svg`` and ``accepted-A-B.yaml``, and yield a line about each.

    A file of accepted changes that has reasons already stays. Raises as `upgrade_page` and `conformance.core.output_file.write_file`.
    """
    whole = upgrade_page(report, before, after)
    pair = whole.comparison.pair
    make_folder(out)
    page, picture, accepted = (out / name for name in upgrade_files(pair.before.name, pair.after.name))
    drawn = rendered("upgrade.svg", upgrade=whole)
    write_standalone(
        page,
        "the page of an upgrade",
        "upgrade.html",
        whole.title,
        upgrade=whole,
        pair=pair,
        report=report,
        drawn=Markup(drawn),
        accepted=accepted.name,
    )
    yield str(page)
    write_file(picture, drawn, PICTURE)
    yield str(picture)
    try:
        write_file(accepted, draft(tuple(ruling.change for ruling in whole.gate.failing)), DRAFT)
    except OtherContent:
        yield f"{accepted} stays: it has your reasons"
    else:
        yield str(accepted)


def _fixed(compared: Comparison) -> Iterator[tuple[str, SourceLink | None, int]]:
    by_bug: dict[tuple[str, str | None], set[str]] = {}
    for change in compared.pair.changes:
        if change.before.status == "bug" and change.after.status != "bug" and (entry := change.before.differs):
            by_bug.setdefault((entry.because or "", entry.link), set()).add(change.case)
    for (because, link), cases in sorted(by_bug.items(), key=lambda item: (-len(item[1]), item[0][0])):
        yield because, SourceLink.of(link) if link else None, len(cases)


def _workarounds(compared: Comparison, handed: CheckpointSection) -> Iterator[str]:
    for reason in (*handed.groups, *handed.documented):
        if reason.workaround:
            yield f"Checkpoints: {reason.workaround}"
    bugs = (standing.bug.workaround for standing in compared.bugs)
    reasons = (known for group in compared.groups for entry in group.entries for known in entry.workarounds)
    for workaround in (*bugs, *reasons):
        if workaround is not None:
            yield str(workaround)


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
