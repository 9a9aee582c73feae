"""Pages that need no other file, and the dossier of one upgrade: such a page, a picture for a slide, and a file of changes to accept."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from conformance.core.errors import WrongUsage
from conformance.core.output_file import CannotWriteFile, FileKind, OtherContent, write_file
from reports.analysis.gate import DRAFT, Gate, draft, known_pair
from reports.analysis.releases import Route, RouteRelease, fewest_bugs, releases_between, routes, with_checkpoints
from reports.analysis.report import Report
from reports.html.addresses import SourceLink, upgrade_files
from reports.html.comparison_page import CheckpointSection, Comparison, checkpoint_section, comparison
from reports.html.pages import rendered
from reports.results.records import TargetRecord
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


def write_standalone(path: Path, kind: str, template: str, title: str, **values: object) -> None:
    """Write a page from a template, which shows the values; ``kind``: of the file, for messages: ``a dossier``.

    Raises as `conformance.core.output_file.write_file`.
    """
    text = rendered(template, title=title, style="", **values)
    classes = {name for names in re.findall('class="([^"]*)"', text) for name in names.split()}
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
    """Write the page of a verdict, which the title tells in a line; ``about``: what was tried, a line each.

    Raises as `conformance.core.output_file.write_file`.
    """
    write_standalone(path, "a page with a verdict", "verdict.html", title, about=about, statements=statements)


PICTURE = FileKind("a picture", lambda start: start.startswith(b"<svg"))


@dataclass(frozen=True)
class Dossier:
    gate: Gate
    comparison: Comparison
    checkpoints: CheckpointSection
    fixed: tuple[tuple[str, SourceLink | None, int], ...]
    """Each known bug of the earlier version that the later one does not show, its ticket, and how many cases show it."""
    workarounds: tuple[str, ...]
    releases: tuple[RouteRelease, ...]
    route: Route | None
    """The route with the fewest refused checkpoints; None if not every hop of any was tried."""
    direct: Route | None
    instead: tuple[tuple[TargetRecord, TargetRecord], ...]
    """A version none of whose checkpoints were tried, and the release of its line whose route is told."""
    fewest: tuple[RouteRelease, ...]
    """The release with the fewest known bugs of each line on the way."""

    @property
    def title(self) -> str:
        pair = self.comparison.pair
        return f"Upgrade from Spark {pair.before.title} to {pair.after.title}"


def dossier(report: Report, before: str, after: str) -> Dossier:
    """Return the dossier of a pair of versions, named as in ``conformance gate``. Raises as `reports.results.lookup.find_both`."""
    cases = tuple(report.cases.values())
    ruled = known_pair(report.results, before, after, cases, report.matrix, upgrades=report.upgrades).ruled()
    pair = ruled.compared
    compared, handed = comparison(report, pair), checkpoint_section(report, pair.before, pair.after)
    ends = (pair.before, pair.after)
    tried = tuple(with_checkpoints(report, target) for target in ends)
    possible = routes(report, *tried) if tried[0] != tried[1] else ()
    between = tuple(releases_between(report, *ends))
    return Dossier(
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


def write_dossier(report: Report, before: str, after: str, out: Path) -> Iterator[str]:
    """Write ``upgrade-A-B.html``, ``upgrade-A-B.svg`` and ``accepted-A-B.yaml``, and yield a line about each.

    A file of accepted changes that has reasons already stays. Raises as ``dossier`` and `conformance.core.output_file.write_file`.
    """
    whole = dossier(report, before, after)
    pair = whole.comparison.pair
    make_folder(out)
    page, picture, accepted = (out / name for name in upgrade_files(pair.before.name, pair.after.name))
    drawn = rendered("dossier.svg", dossier=whole)
    write_standalone(
        page,
        "a dossier",
        "dossier.html",
        whole.title,
        dossier=whole,
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
