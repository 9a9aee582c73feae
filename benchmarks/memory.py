"""The most memory a run takes: the host's process, its biggest engine, and all of it together.

``python benchmarks/memory.py [any arguments of conformance run]``, by default ``--all --spark newest --fresh``. Every second, what the
run and all that it has started hold in memory is added up.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

_EVERY_S = 1.0
_MB = 1 << 20


def main() -> None:
    arguments = sys.argv[1:] or ["--all", "--spark", "newest", "--fresh"]
    if "-h" in arguments or "--help" in arguments:
        print(__doc__)
        return
    arguments = [str(Path(one).resolve()) if Path(one).exists() else one for one in arguments]
    most = {"host": 0, "engine": 0, "all": 0}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "conformance.cli.main", "run", *arguments]
        run = psutil.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while run.poll() is None:
            time.sleep(_EVERY_S)
            try:
                host = _held(run)
                engines = [_with_children(child) for child in run.children()]
            except psutil.NoSuchProcess:
                continue
            for name, now in (("host", host), ("engine", max(engines, default=0)), ("all", host + sum(engines))):
                most[name] = max(most[name], now)
    if run.returncode not in (0, 1):
        sys.exit(f"the run ended with {run.returncode}: there is nothing to say")
    for name, what in (("host", "the host's process"), ("engine", "the biggest engine"), ("all", "all together")):
        print(f"{what:<20} {most[name] / _MB:7.0f} MB at most")


def _with_children(process: psutil.Process) -> int:
    held = 0
    for one in (process, *process.children(recursive=True)):
        try:
            held += _held(one)
        except psutil.NoSuchProcess:
            continue
    return held


def _held(process: psutil.Process) -> int:
    """Bytes; what processes share is counted once, where the operating system tells."""
    whole = process.memory_full_info()
    return getattr(whole, "pss", whole.uss)


if __name__ == "__main__":
    main()
