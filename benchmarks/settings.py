"""What Spark settings cost or gain once an engine is warm: engines with and without them run the same cases at the same time.

``python benchmarks/settings.py [--spark 3.5] [--share-warm 0.3] --with KEY=VALUE… [--with …] [CASES…]``: one engine has the suite's
settings, and one for each ``--with`` has others besides. All run a case together, so a busy machine slows them alike; each case runs
once. What is printed is the CPU time of an engine's processes per micro-batch after the first cases, which warm the engines up, and
whether the answers are the same. Without class archives, because Java options of somebody's own go without one.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from conformance.core.case import Case
from conformance.suite import discovery
from harness.engine.engine import Engine
from harness.engine.request import kills_its_engine, request_for
from harness.progress import ignore_progress
from harness.runtimes.local import LocalRuntime
from harness.targets.targets import Target, Targets, tuning

SUITE = Path(__file__).parents[1] / "cases"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"


@dataclass
class Measured:
    """An engine, and what it has done."""

    engine: Engine
    process: psutil.Process
    seconds_before: float = 0.0
    """CPU time until it was warm."""
    batches: int = 0
    answers: dict[str, str] = field(default_factory=dict)
    """Digests, by case."""

    def run(self, case: Case) -> None:
        seen = self.engine.observe(request_for(case, self.engine.new_directory(case.id)), step_timeout=600)
        self.answers[case.id] = seen.behaviour_digest
        self.batches += sum(len(step.batches) for step in seen.steps)

    def is_warm(self) -> None:
        self.seconds_before, self.batches = self.seconds(), 0

    def seconds(self) -> float:
        """CPU time of its processes that are alive, and of theirs that have ended."""
        times = [process.cpu_times() for process in (self.process, *self.process.children(recursive=True))]
        return sum(one.user + one.system + one.children_user + one.children_system for one in times)

    @property
    def per_batch(self) -> float:
        """Milliseconds of CPU time since it was warm."""
        return 1000 * (self.seconds() - self.seconds_before) / self.batches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spark", default="3.5")
    parser.add_argument("--share-warm", type=float, default=0.3)
    parser.add_argument("--with", dest="others", nargs="+", action="append", required=True)
    parser.add_argument("cases", nargs="*", type=Path, default=[SUITE / "late-drops", SUITE / "window-eviction"])
    options = parser.parse_intermixed_args()
    (target,) = Targets.load().select([options.spark])
    # Killed engines are not warm.
    cases = [case for case in discovery.load(options.cases).cases if case.applies_to(target.version)]
    cases = [case for case in cases if not kills_its_engine(case)]
    others: list[dict[str, str]] = [dict(one.split("=", 1) for one in other) for other in options.others]
    engines: list[Measured] = []
    with tempfile.TemporaryDirectory() as root, ThreadPoolExecutor() as together:
        try:
            for conf in ({}, *others):
                engines.append(_started(Path(root), target, conf))
            for number, case in enumerate(cases):
                if number == int(len(cases) * options.share_warm):
                    for engine in engines:
                        engine.is_warm()
                list(together.map(lambda engine, case=case: engine.run(case), engines))  # type: ignore[misc]
            costs = [engine.per_batch for engine in engines]
        finally:
            for engine in engines:
                engine.engine.kill()
    print(f"{target}, {len(cases)} cases, {engines[0].batches} micro-batches after the engines were warm")
    print(f"{costs[0]:6.1f} ms  {'1.00':>6}  the suite's settings")
    for engine, cost, conf in zip(engines[1:], costs[1:], others, strict=True):
        same = "the same answers" if engine.answers == engines[0].answers else "DIFFERENT answers"
        print(f"{cost:6.1f} ms  {cost / costs[0]:6.2f}  {same}, {' '.join('='.join(one) for one in conf.items())}")


def _started(root: Path, target: Target, conf: Mapping[str, str]) -> Measured:
    before = {child.pid for child in psutil.Process().children()}
    options = {JAVA_OPTIONS: tuning(target.version)[JAVA_OPTIONS]}
    engine = LocalRuntime(root, conf={**options, **conf}).start(target, on_progress=ignore_progress)
    (process,) = (child for child in psutil.Process().children() if child.pid not in before)
    return Measured(engine, process)


if __name__ == "__main__":
    main()
