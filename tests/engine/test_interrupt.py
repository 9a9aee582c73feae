"""Whoever stops a run gets told what is left of it, and no engine stays behind."""

import signal
import subprocess

import pytest

from reports.results.errors import UnusableResults
from reports.results.reading import Results
from tests.engine.typed import ROOT, start
from tests.support.effort import sample

JOB = """
from pyspark.sql import functions as F

def build(spark, orders):
    return orders.withWatermark("t", "1 minute").groupBy(F.window("t", "1 minute")).count()
"""
PAIR = ("--from", "3.5", "--to", "4.0")
CASES = ROOT / "cases" / "late-drops"
COMMANDS = {
    "run": ("run", CASES, "--spark", "3.5", "--fresh"),
    "upgrade": ("upgrade", CASES, *PAIR, "--fresh"),
    "check": ("check", "job:build", *PAIR, "--sample", "orders=orders.jsonl"),
}
MOMENTS = [(command, line) for command in COMMANDS for line in (": starting", ": Spark ")]
"""A command, and what it says when it is stopped: an engine starts, or has started."""


@pytest.mark.parametrize("how", sample([signal.SIGINT, signal.SIGTERM], 1), ids=lambda how: how.name)
@pytest.mark.parametrize(("command", "said"), sample(MOMENTS, 2))
def test_a_command_that_is_stopped_leaves_nothing(tmp_path, how, command, said):
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "orders.jsonl").write_text('{"t": "2026-03-01T12:00:00Z"}\n{"t": "2026-03-01T12:05:00Z"}\n')
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    stopped = start(tmp_path, *COMMANDS[command], TMPDIR=str(temporary))
    for line in stopped.stderr:
        if said in line:
            break
    stopped.send_signal(how)
    # Less than the 180 s in which an engine may start.
    _, rest = stopped.communicate(timeout=60)
    assert stopped.returncode == 130, rest
    assert "no engine is left running" in rest
    left = subprocess.run(["pgrep", "-f", str(temporary)], capture_output=True, text=True, check=False)
    assert (left.stdout, [*temporary.iterdir()]) == ("", [])


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
