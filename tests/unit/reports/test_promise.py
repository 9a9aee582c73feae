"""What the README and the docs say of the upgrade from 3.5.9 to 4.3.0, counted again from the published results."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

from conformance.core.wording import counted
from conformance.query import read_query
from reports.analysis.checkpoints import Checkpoints
from reports.analysis.gate import Gate, gate
from tests.support.published import published_report

ROOT = Path(__file__).parents[3]


@cache
def ruled() -> Gate:
    report = published_report()
    return gate(report.results, "3.5.9", "4.3.0", cases=tuple(report.cases.values()), matrix=report.matrix)


def handed() -> Checkpoints:
    found = ruled().checkpoints
    assert found is not None
    return found


def said(page: str) -> str:
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def test_the_readme_begins_with_what_the_upgrade_changes() -> None:
    found, compared = handed(), ruled().compared
    refused, others = found.count("refused", "unsupported"), found.count("differs")
    told = (
        f"From Spark 3.5.9 to 4.3.0, {refused} of {found.tried} checkpoints are refused, {others} go on with other rows, and "
        f"{compared.of_rows} of {counted(compared.compared, 'case')} change rows or fail"
    )
    assert told in said("README.md"), f"README.md is stale: it must say: {told}"
    assert found.count("violates", "broken") == 0


def test_the_page_on_upgrades_says_which_joins_are_refused() -> None:
    report = published_report()
    kinds: Counter[tuple[str, bool]] = Counter()
    for cell in handed().cells:
        case = report.cases.get(cell.case)
        if case is None or cell.status in ("not-run", "not-applicable"):
            continue
        joins = [join for pipeline in case.pipelines() for join in read_query(pipeline, case.streams).joins]
        refused = cell.outcome == "refused" and cell.status in ("differs", "bug")
        kinds["join", refused] += bool(joins)
        kinds["equal windows", refused] += any(re.search(r"window\w* = \w*\.?\w*window", join.on) for join in joins)
        kinds["full outer", refused] += any(join.kind == "fullOuter" for join in joins)
    for kind in ("equal windows", "full outer"):
        assert kinds[kind, True] == 0, f"4.3.0 refuses a join of the kind {kind}: docs/upgrade.md is wrong"
    told = (
        f"Of {kinds['join', True] + kinds['join', False]} checkpoints of 3.5.9 with a join, 4.3.0 refuses {kinds['join', True]}, and "
        f"none of {kinds['equal windows', False]} joins on equal windows or of {kinds['full outer', False]} full outer joins"
    )
    assert told in said("docs/upgrade.md"), f"docs/upgrade.md is stale: it must say: {told}"
