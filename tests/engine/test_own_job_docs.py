"""The page on one's own job, followed to the letter with real Sparks."""

from __future__ import annotations

from pathlib import Path

from tests.support.transcript import follow

ROOT = Path(__file__).parents[2]


def test_your_own_job(tmp_path):
    follow(ROOT / "docs" / "your-own-job.md", tmp_path)
