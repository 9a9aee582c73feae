"""The page on the gate, followed to the letter with real Sparks: from one's own query to a red build."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.transcript import File, transcript

ROOT = Path(__file__).parents[2]


def test_gate_your_upgrade(tmp_path):
    programs = str(Path(sys.executable).parent)
    environ = {**os.environ, "PATH": programs + os.pathsep + os.environ["PATH"]}
    for act in transcript(ROOT / "docs" / "gate-your-upgrade.md"):
        if isinstance(act, File):
            (tmp_path / act.path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / act.path).write_text(act.content)
            continue
        done = subprocess.run(
            act.line, shell=True, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == act.exit_code, act.line + done.stdout + done.stderr
        assert [text for text in act.printed if text not in done.stdout.splitlines()] == [], done.stdout
