"""The pages on one's own job and on the gate, followed to the letter with real Sparks, each in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.effort import full_run_only
from tests.support.transcript import follow

ROOT = Path(__file__).parents[2]


@full_run_only
@pytest.mark.parametrize(
    "page",
    [
        "your-own-job",
        "your-job-as-a-case",
        "your-job-in-pytest",
        "your-job-needs",
        "gate-your-upgrade",
        "explain-your-job",
    ],
)
def test_a_page(page, tmp_path):
    follow(ROOT / "docs" / f"{page}.md", tmp_path)
