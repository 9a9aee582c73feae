"""The page on the gate, followed to the letter with real Sparks: from one's own query to a red build."""

from __future__ import annotations

from pathlib import Path

from tests.support.effort import full_run_only
from tests.support.transcript import follow

ROOT = Path(__file__).parents[2]


@full_run_only
def test_gate_your_upgrade(tmp_path):
    follow(ROOT / "docs" / "gate-your-upgrade.md", tmp_path)
