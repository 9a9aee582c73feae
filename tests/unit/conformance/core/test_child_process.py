"""Programs that the suite starts end with it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conformance.core.child_process import run_streaming

STARTS = """
import os, sys
from conformance.core.child_process import run_streaming
run_streaming([sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(600)"], os.environ,
    lambda line: print(line, flush=True), keep=1)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_an_installer_ends_with_a_command_that_is_killed():
    with subprocess.Popen([sys.executable, "-c", STARTS], stdout=subprocess.PIPE, text=True) as command:
        installer = int(command.stdout.readline())
        command.kill()
    deadline = time.monotonic() + 60
    while running(installer) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = running(installer)
    if left:
        os.kill(installer, 9)
    assert not left


def running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_what_a_program_says_is_kept_and_a_missing_program_is_an_error():
    program = "print('first'); print('second'); raise SystemExit(3)"
    assert run_streaming([sys.executable, "-c", program], os.environ, str, keep=1) == ("second",)
    assert run_streaming([sys.executable, "-c", ""], os.environ, str, keep=1) is None
    with pytest.raises(FileNotFoundError):
        run_streaming(["/no/such/program"], os.environ, str, keep=1)
