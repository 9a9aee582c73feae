"""What containers cost: start-up of a target, and the wall time of some cases, in a container and on this machine, from one run.

``python benchmarks/containers.py [--spark 3.5] [CASES…]``; the environment and the image should be there already.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from conformance.suite import discovery
from harness.engine.engine import Runtime
from harness.engine.request import request_for
from harness.progress import ignore_progress
from harness.runtimes.options import RuntimeOptions, runtime
from harness.targets.targets import Targets

SUITE = Path(__file__).parents[1] / "cases"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", type=Path, default=[SUITE / "late-drops"])
    parser.add_argument("--spark", default="3.5")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    (target,) = Targets.load().select([options.spark])
    cases = [case for case in discovery.load(options.cases).cases if case.applies_to(target.version)]
    seconds: dict[str, list[tuple[float, float]]] = {"local": [], "container": []}
    for _ in range(options.rounds):
        # By turns, so that other load on the machine affects both.
        for name, measured in seconds.items():
            with tempfile.TemporaryDirectory() as root:
                engines: Runtime = runtime(RuntimeOptions(runtime=name), Path(root).resolve(), keep=False)
                try:
                    began = time.monotonic()
                    engine = engines.start(target, on_progress=ignore_progress)
                    started = time.monotonic()
                    for case in cases:
                        engine.observe(request_for(case, engine.new_directory(case.id)), step_timeout=120)
                    measured.append((started - began, time.monotonic() - started))
                    engine.close()
                finally:
                    engines.close()
    best = {name: tuple(min(one[part] for one in measured) for part in (0, 1)) for name, measured in seconds.items()}
    print(f"{target}, {len(cases)} cases, the best of {options.rounds} rounds, seconds")
    for part, what in enumerate(("start-up", "cases")):
        here, there = best["local"][part], best["container"][part]
        print(f"{what:<9} local {here:6.1f}   container {there:6.1f}   container/local {there / here:.2f}")


if __name__ == "__main__":
    main()
