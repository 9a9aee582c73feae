"""This checkout against an earlier revision of it: the same cases through the command line of both, by turns.

``python benchmarks/revisions.py 270f49e [--spark 3.5.9] [--rounds 3] [--side-by-side 4] [CASES…]``: cases are paths in the earlier
revision. CPU time is that of all processes; on a busy machine its ratio is the better one. Start-up is part of both.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Cost:
    """Of one run."""

    wall: float
    """Seconds."""
    cpu: float
    """Seconds."""
    batches: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision")
    parser.add_argument("--spark", default="3.5.9")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--side-by-side", default="4")
    parser.add_argument("cases", nargs="*", default=["cases/window-eviction"])
    options = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as name:
        earlier = Path(name) / "earlier"
        earlier.mkdir()
        archive = subprocess.run(["git", "archive", options.revision], cwd=ROOT, check=True, stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", earlier], input=archive.stdout, check=True)
        arguments = [*(str(earlier / case) for case in options.cases), "--spark", options.spark, "--fresh"]
        arguments += ["--jobs", "1", "--side-by-side", options.side_by_side]
        costs: dict[Path, list[Cost]] = {earlier: [], ROOT: []}
        for _ in range(options.rounds):
            for checkout, measured in costs.items():
                measured.append(_cost(checkout, arguments))
    for label, measured in zip((options.revision, "this"), costs.values(), strict=True):
        print(f"{label:10}" + "".join(f"  wall {one.wall:6.1f} s, CPU {one.cpu:6.1f} s" for one in measured))
    print(f"{costs[ROOT][0].batches} micro-batches in each run")
    for kind in ("wall", "cpu"):
        before, after = (sum(getattr(one, kind) / one.batches for one in measured) for measured in costs.values())
        print(f"{kind} per micro-batch: {after / before:.2f} of the earlier revision's")


def _cost(checkout: Path, arguments: list[str]) -> Cost:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environ = {**os.environ, "PYTHONPATH": str(checkout), "CONFORMANCE_ANSWERS": str(folder / "answers.sqlite")}
        began = time.monotonic()
        command = [sys.executable, "-m", "conformance.cli.main", "run", *arguments]
        with subprocess.Popen(
            command, cwd=folder, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
        ) as process:
            cpu = _cpu_until_end(process)
        wall = time.monotonic() - began
        batches = (folder / "results.jsonl").read_text().count('"next_watermark"')
    return Cost(wall, cpu, batches)


def _cpu_until_end(process: subprocess.Popen[bytes]) -> float:
    """CPU seconds of a process and of all it starts; the sum that the system keeps for a parent leaves killed engines out."""
    seconds: dict[int, float] = {}
    top = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            for one in (top, *top.children(recursive=True)):
                times = one.cpu_times()
                seconds[one.pid] = times.user + times.system
        except psutil.Error:  # one of them has just ended
            pass
        time.sleep(0.1)
    return sum(seconds.values())


if __name__ == "__main__":
    main()
