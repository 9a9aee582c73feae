"""What running cases side by side in one engine gains: one at a time against several, by turns, from one go.

``python benchmarks/side_by_side.py [--spark 3.5] [--widths 1 2 4 8] [CASES…]``; answers must be the same at every width.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from watching import Watching

from conformance.suite import discovery
from harness.runtimes.local import LocalRuntime
from harness.scheduling.cell_run import CellTask, Limits
from harness.scheduling.scheduler import Scheduler
from harness.targets.targets import Targets

SUITE = Path(__file__).parents[1] / "cases"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spark", default="3.5")
    parser.add_argument("--widths", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("cases", nargs="*", type=Path, default=[SUITE / "window-eviction", SUITE / "output-modes"])
    options = parser.parse_args()
    (target,) = Targets.load().select([options.spark])
    cases = tuple(case for case in discovery.load(options.cases).cases if case.applies_to(target.version))
    seconds: dict[int, list[float]] = {width: [] for width in options.widths}
    answers: list[dict[str, str]] = []
    for _ in range(options.rounds):
        for width, measured in seconds.items():
            watching = Watching()
            with tempfile.TemporaryDirectory() as root:
                limits = Limits(jobs=1, step_timeout=120, side_by_side=width)
                Scheduler(LocalRuntime(Path(root)), limits, watching).run([CellTask(case, (target,)) for case in cases])
            measured.append(time.monotonic() - watching.ready)
            answers.append({run.case.id: run.failure or run.observations[0].behaviour_digest for run in watching.runs})
    best = {width: min(measured) for width, measured in seconds.items()}
    print(f"{target}, {len(cases)} cases, the best of {options.rounds} rounds, seconds without the engine's start")
    for width, taken in best.items():
        print(f"{width:2} side by side  {taken:6.1f}   ratio to the first {best[options.widths[0]] / taken:.2f}")
    print(f"answers {'the same' if all(one == answers[0] for one in answers) else 'DIFFERENT'} at every width")


if __name__ == "__main__":
    main()
