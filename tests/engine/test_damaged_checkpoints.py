"""Damages of checkpoints by a seed: of those that Spark refuses, `inspect` finds nothing wrong with none."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from conformance.checkpoints.awaiting import awaiting
from conformance.checkpoints.checkpoint import read
from conformance.checkpoints.files import DamagedCheckpoint, NoSuchCheckpoint, open_files
from conformance.core.versions import SparkVersion
from harness.environments.provision import prepare
from harness.targets.targets import Targets
from tests.support.effort import full_run_only

SEED, NUMBER = int(os.environ.get("DAMAGES_SEED", "1")), int(os.environ.get("DAMAGES_NUMBER", "200"))


@full_run_only
@pytest.mark.parametrize("version", ["4.3.0", "3.5.9"])
def test_inspect_is_never_greener_than_spark(version: str, tmp_path: Path) -> None:
    (target,) = Targets.load().select([version])
    environment = prepare(target)
    script = Path(__file__).with_name("damages_here.py")
    command = [environment.python, script, tmp_path / "c", str(SEED), str(NUMBER)]
    done = subprocess.run(command, cwd=tmp_path, env=environment.environ(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    tried = json.loads((tmp_path / "c" / "damages.json").read_text(encoding="utf-8"))
    assert len(tried) == NUMBER
    refused = [each for each in tried if each["error"] is not None]
    whole = [each for each in tried if each["what"][2] == "nothing"]
    assert refused, "no damage was one"
    assert [each for each in whole if each["error"] is not None or not is_green(each, target.version)] == []
    assert [each for each in refused if is_green(each, target.version) and not is_said_to_be_unchecked(each)] == []


def is_green(tried: dict[str, Any], to: SparkVersion) -> bool:
    """Whether inspect knows no reason to refuse a checkpoint."""
    try:
        checkpoint = read(open_files(tried["damaged"]))
    except (DamagedCheckpoint, NoSuchCheckpoint):
        return False
    return not checkpoint.missing and all(change.effect == "changes" for change in awaiting(checkpoint, to))


def is_said_to_be_unchecked(tried: dict[str, Any]) -> bool:
    """Whether bytes of the state are wrong beside which there is no checksum, which inspect says of so many files."""
    _, _, damage, path, _ = tried["what"]
    of_state = PurePosixPath(path).suffix in (".delta", ".snapshot", ".changelog", ".sst")
    return of_state and damage in ("cut", "flip", "java_object") and read(open_files(tried["damaged"])).unchecked > 0
