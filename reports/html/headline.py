"""The report in one sentence, with a link to the known bugs."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.core.wording import counted
from reports.analysis.change import Changes
from reports.analysis.report import Report
from reports.html.checkpoints import checkpoint_section


@dataclass(frozen=True)
class Headline:
    """The sentence, around the part that says which releases have known bugs."""

    before: str
    bugs: str = ""
    """Empty if no release has one."""
    after: str = ""

    def __str__(self) -> str:
        return self.before + self.bugs + self.after


def headline(report: Report, pair: Changes | None) -> Headline:
    """The report in one sentence.

    ``16 Spark versions, 214 cases: 11 results change between 3.3.4 and 4.3.0; all 16 releases have known bugs.``
    """
    of_spark = report.matrix.parts[0]
    size = f"{counted(len(report.versions), 'Spark version')}, {counted(len(of_spark.cases), 'case')}"
    first = []
    if pair is not None and pair.compared:
        count = len(pair.changes)
        between = f"between {pair.before.title} and {pair.after.title}"
        first.append(
            f"{counted(count, 'result')} change{'s' * (count == 1)} {between}"
            if count
            else f"nothing changes {between}"
        )
    handed = checkpoint_section(report, pair) if pair is not None else None
    if handed is not None and handed.abnormal:
        verb = "does" if handed.abnormal == 1 else "do"
        first.append(f"{handed.abnormal} of {counted(handed.tried, 'checkpoint')} {verb} not resume normally")
    counts = of_spark.totals
    last = []
    if counts["violates"]:
        last.append(f"{counted(counts['violates'], 'cell')} not as expected")
    if open_ := counts["broken"] + counts["not-run"] + counts["flaky"]:
        last.append(f"{counted(open_, 'cell')} without a result")
    bugs = _bugs(report)
    if not first and not last and not bugs:
        return Headline(f"{size}.")
    before = f"{size}: {'; '.join(first)}{'; ' if first and (bugs or last) else ''}"
    return Headline(before, bugs, f"{'; ' if bugs and last else ''}{'; '.join(last)}.")


def _bugs(report: Report) -> str:
    having, of = len(releases_with_bugs(report)), len(report.versions)
    if not having:
        return ""
    if having == of > 1:
        return f"all {of} releases have known bugs"
    return f"{having} of {counted(of, 'release')} {'has' if having == 1 else 'have'} known bugs"


def releases_with_bugs(report: Report) -> tuple[str, ...]:
    """Names of the versions that show a known bug, whether or not a later release fixes it."""
    found = {cell.target for cell in report.matrix.cells.values() if cell.status == "bug"}
    return tuple(target.name for target in report.versions if target.name in found)
