"""Programs drawn by a seed that do something else on the newer version: `check` calls no query of them the same."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.effort import full_run_only
from tools.campaign import jobs
from tools.campaign.tries import carried_out, table

SEED = int(os.environ.get("GITHUB_RUN_NUMBER", "1"))
PROGRAMS = int(os.environ.get("CAMPAIGN_PROGRAMS", "12"))


@full_run_only
def test_check_calls_no_other_query_the_same(tmp_path: Path) -> None:
    tries = [*carried_out(tmp_path / "tries.jsonl", range(PROGRAMS), lambda number: jobs.attempt(SEED, number))]
    assert len(tries) >= PROGRAMS
    assert [one for one in tries if one.fell] == [], table(tries)
