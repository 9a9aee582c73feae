"""How much of a run is the engine's own work, and how much is ours.

``python benchmarks/harness_share.py [--spark 3.5] [--side-by-side 4] [CASES …]``: runs cases in one engine and prints, from that one
run, the micro-batches per second, and the harness's share of the wall time: when no micro-batch of any query was being worked on, by
the engine's own clock. Starting the JVM is told apart.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from micro_batches import covered, intervals
from watching import Watching

from conformance.suite import discovery
from harness.runtimes.local import LocalRuntime
from harness.scheduling.budget import Machine, budget
from harness.scheduling.cell_run import CellTask, Limits
from harness.scheduling.scheduler import Scheduler
from harness.targets.targets import Targets

SUITE = Path(__file__).parents[1] / "cases"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spark", default="3.5")
    parser.add_argument("--side-by-side", type=int)
    parser.add_argument("cases", nargs="*", type=Path, default=[SUITE / "late-drops", SUITE / "window-eviction"])
    options = parser.parse_args()
    (target,) = Targets.load().select([options.spark])
    cases = tuple(case for case in discovery.load(options.cases).cases if case.applies_to(target.version))
    shared = budget(Machine.here(), 1, side_by_side=options.side_by_side)
    watching = Watching()
    with tempfile.TemporaryDirectory() as root:
        began = time.time()
        limits = Limits(jobs=1, step_timeout=120, side_by_side=shared.side_by_side)
        Scheduler(LocalRuntime(Path(root)), limits, watching).run([CellTask(case, (target,)) for case in cases])
        ended = time.time()
    work = sorted(interval for run in watching.runs for interval in intervals(run.observations[0]))
    wall, busy = ended - watching.ready_at, covered(work, watching.ready_at, ended)
    print(f"target                   {target.name}, {len(cases)} cases, {shared.side_by_side} side by side")
    print(f"engine start             {watching.ready_at - began:.1f} s (not counted)")
    print(f"wall                     {wall:.2f} s, the engine's end included")
    print(f"micro-batches            {len(work)}, {len(work) / wall:.1f} per second")
    print(f"engine triggerExecution  {sum(end - start for start, end in work):.2f} s, all queries together")
    print(f"some micro-batch runs    {busy:.2f} s")
    print(f"harness share of wall    {1 - busy / wall:.1%}")


if __name__ == "__main__":
    main()
