"""What an engine holds in memory: its process and its child processes."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.driver import memory as of_engine
from harness.driver.memory import memory

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
