"""Prints the upgrade matrix: how many checkpoints of which version others resumed, and what to do about the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from conformance.core.versions import SparkVersion
from conformance.core.wording import counted
from conformance.judging.finding import INDENT, described
from conformance.judging.handoff_verdict import UpgradeStatus
from reports.results.checkpoint_status import BUG, EXPECTED, UPGRADES, of_upgrades
from reports.results.reading import Results
from reports.results.records import UpgradeCell
from reports.results.status import Mark, final_style

_MOST_CASES = 3


def show(results: Results, console: Console) -> None:
    """Print the matrix, its legend, every unexpected result, and a summary for each pair of versions."""
    cells = results.upgrades
    for line in _table(cells):
        _print(console, line)
    _print(console, Text())
    for mark, count in _legend(cells):
        _print(console, Text(f"{mark.glyph} {mark.word} {count}", style=mark.style))
    for line in _unexpected(cells):
        _print(console, line)
    for line in _by_pair(cells):
        _print(console, line)
    _print(console, Text())
    code = of_upgrades(cell.status for cell in cells)
    _print(console, Text(summary(results), style=final_style(code)))


def summary(results: Results) -> str:
    """One line: ``262 cases × 24 version changes: 5000 resumed, 40 refused, as documented …; 0 not as expected``."""
    counts = Counter(cell.status for cell in results.upgrades)
    size = f"{counted(len(results.header.cuts), 'case')} × {counted(len(results.header.pairs), 'version change')}"
    if not results.upgrades or set(counts) <= {"not-applicable"}:
        return f"{size}: no checkpoint was handed over"
    good = [f"{counts[status]} {UPGRADES[status].word}" for status in UPGRADES if status in EXPECTED and counts[status]]
    bad = [
        f"{counts[status]} {UPGRADES[status].word}" for status in UPGRADES if status not in EXPECTED and counts[status]
    ]
    return f"{size}: {', '.join(good)}; {', '.join(bad) or '0 not as expected'}"


def _print(console: Console, line: Text) -> None:
    console.print(line, soft_wrap=True, highlight=False)


def _table(cells: Sequence[UpgradeCell]) -> Iterator[Text]:
    """A row for each version that wrote checkpoints, a column for each that resumed them."""
    by_pair: dict[tuple[str, str], Counter[UpgradeStatus]] = {}
    for cell in cells:
        by_pair.setdefault((cell.origin, cell.to), Counter())[cell.status] += 1
    rows = sorted({origin for origin, _ in by_pair}, key=_by_version)
    columns = sorted({to for _, to in by_pair}, key=_by_version)
    texts = {pair: _tally(counts) for pair, counts in by_pair.items()}
    widths = [max([len(_short(to)), *(len(texts.get((origin, to), "")) for origin in rows)]) for to in columns]
    head = max([len("from"), *(len(_short(origin)) for origin in rows)])
    yield Text(
        "from".ljust(head)
        + "  "
        + "  ".join(_short(to).rjust(width) for to, width in zip(columns, widths, strict=True))
    )
    for origin in rows:
        line = Text(_short(origin).ljust(head), style="bold")
        for to, width in zip(columns, widths, strict=True):
            text = texts.get((origin, to), Text())
            line.append("  " + " " * (width - len(text))).append_text(text)
        line.rstrip()
        yield line


def _tally(counts: Counter[UpgradeStatus]) -> Text:
    """``240● 12⊘``: how many cells have each status."""
    text = Text()
    for status, mark in UPGRADES.items():
        if counts[status] and status != "not-applicable":
            text.append(" " if text else "").append(f"{counts[status]}{mark.glyph}", style=mark.style)
    return text or Text("·", style="dim")


def _legend(cells: Iterable[UpgradeCell]) -> Iterator[tuple[Mark, int]]:
    counts = Counter(cell.status for cell in cells)
    return ((mark, counts[status]) for status, mark in UPGRADES.items() if counts[status])


def _unexpected(cells: Iterable[UpgradeCell]) -> Iterator[Text]:
    """Every unexpected cell with its findings; cells with the same findings together."""
    same_findings: dict[tuple[str, str, UpgradeStatus, tuple[str, ...]], list[str]] = {}
    for cell in cells:
        if cell.status not in EXPECTED:
            evidence = (*described(cell.findings), *(f"note: {note}" for note in cell.notes))
            same_findings.setdefault((cell.origin, cell.to, cell.status, evidence), []).append(
                f"{cell.case}, step {cell.cut},"
            )
    for (origin, to, status, evidence), which in same_findings.items():
        mark = UPGRADES[status]
        cases = which[0] if len(which) == 1 else f"{len(which)} cases, from {which[0]} to {which[-1]}"
        yield Text()
        yield Text(f"{mark.glyph} {cases} {_short(origin)} → {_short(to)}: {mark.word}", style=mark.style)
        for line in evidence:
            yield Text(INDENT + line)


def _by_pair(cells: Sequence[UpgradeCell]) -> Iterator[Text]:
    """For each pair: what resumed, what was refused and by which error, what had other results, and the workarounds."""
    pairs = sorted(
        {(cell.origin, cell.to) for cell in cells}, key=lambda pair: (_by_version(pair[0]), _by_version(pair[1]))
    )
    for origin, to in pairs:
        here = [cell for cell in cells if (cell.origin, cell.to) == (origin, to) and cell.status != "not-applicable"]
        if not here:
            continue
        down = _by_version(to) < _by_version(origin)
        yield Text()
        yield Text(f"{_short(origin)} → {_short(to)}{' (back)' if down else ''}", style="bold")
        resumed = [cell for cell in here if cell.status == "resumes"]
        if resumed:
            families = ", ".join(sorted({cell.family or "(no family)" for cell in resumed}))
            number = f"{len(resumed)} of {counted(len(here), 'checkpoint')}"
            yield Text(f"{INDENT}{UPGRADES['resumes'].glyph} {number} resumed: {families}")
        yield from _grouped(here, "refused", lambda cell: f"refused: {_error(cell)}")
        yield from _grouped(here, "unsupported", lambda cell: f"unsupported: {' '.join(cell.notes)}")
        yield from _grouped(here, "differs", lambda _: "resumed with other results")
        yield from _grouped(here, "violates", lambda cell: f"not as expected: {_error(cell) or 'other results'}")
        yield from _grouped(here, "broken", lambda _: "without an answer")


def _grouped(cells: Sequence[UpgradeCell], status: UpgradeStatus, why: Callable[[UpgradeCell], str]) -> Iterator[Text]:
    groups: dict[tuple[str, str], list[UpgradeCell]] = {}
    for cell in cells:
        if cell.status == status:
            known = f"{BUG.glyph} known bug: " if cell.entry and cell.entry.bug else ""
            because = f" — {known}{cell.entry.because}" if cell.entry else ""
            link = cell.entry.ticket if cell.entry else ""
            workaround = cell.entry.way_round if cell.entry and cell.entry.way_round else ""
            groups.setdefault((why(cell) + because + link, workaround), []).append(cell)
    for (reason, workaround), grouped in groups.items():
        mark = UPGRADES[status]
        yield Text(f"{INDENT}{mark.glyph} {counted(len(grouped), 'checkpoint')} {reason}", style=mark.style)
        names = [cell.case for cell in grouped]
        more = f" and {len(names) - _MOST_CASES} more" if len(names) > _MOST_CASES else ""
        yield Text(f"{INDENT * 2}{', '.join(names[:_MOST_CASES])}{more}")
        if workaround:
            yield Text(f"{INDENT * 2}workaround: {workaround}")


def _error(cell: UpgradeCell) -> str:
    """The name to search for."""
    return "" if cell.error is None else cell.error.title


def _by_version(name: str) -> SparkVersion:
    return SparkVersion.parse(_short(name))


def _short(name: str) -> str:
    return name.removeprefix("spark-").removeprefix("installed-")
