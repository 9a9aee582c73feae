"""This checkout against an earlier revision of it: the same cases through the command line of both, by turns.

``python benchmarks/revisions.py 270f49e [--spark 3.5.9] [--rounds 3] [--side-by-side 4] [CASES…]``: cases are paths in the earlier
revision. CPU time is that of all processes; on a busy machine its ratio is the better one. The first ratios contain start-up; the
warm ones are those of all but the first third of the cases, when the engine has loaded and compiled most of what it needs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.results_at_scale import earlier_tree
from conformance.suite import discovery

ROOT = Path(__file__).parents[1]


_WARM_AFTER = 1 / 3
"""Of the cases of a run."""


@dataclass(frozen=True)
class Cost:
    """Of one run, or of the end of it."""

    wall: float
    """Seconds."""
    cpu: float
    """Seconds."""
    batches: int


@dataclass(frozen=True)
class Run:
    """What one run cost."""

    whole: Cost
    warm: Cost


@dataclass(frozen=True)
class Sample:
    """A run at one moment."""

    at: float
    """Seconds."""
    cpu: float
    """Seconds since its start."""
    answered: frozenset[str]
    """The ids of cases."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision")
    parser.add_argument("--spark", default="3.5.9")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--side-by-side", default="4")
    parser.add_argument("cases", nargs="*", default=["cases/window-eviction"])
    options = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as name:
        earlier = earlier_tree(options.revision, Path(name))
        # Leave out what is no longer a valid case.
        read = discovery.load([earlier / case for case in options.cases])
        files = {case.path for case in read.cases} - {problem.path for problem in read.problems}
        arguments = [*sorted(map(str, files)), "--spark", options.spark, "--fresh"]
        arguments += ["--jobs", "1", "--side-by-side", options.side_by_side]
        runs: dict[Path, list[Run]] = {earlier: [], ROOT: []}
        for _ in range(options.rounds):
            for checkout, measured in runs.items():
                measured.append(_run(checkout, arguments))
    print(f"{runs[ROOT][0].whole.batches} micro-batches in each run")
    for part in ("whole", "warm"):
        costs = [[getattr(run, part) for run in measured] for measured in runs.values()]
        for label, measured in zip((options.revision, "this"), costs, strict=True):
            print(
                f"{part:6}{label:10}" + "".join(f"  wall {one.wall:6.1f} s, CPU {one.cpu:6.1f} s" for one in measured)
            )
        for kind in ("wall", "cpu"):
            before, after = (_per_batch(measured, kind) for measured in costs)
            print(f"{part}: {kind} per micro-batch {after:.0f} ms, {after / before:.2f} of {before:.0f} ms")


def _per_batch(costs: list[Cost], kind: str) -> float:
    """Milliseconds."""
    return 1000 * sum(getattr(one, kind) for one in costs) / sum(one.batches for one in costs)


def _run(checkout: Path, arguments: list[str]) -> Run:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environ = {**os.environ, "PYTHONPATH": str(checkout), "CONFORMANCE_ANSWERS": str(folder / "answers.sqlite")}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-m", "conformance.cli.main", "run", *arguments]
        progress = folder / "progress"
        samples: list[Sample] = []
        with (
            progress.open("wb") as written,
            subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.DEVNULL, stderr=written) as process,
        ):
            for seconds in _cpu_until_end(process):
                samples.append(Sample(time.monotonic(), seconds, _answered(progress)))
        batches = {}
        for line in (folder / "results.jsonl").read_text().splitlines():
            batches[json.loads(line).get("case")] = line.count('"next_watermark"')
        answered = _answered(progress)
    first, last = samples[0], samples[-1]
    warm = next(sample for sample in samples if len(sample.answered) >= len(answered) * _WARM_AFTER)
    later = sum(batches[case] for case in answered - warm.answered)
    return Run(
        Cost(last.at - first.at, last.cpu, sum(batches.values())),
        Cost(last.at - warm.at, last.cpu - warm.cpu, later),
    )


def _answered(progress: Path) -> frozenset[str]:
    """The cases whose line is among what a run has printed: ``[ 12/86] spark-3.5.9 ● conforms FAMILY/CASE 0.9 s``."""
    return frozenset(re.findall(r"^\[ *\d+/\d+\].* (\S+/\S+) +[\d.]+ s", progress.read_text(), re.MULTILINE))


def _cpu_until_end(process: subprocess.Popen[bytes]) -> Iterator[float]:
    """CPU seconds of a process and of all it starts, until it ends; the sum that the system keeps leaves killed engines out."""
    seconds: dict[int, float] = {}
    top = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            for one in (top, *top.children(recursive=True)):
                times = one.cpu_times()
                seconds[one.pid] = times.user + times.system
        except psutil.Error:  # one of them has just ended
            pass
        yield sum(seconds.values())
        time.sleep(0.1)


if __name__ == "__main__":
    main()
