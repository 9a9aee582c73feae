"""One upgrade as files of its own: a page to print, a picture for a slide, and a file of changes to accept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from conformance.core.output_file import FileKind, OtherContent, write_file
from reports.analysis.gate import DRAFT, Gate, draft, known_pair
from reports.analysis.releases import Route, RouteRelease, fewest_bugs, releases_between, routes, with_checkpoints
from reports.analysis.report import Report
from reports.html.addresses import SourceLink, upgrade_files
from reports.html.comparison_page import CheckpointSection, Comparison, checkpoint_section, comparison
from reports.html.pages import rendered
from reports.html.standalone import make_folder, write_standalone
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
    """Return the page of a pair of versions, named as in ``conformance gate``. Raises as `reports.results.lookup.find_both`."""
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
