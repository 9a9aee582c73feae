"""The step summary of a GitHub workflow, in Markdown: violations first, then changes, then totals."""

from __future__ import annotations

import html
from collections.abc import Iterator

from conformance.core.wording import counted, printable, without_commands
from conformance.judging.finding import described
from reports.analysis.change import MEANINGS, Changes
from reports.analysis.matrix import CellTotal, Matrix, summary
from reports.results.reading import Results
from reports.results.status import MARKS

MOST_BYTES = 1024 * 1024
"""GitHub's limit."""
_ROOM = 400
MOST_FINDINGS = 200
LONGEST = 4_000
"""Characters of the findings of one cell."""


def step_summary(results: Results, pairs: tuple[Changes, ...] = ()) -> str:
    """The summary, with comparisons of two versions, under ``MOST_BYTES``; parts that do not fit are counted."""
    matrix = Matrix.of(results)
    kept: list[str] = []
    size = 0
    blocks = list(_blocks(matrix, pairs))
    for at, block in enumerate(blocks):
        size += len(block.encode("utf-8", "replace"))
        if size > MOST_BYTES - _ROOM:
            kept.append(f"\n… and {len(blocks) - at} more parts do not fit; see the report.\n")
            break
        kept.append(block)
    return "".join(kept).encode("utf-8", "replace").decode()


def _blocks(matrix: Matrix, pairs: tuple[Changes, ...]) -> Iterator[str]:
    yield f"## Watermark conformance\n\n{_text(summary(matrix))}.\n\n"
    bad = matrix.not_green()
    if bad:
        yield "### Not as expected\n\n"
    for case, target, status in bad[:MOST_FINDINGS]:
        cell = matrix.cells.get((case, target.name))
        said = [*described(cell.findings), *(f"note: {note}" for note in cell.notes)] if cell is not None else []
        head = f"{MARKS[status].glyph} <code>{_text(case)}</code> on {_text(target.name)}: {status}"
        # A blank line would end the block of HTML, and what follows it would be Markdown.
        lines = (line for line in "\n".join(said).splitlines() if line.strip())
        body = html.escape(without_commands("\n".join(map(printable, lines))))
        body = body if len(body) <= LONGEST else body[:LONGEST] + "…"
        yield f"<details><summary>{head}</summary>\n<pre>{body}</pre></details>\n\n"
    if len(bad) > MOST_FINDINGS:
        yield f"… and {len(bad) - MOST_FINDINGS} more cells.\n\n"
    yield from _known_bugs(matrix)
    for pair in pairs:
        yield from _changes(pair)
    yield from _numbers(matrix)


def _known_bugs(matrix: Matrix) -> Iterator[str]:
    """A table of the known bugs, each with the versions that have it."""
    rows: dict[tuple[str, str], list[str]] = {}
    for case in matrix.cases:
        for target in matrix.targets:
            cell = matrix.cells.get((case, target.name))
            bug = matrix.known_bug(case, target)
            if cell is not None and cell.differs is not None and bug is not None:
                why = f"{cell.differs.because}{bug.ticket}"
                until = f", fixed in {bug.gone_in}" if bug.gone_in else ""
                rows.setdefault((case, why), []).append(f"{target.spark}{until}")
    if rows:
        yield "### Known bugs\n\n| | case | what goes wrong | Spark |\n|---|---|---|---|\n"
    for (case, why), versions in rows.items():
        yield f"| {MARKS['bug'].glyph} | {_text(case)} | {_text(why)} | {_text('; '.join(versions))} |\n"
    if rows:
        yield "\n"


def _changes(pair: Changes) -> Iterator[str]:
    yield f"### From {_text(pair.before.title)} to {_text(pair.after.title)}\n\n"
    if not pair.changes:
        yield f"Nothing changes: {counted(pair.compared, 'case')} compared.\n\n"
        return
    yield "| | case | what changes | why |\n|---|---|---|---|\n"
    for change in pair.changes:
        why = "; ".join(
            f"{f'{reason.bug}: ' if reason.bug else ''}{reason.text}{reason.ticket}" for reason in change.reasons
        )
        glyph = MEANINGS[change.meaning].glyph
        yield f"| {glyph} | {_text(change.case)} | {_text(change.what)} | {_text(why) or 'no documented reason'} |\n"
    yield "\n"


def _numbers(matrix: Matrix) -> Iterator[str]:
    names = [target.name for target in matrix.targets]
    if not names:
        return
    yield "### As expected\n\n"
    yield f"| family | {' | '.join(_text(name.removeprefix('spark-')) for name in names)} |\n|---{'|---:' * len(names)}|\n"
    for family, cases in matrix.families.items():
        counts = []
        for name in names:
            total = CellTotal.of_counts(matrix.count(cases, [name]))
            counts.append(str(total) if total.complete else f"**{total}**")
        yield f"| {_text(family) or 'no family'} | {' | '.join(counts)} |\n"


def _text(text: str) -> str:
    """Text escaped for a Markdown table."""
    return html.escape(printable(" ".join(text.split()))).translate(_MARKDOWN)


_MARKDOWN = str.maketrans({char: f"&#{ord(char)};" for char in "\\`*_[]|~"})
