"""What an engine holds in memory: its process and its child processes."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.driver import memory as of_engine
from harness.driver.memory import RecentMemory, memory

HOLDING = "held = bytearray(64 << 20); print(len(held), flush=True); input()"
THROUGH_ANOTHER = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOLDING!r}])"


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="this operating system does not tell by /proc")
@pytest.mark.parametrize("program", [HOLDING, THROUGH_ANOTHER], ids=["child", "grandchild"])
def test_what_was_started_counts(program):
    alone = memory()
    assert alone is not None
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        started.stdout.readline()
        together = memory()
        started.communicate(b"\n")
    assert together - alone > 60 << 20


def test_where_nothing_is_told(monkeypatch):
    def nothing(pid):
        raise FileNotFoundError

    monkeypatch.setattr(of_engine, "_pss", nothing)
    assert memory() is None


def test_a_measurement_is_remembered_for_a_while(monkeypatch):
    measured, now = iter([1, 2, 3]), [0.0]
    monkeypatch.setattr(of_engine, "memory", lambda: next(measured))
    monkeypatch.setattr(of_engine.time, "monotonic", lambda: now[0])
    recent = RecentMemory()
    seen = []
    for now[0] in (0.0, 5.0, 5.1, 10.0, 11.0):
        seen.append(recent())
    assert seen == [1, 1, 2, 2, 3]
