"""Whoever stops a run gets told what is left of it, and no engine stays behind."""

import signal
import subprocess

import pytest

from reports.results.errors import UnusableResults
from reports.results.reading import Results
from tests.engine.typed import ROOT, start
from tests.support.effort import sample


@pytest.mark.parametrize("how", sample([signal.SIGINT, signal.SIGTERM], 1), ids=lambda how: how.name)
def test_a_run_that_is_stopped(tmp_path, how):
    run = start(tmp_path, "run", ROOT / "cases" / "late-drops", "--spark", "3.5", "--work", tmp_path / "work")
    for line in run.stderr:
        if line.startswith("[ 1/"):
            break
    run.send_signal(how)
    _, said = run.communicate(timeout=600)
    assert run.returncode == 130, said
    assert "results.jsonl lacks" in said
    with pytest.raises(UnusableResults, match="the run was interrupted"):
        Results.read(tmp_path / "results.jsonl")
    left = subprocess.run(["pgrep", "-f", str(tmp_path / "work")], capture_output=True, text=True, check=False)
    assert left.stdout == ""
