"""A few tries of each part of the campaign that needs engines or a compiler, drawn by a seed that is another every week."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.typed import ROOT
from tests.support.effort import full_run_only
from tools.campaign.tries import Try, read

SEED = os.environ.get("GITHUB_RUN_NUMBER", "1")
PROGRAMS = os.environ.get("CAMPAIGN_PROGRAMS", "12")


def campaign(what: str, tries: str, folder: Path) -> list[Try]:
    command = [sys.executable, "-m", "tools.campaign", what, "--seed", SEED, "--tries", tries, "-o", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return read(folder / f"{what}-{SEED}.jsonl")


@full_run_only
@pytest.mark.parametrize("what", ["jobs", "programs"])
def test_check_calls_no_other_query_the_same(what: str, tmp_path: Path) -> None:
    tries = campaign(what, PROGRAMS, tmp_path)
    assert len(tries) >= int(PROGRAMS)
    assert [one for one in tries if one.fell] == []


@full_run_only
def test_what_is_killed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAMPAIGN_SECONDS", "120")  # a busy machine takes its time
    tries = campaign("platform", "10", tmp_path)
    assert len(tries) == 10
    assert [one for one in tries if one.fell] == []


@full_run_only
@pytest.mark.parametrize(("what", "tries"), [("calls", "12"), ("bytes", "60"), ("two", "12"), ("engines", "8")])
def test_a_disturbed_run_ends_with_its_answer_or_one_message(what: str, tries: str, tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("without a C compiler no call can fail")
    if what == "engines" and os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    ended = campaign(what, tries, tmp_path)
    assert ended
    assert [one for one in ended if one.fell] == []
