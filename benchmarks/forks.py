"""How many processes an engine starts in a micro-batch, with Spark's own settings and with the suite's.

``python benchmarks/forks.py [--spark 3.5] [CASES…]``: the programs that Hadoop starts where it lacks its native library are put before
the real ones on the PATH, and each leaves a line when it is started.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path

from watching import Watching

from conformance.suite import discovery
from harness.runtimes.local import LocalRuntime
from harness.scheduling.cell_run import CellTask, Limits
from harness.scheduling.scheduler import Scheduler
from harness.targets.targets import Targets

SUITE = Path(__file__).parents[1] / "cases"
PROGRAMS = ("bash", "chmod", "chown", "groups", "id", "ln", "ls", "readlink", "stat", "winutils")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spark", default="3.5")
    parser.add_argument("cases", nargs="*", type=Path, default=[SUITE / "window-eviction"])
    options = parser.parse_args()
    (target,) = Targets.load().select([options.spark])
    cases = tuple(case for case in discovery.load(options.cases).cases if case.applies_to(target.version))
    per_batch = {}
    for name, plain in (("Spark's own settings", True), ("the suite's", False)):
        with tempfile.TemporaryDirectory() as root:
            folder = Path(root)
            started = folder / "started"
            _put_before(folder / "bin", started)
            path = os.environ["PATH"]
            os.environ["PATH"] = f"{folder / 'bin'}{os.pathsep}{path}"
            watching = Watching()
            try:
                engines = LocalRuntime(folder, plain=plain)
                Scheduler(engines, Limits(jobs=1, step_timeout=120), watching).run(
                    [CellTask(case, (target,)) for case in cases]
                )
            finally:
                os.environ["PATH"] = path
            counted = Counter(started.read_text().split())
        batches = sum(len(step.batches) for run in watching.runs for one in run.observations for step in one.steps)
        per_batch[name] = counted.total() / batches
        each = ", ".join(f"{number} {program}" for program, number in counted.most_common())
        print(f"{name:<21} {per_batch[name]:6.1f} a micro-batch   ({batches} micro-batches: {each})")
    own, ours = per_batch.values()
    print(f"ratio                 {own / ours:6.1f}")


def _put_before(folder: Path, started: Path) -> None:
    folder.mkdir()
    for program in PROGRAMS:
        if real := shutil.which(program):
            (folder / program).write_text(f'#!/bin/sh\necho {program} >> "{started}"\nexec {real} "$@"\n')
            (folder / program).chmod(0o755)


if __name__ == "__main__":
    main()
