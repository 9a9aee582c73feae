"""How much of a run is the engine's own work, and how much is ours.

``python benchmarks/harness_share.py [--spark 3.5] [CASES …]``: runs cases in one engine and prints, from that one run, the
micro-batches per second and the harness's share of the wall time: everything outside the engine's own ``triggerExecution``.
Starting the JVM is told apart; the first case is run once before, so that class loading is not counted as ours.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from conformance import suite
from conformance.observation import Observation
from harness.local import LocalRuntime
from harness.request import request_for
from harness.targets import Targets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spark", default="3.5")
    parser.add_argument("--tag", default="smoke")
    parser.add_argument("cases", nargs="*", type=Path)
    options = parser.parse_args()
    loaded = suite.load(options.cases or None)
    (target,) = Targets.load().select([options.spark])
    cases = [
        case for case in loaded.cases if (options.cases or options.tag in case.tags) and case.applies_to(target.version)
    ]
    with tempfile.TemporaryDirectory() as root:
        begun = time.monotonic()
        engine = LocalRuntime(Path(root)).start(target, say=print)
        started = time.monotonic()
        try:
            engine.observe(request_for(cases[0], engine.new_directory("warm-up")), step_timeout=120)
            warm = time.monotonic()
            seen = [
                engine.observe(request_for(case, engine.new_directory(case.id)), step_timeout=120) for case in cases
            ]
            wall = time.monotonic() - warm
        finally:
            engine.close()
    batches = [batch for observation in seen for batch in _batches(observation)]
    own = sum(duration for duration in batches) / 1000
    print(f"target                   {target.name}")
    print(f"cases                    {len(cases)}")
    print(f"micro-batches            {len(batches)}")
    print(f"engine start             {started - begun:.1f} s (not counted)")
    print(f"first case, cold         {warm - started:.1f} s (not counted)")
    print(f"wall                     {wall:.2f} s")
    print(f"engine triggerExecution  {own:.2f} s")
    print(f"micro-batches per second {len(batches) / wall:.2f}")
    print(f"harness share of wall    {1 - own / wall:.1%}")


def _batches(observation: Observation) -> list[int]:
    return [batch.duration_ms for step in observation.steps for batch in step.batches]


if __name__ == "__main__":
    main()
