"""Prints the upgrade matrix: how many checkpoints of which version others resumed, and what to do about the rest."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from conformance.core.versions import SparkVersion
from conformance.core.wording import counted
from conformance.judging.finding import INDENT
from reports.analysis.checkpoints import CheckpointGroup, by_pair, groups_of
from reports.results.checkpoint_status import BUG, CHECKPOINT_MARKS, OUTCOMES, mark_of
from reports.results.errors import first_of
from reports.results.reading import Results
from reports.results.records import Cell
from reports.results.status import GREEN, Mark, exit_code_of, final_style
from reports.terminal.matrix import bands


def lines(results: Results, width: int) -> Iterator[Text]:
    """Yield the summary, every unexpected result, the matrix, and what became of checkpoints between each pair of versions."""
    cells = results.upgrades
    yield Text(summary(results), style=final_style(exit_code_of(cell.status for cell in cells)))
    yield from (*_unexpected(cells), Text(), *_table(cells, width), *_by_pair(cells))


def summary(results: Results) -> str:
    """Summarize the matrix: ``262 cases × 24 version changes: 5000 resumed, 40 refused, as documented …; 0 not as expected``."""
    size = f"{counted(len(results.header.cuts), 'case')} × {counted(len(results.header.pairs), 'version change')}"
    if all(cell.status == "not-applicable" for cell in results.upgrades):
        return f"{size}: no checkpoint was handed over"
    sides = (_counts(cell for cell in results.upgrades if (cell.status in GREEN) is green) for green in (True, False))
    good, bad = (
        ", ".join(f"{counts[mark]} {mark.word}" for mark in CHECKPOINT_MARKS if counts[mark]) for counts in sides
    )
    return f"{size}: {good}; {bad or '0 not as expected'}"


def _counts(cells: Iterable[Cell]) -> Counter[Mark]:
    return Counter(mark_of(cell.status, cell.outcome) for cell in cells)


def _table(cells: Sequence[Cell], room: int) -> Iterator[Text]:
    texts = {pair: _tally(own) for pair, own in by_pair(cells).items()}
    rows = sorted(sorted({origin for origin, _ in texts}), key=_by_version)
    columns = sorted(sorted({to for _, to in texts}), key=_by_version)
    widths = {to: max([len(_short(to)), *(len(texts.get((origin, to), "")) for origin in rows)]) for to in columns}
    head = max([len("from"), *(len(_short(origin)) for origin in rows)])
    for part in bands([width + 2 for width in widths.values()], room - head):
        shown = {to: widths[to] for to in columns[part]}
        yield Text("  ".join(["from".ljust(head), *(_short(to).rjust(width) for to, width in shown.items())]))
        for origin in rows:
            line = Text(_short(origin).ljust(head), style="bold")
            for to, width in shown.items():
                text = texts.get((origin, to), Text())
                line.append("  " + " " * (width - len(text))).append_text(text)
            line.rstrip()
            yield line


def _tally(cells: Iterable[Cell]) -> Text:
    text, counts = Text(), Counter[tuple[str, str]]()
    for mark, count in _counts(cell for cell in cells if cell.status != "not-applicable").items():
        counts[mark.glyph, mark.style] += count
    for sign in dict.fromkeys((mark.glyph, mark.style) for mark in CHECKPOINT_MARKS):
        if counts[sign]:
            text.append(" " if text else "").append(f"{counts[sign]}{sign[0]}", style=sign[1])
    return text or Text("·", style="dim")


def _unexpected(cells: Iterable[Cell]) -> Iterator[Text]:
    same_findings: dict[tuple[str, str, Mark, tuple[str, ...]], list[str]] = {}
    for cell in cells:
        if cell.status not in GREEN:
            about = (*cell.pair, mark_of(cell.status, cell.outcome), cell.evidence())
            same_findings.setdefault(about, []).append(f"{cell.case}, step {cell.cut},")
    for (origin, to, mark, evidence), which in same_findings.items():
        cases = which[0] if len(which) == 1 else f"{len(which)} cases, from {which[0]} to {which[-1]}"
        yield Text()
        yield Text(f"{mark.glyph} {cases} {_short(origin)} → {_short(to)}: {mark.word}", style=mark.style)
        for line in evidence:
            yield Text(INDENT + line)


def _by_pair(cells: Sequence[Cell]) -> Iterator[Text]:
    pairs = by_pair(cells)
    for origin, to in sorted(pairs, key=lambda pair: (_by_version(pair[0]), _by_version(pair[1]))):
        here = [cell for cell in pairs[origin, to] if cell.status != "not-applicable"]
        if not here:
            continue
        down = _by_version(to) < _by_version(origin)
        yield Text()
        yield Text(f"{_short(origin)} → {_short(to)}{' (back)' if down else ''}", style="bold")
        if resumed := [cell for cell in here if cell.status == "conforms"]:
            families = ", ".join(sorted({cell.family or "(no family)" for cell in resumed}))
            number = f"{len(resumed)} of {counted(len(here), 'checkpoint')}"
            yield Text(f"{INDENT}{OUTCOMES['resumed'].glyph} {number} resumed: {families}")
        # What was found on unexpected cells stands above.
        for group in groups_of(here, findings=False):
            yield from group_lines(group)


def group_lines(group: CheckpointGroup, where: str = "", *, cases: bool = True) -> Iterator[Text]:
    """Yield how many checkpoints had the same answer, why, some of their cases, and how to go on.

    ``where``: between which versions that was, if not between those that were asked about; ``cases``: whether to name the cases.
    """
    mark, entry = mark_of(group.status, group.outcome), group.entry
    error = f" with {group.error}" if group.error else ""
    bug = f"{BUG.glyph} known bug: " if entry is not None and entry.bug else ""
    because = f": {bug}{group.because}{entry.ticket if entry is not None else ''}" if group.because else ""
    count = counted(group.count, "checkpoint")
    yield Text(
        f"{INDENT}{mark.glyph} {count} {mark.word}{error}{f', {where}' if where else ''}{because}", style=mark.style
    )
    if cases:
        yield Text(f"{INDENT * 3}{first_of(tuple(group.cases), 3)}")
    if entry is not None and entry.proven_workaround:
        yield Text(f"{INDENT * 2}same rows on each with {entry.proven_workaround}")


def _by_version(name: str) -> SparkVersion:
    return SparkVersion.parse(_short(name))


def _short(name: str) -> str:
    return name.removeprefix("spark-").removeprefix("installed-")
