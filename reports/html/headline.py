"""The report in one sentence."""

from __future__ import annotations

from reports.analysis.change import Changes
from reports.analysis.report import Report
from reports.html.checkpoints import checkpoints
from reports.results.known_bug import KnownBug


def headline(report: Report, pair: Changes | None) -> str:
    """``16 Spark versions, 214 cases: 11 answers change between 3.3.4 and 4.3.0; 6 releases carry known bugs.``"""
    size = f"{_many(len(report.versions), 'Spark version')}, {_many(len(report.matrix.cases), 'case')}"
    parts = []
    if pair is not None and pair.compared:
        count = len(pair.changes)
        between = f"between {pair.before.title} and {pair.after.title}"
        parts.append(
            f"{_many(count, 'answer')} change{'s' * (count == 1)} {between}" if count else f"nothing changes {between}"
        )
    handed = checkpoints(report, pair) if pair is not None else None
    if handed is not None and handed.told:
        parts.append(f"{_many(len(handed.told), 'checkpoint')} not simply gone on from")
    bugs = len(releases_with_bugs(report))
    if bugs:
        parts.append(f"{_many(bugs, 'release')} {'carries' if bugs == 1 else 'carry'} known bugs")
    counts = report.matrix.totals
    if counts["violates"]:
        parts.append(f"{_many(counts['violates'], 'cell')} not as expected")
    if open_ := counts["broken"] + counts["not-run"] + counts["flaky"]:
        parts.append(f"{_many(open_, 'cell')} without an answer")
    return f"{size}: {'; '.join(parts)}." if parts else f"{size}."


def releases_with_bugs(report: Report) -> tuple[str, ...]:
    """Names of the targets that show a known bug which a later release has not."""
    spark = {target.name: target.spark for target in report.targets}
    bugs = ((cell.target, KnownBug.of(cell, spark[cell.target])) for cell in report.matrix.cells.values())
    return tuple(sorted({name for name, bug in bugs if bug is not None and bug.gone_in is not None}))


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
