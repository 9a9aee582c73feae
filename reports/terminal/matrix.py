"""The matrix on a terminal, with glyphs, words and colours; plain text without a terminal."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from rich.text import Text

from conformance.core.wording import shortened
from conformance.core.wrapping import fitted
from conformance.judging.finding import INDENT, described
from conformance.judging.verdict import Status
from reports.analysis.columns import native_uses
from reports.analysis.matrix import CellTotal, Matrix, summary
from reports.results.reading import Results
from reports.results.records import Cell
from reports.results.status import MARKS, final_style

AS_EXPECTED = "as expected"
NOT_AS_EXPECTED = "not as expected"

_IS_A_RELEASE = re.compile(r"\d+\.\d+\.\d+")


def lines(results: Results, width: int, *, verbose: bool = False) -> list[Text]:
    """Return the summary, the findings of every cell that is not green, and the matrix with its legend.

    Of a matrix that is too long for a terminal, the families only, unless ``verbose``.
    """
    matrix = Matrix.of(results)
    native = [Text(str(use)) for use in native_uses(results)]
    said = (Text(line, style=final_style(matrix.exit_code)) for line in summary(matrix).splitlines())
    shown = [*said, *native, *_findings(matrix), Text()]

    def lines_of(each: bool) -> list[Text]:
        return [*shown, *chain.from_iterable(drawn(part, width, each=each) for part in matrix.parts)]

    return fitted(lines_of, (True,) if verbose else (True, False), width)


def drawn(matrix: Matrix, width: int, *, each: bool = True) -> Iterator[Text]:
    """Yield the rows of the matrix and its legend; ``each``: whether each case has a row, else families only."""
    if matrix.cases and matrix.targets:
        yield from (*_table(matrix, width, each=each), Text(), *_legend(matrix, width))


def _table(matrix: Matrix, width: int, *, each: bool) -> Iterator[Text]:
    for number, part in enumerate(_parts(matrix, width)):
        if number:
            yield Text()
        yield part.row("", [Text(head, style="bold") for head in part.heads])
        for family, cases in matrix.families.items():
            total = Text(_total(matrix.count(cases, part.names)), style="dim")
            yield part.row(family or "(no family)", [], total, style="bold")
            for case in cases if each else ():
                marks = [MARKS[matrix.status(case, name)] for name in part.names]
                yield part.row(INDENT + case.rpartition("/")[2], [Text(mark.glyph, style=mark.style) for mark in marks])
        feet = [Text(foot, style="bold") for foot in part.feet]
        totals = CellTotal.of_counts(matrix.count(matrix.cases, part.names))
        shown = str(totals if part.foot == AS_EXPECTED else totals.missing)
        yield part.row(part.foot, feet, Text(shown, style="bold"), style="bold")


@dataclass(frozen=True)
class _Columns:
    names: tuple[str, ...]
    heads: tuple[str, ...]
    feet: tuple[str, ...]
    foot: str
    room: int
    gap: str

    def row(self, head: str, cells: Sequence[Text], total: Text | None = None, style: str = "") -> Text:
        line = Text(shortened(head, self.room).ljust(self.room), style=style)
        for at, column in enumerate(self.columns):
            content = cells[at] if at < len(cells) else Text()
            line.append(self.gap + " " * (column - len(content))).append_text(content)
        if total is not None:
            line.append("  ").append_text(total)
        line.rstrip()
        return line

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(max(len(head), len(foot)) for head, foot in zip(self.heads, self.feet, strict=True))


def _parts(matrix: Matrix, width: int) -> Iterator[_Columns]:
    """Yield the whole matrix if it fits; else with short heads; else split into several parts."""
    names = tuple(target.name for target in matrix.targets)
    counts = [matrix.count(matrix.cases, [name]) for name in names]
    wanted = max(len(text) for text in [*matrix.families, *(INDENT + case.rpartition("/")[2] for case in matrix.cases)])
    wanted = max(wanted, len(AS_EXPECTED))
    last = len(_total(matrix.totals)) + 2
    titles = tuple(target.title for target in matrix.targets)
    wide = _Columns(names, titles, tuple(map(_total, counts)), AS_EXPECTED, wanted, "  ")
    if wanted + sum(wide.columns) + 2 * len(names) + last <= width:
        yield wide
        return
    totals = map(CellTotal.of_counts, counts)
    feet = tuple(str(total.missing) for total in totals)
    narrow = _Columns(names, _short_heads(titles), feet, NOT_AS_EXPECTED, wanted, " ")
    wanted = max(wanted, len(NOT_AS_EXPECTED))
    least = min(wanted, max(len(NOT_AS_EXPECTED), width // 4))
    for at in bands([column + 1 for column in narrow.columns], width - least - last):
        used = sum(narrow.columns[at]) + len(names[at]) + last
        room = max(least, min(wanted, width - used))
        yield replace(narrow, names=names[at], heads=narrow.heads[at], feet=narrow.feet[at], room=room)


def bands(widths: Sequence[int], room: int) -> Iterator[slice]:
    """Divide columns into parts that each fit the room."""
    begin, used = 0, 0
    for at, needed in enumerate(widths):
        if at > begin and used + needed > room:
            yield slice(begin, at)
            begin, used = at, 0
        used += needed
    yield slice(begin, len(widths))


def _short_heads(heads: Sequence[str]) -> tuple[str, ...]:
    lines = [".".join(head.split(".")[:2]) if _IS_A_RELEASE.fullmatch(head) else head for head in heads]
    return tuple(line if lines.count(line) == 1 else head for head, line in zip(heads, lines, strict=True))


def _total(counts: Counter[Status]) -> str:
    return str(CellTotal.of_counts(counts))


def _legend(matrix: Matrix, width: int) -> Iterator[Text]:
    line = Text()
    for status, mark in MARKS.items():
        count = matrix.totals[status]
        if not count:
            continue
        entry = Text(f"{mark.glyph} {mark.word} {count}", style=mark.style)
        if line and len(line) + 3 + len(entry) > width:
            yield line
            line = Text()
        line.append("   " if line else "").append_text(entry)
    yield line


def _findings(matrix: Matrix) -> Iterator[Text]:
    same: dict[tuple[str, Status, tuple[str, ...]], list[str]] = {}
    for case, target, status in matrix.not_green():
        cell = matrix.cell(case, target)
        evidence = tuple(_evidence(cell)) if cell is not None else ()
        same.setdefault((target.name, status, evidence), []).append(case)
    for (name, status, evidence), cases in same.items():
        mark = MARKS[status]
        which = cases[0] if len(cases) == 1 else f"{len(cases)} cases, from {cases[0]} to {cases[-1]},"
        yield Text()
        yield Text(f"{mark.glyph} {which} on {name}: {status}", style=mark.style)
        for line in evidence:
            yield Text(INDENT + line)


def _evidence(cell: Cell) -> Iterator[str]:
    if cell.explained_by:
        yield f"explained by {' and '.join(cell.explained_by)}; the report and the results have the findings"
        return
    yield from cell.evidence()
    if cell.status == "flaky":
        for number, run in enumerate(cell.runs, 1):
            yield f"run {number}: {run.status}" + (f", behaviour {run.behaviour[:12]}" if run.behaviour else "")
            yield from (INDENT + line for line in described(run.findings))
