"""The sentences of the README and the docs that state numbers of the published results, counted again from them."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from conformance.core.wording import counted
from conformance.query import read_query
from conformance.suite import discovery
from conformance.suite.conditions import Condition
from reports.analysis.gate import known_pair
from reports.analysis.report import Report
from reports.html.comparison_page import checkpoint_section
from reports.results.checkpoint_status import colour_of
from reports.results.published import published_results

ROOT = Path(__file__).parent.parent
BEFORE, AFTER = "3.5.9", "4.3.0"


def files(report: Report | None = None) -> Iterator[tuple[Path, str]]:
    """Yield each page with its text as the published results make it; ``report``: on these, if it is at hand."""
    report = report or Report.of(published_results(), discovery.load())
    for page, begin, end, sentence in sentences(report):
        path = ROOT / page
        yield path, _rewritten(path.read_text(encoding="utf-8"), begin, end, sentence)


def sentences(report: Report) -> Iterator[tuple[str, str, str, str]]:
    """Yield the page of each sentence, its first words, the words that follow it, and the sentence."""
    yield "README.md", f"From Spark {BEFORE} to {AFTER}, ", ": run on real Spark", _readme(report)
    yield "docs/upgrade.md", "Of ", ". Refused are", _joins(report)


def _readme(report: Report) -> str:
    cases = tuple(report.cases.values())
    ruled = known_pair(report.results, BEFORE, AFTER, cases, report.matrix, upgrades=report.upgrades).ruled()
    known = ruled.checkpoints
    rows = [ruling.condition for ruling in ruled.rulings if ruling.change.of_rows]
    refused, others = (
        [cell for cell in known.cells if colour_of(cell.status, cell.outcome) in colours]
        for colours in (("refused", "unsupported"), ("differs",))
    )
    (rows_by_default, rows_else), (refused_by_default, refused_else) = map(
        _by_default, (rows, [known.change(cell).condition for cell in refused])
    )
    with_rows = sum(cell.outcome == "other rows" for cell in others)
    return (
        f"From Spark {BEFORE} to {AFTER}, with default settings {rows_by_default} of {counted(ruled.compared.compared, 'case')} "
        f"change rows or fail, and {refused_by_default} of {known.tried} checkpoints are refused; {rows_else} and {refused_else} "
        "more only with another setting, RocksDB, a damaged checkpoint or a changed job. "
        f"{len(others)} checkpoints resume with other results, {with_rows or 'none'} of them with other rows"
    )


def _by_default(conditions: list[Condition]) -> tuple[int, int]:
    by_default = sum(condition.kind in ("default settings", "restart") for condition in conditions)
    return by_default, len(conditions) - by_default


def _joins(report: Report) -> str:
    targets = {target.title: target for target in report.targets}
    section = checkpoint_section(report, targets[BEFORE], targets[AFTER])
    joins = [kind for kind in section.kinds if "join" in kind[0]]
    tried, refused = sum(kind[1] for kind in joins), sum(kind[2] for kind in joins)
    whole = {"equal windows": 0, "full outer": 0}
    for cell in section.known.cells:
        case = report.cases.get(cell.case)
        if case is None or cell.status in ("not-run", "not-applicable"):
            continue
        on = [join for pipeline in case.pipelines() for join in read_query(pipeline, case.streams).joins]
        for kind, has in (
            ("equal windows", any(re.search(r"window\w* = \w*\.?\w*window", join.on) for join in on)),
            ("full outer", any(join.kind == "fullOuter" for join in on)),
        ):
            whole[kind] += has
            if has and colour_of(cell.status, cell.outcome) == "refused":
                raise ValueError(f"{AFTER} refuses a join of the kind {kind}, {cell.case}: write docs/upgrade.md anew")
    return (
        f"Of {tried} checkpoints of {BEFORE} with a join, {AFTER} refuses {refused}, and none of {whole['equal windows']} joins on "
        f"equal windows or of {whole['full outer']} full outer joins"
    )


def transcript() -> tuple[Path, str]:
    """Return the README with what its first command prints."""
    path = ROOT / "README.md"
    command = [sys.executable, "-m", "conformance.cli.main", "gate", "--from", BEFORE, "--to", AFTER]
    printed = subprocess.run(command, capture_output=True, encoding="utf-8", check=False).stdout
    text = path.read_text(encoding="utf-8")
    return path, re.sub(r"```text\n.*?\n```", lambda _: f"```text\n{printed}```", text, count=1, flags=re.DOTALL)


def _rewritten(text: str, begin: str, end: str, sentence: str) -> str:
    for paragraph in text.split("\n\n"):
        flat = " ".join(paragraph.split())
        at = flat.find(begin)
        until = flat.find(end, at)
        if at >= 0 and until >= 0 and flat[at:until] != sentence:
            again = textwrap.fill(
                flat[:at] + sentence + flat[until:], 100, break_long_words=False, break_on_hyphens=False
            )
            return text.replace(paragraph, again)
    return text
