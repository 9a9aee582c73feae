"""Digests of many rows: other rows have another digest, whatever their types."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from harness.environments.provision import prepare
from harness.targets.targets import Targets
from tests.support.effort import full_run_only, number

ROOT = Path(__file__).parents[2]


@full_run_only
@pytest.mark.parametrize("line", ["3.0.3", "3.5.9", "4.3.0"])
def test_different_rows_of_every_type_have_different_digests(line: str, tmp_path: Path) -> None:
    (target,) = Targets.load().select([line])
    environment = prepare(target)
    command = [environment.python, Path(__file__).with_name("digests_here.py"), "equal.json", "7", str(number(20, 60))]
    env = {**environment.environ(), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads((tmp_path / "equal.json").read_text(encoding="utf-8")) == []
