"""What a class archive gains: an engine's start and its first case, with and without it, by turns.

``python benchmarks/class_archive.py [--spark 3.5] [--rounds 3] [CASE]``: answers must be the same. The archive is made first if the
environment has none. CPU time is that of the engine's processes; on a busy machine its ratio is the better one.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import psutil

from conformance.core.case import Case
from conformance.suite import discovery
from harness.engine.driver_engine import BATCHES_BEFORE_FINISH, DriverEngine
from harness.engine.request import request_for
from harness.environments.class_archive import ClassArchive
from harness.environments.provision import prepare
from harness.progress import ignore_progress
from harness.runtimes.local import LocalRuntime
from harness.targets.targets import Target, Targets, tuning

CASE = Path(__file__).parents[1] / "cases" / "window-eviction" / "window-stays-while-its-end-is-ahead.yaml"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spark", default="3.5")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("case", nargs="?", type=Path, default=CASE)
    options = parser.parse_args()
    (target,) = Targets.load().select([options.spark])
    case = discovery.load([options.case]).cases[0]
    # Java options that somebody sets replace the suite's, archive included.
    without = {JAVA_OPTIONS: tuning(target.version)[JAVA_OPTIONS]}
    _make_archive(target, case)
    measured: dict[str, list[tuple[float, float, float]]] = {"without": [], "with": []}
    answers = set()
    for _ in range(options.rounds):
        for name, taken in measured.items():
            seconds, digest = _measured(target, case, without if name == "without" else {})
            taken.append(seconds)
            answers.add(digest)
    print(f"{target}, {case.id}: start, start and first case, CPU time of both")
    for name, taken in measured.items():
        print(f"{name:8}" + "".join(f"  {start:5.1f} {both:5.1f} {cpu:5.1f} s" for start, both, cpu in taken))
    ratios = [sum(one[at] for one in measured["without"]) / sum(one[at] for one in measured["with"]) for at in range(3)]
    print("ratio     " + " ".join(f"{ratio:5.2f}" for ratio in ratios))
    print(f"answers   {'the same' if len(answers) == 1 else 'DIFFERENT'}")


def _make_archive(target: Target, case: Case) -> None:
    archive = ClassArchive.of(prepare(target), tuning(target.version))
    if archive is None:
        raise SystemExit(f"the Java of {target.name} writes no class archive")
    while archive.file() is None:  # the first engine of an environment writes none
        with tempfile.TemporaryDirectory() as root:
            engine = _started(LocalRuntime(Path(root)), target)
            for _ in range(BATCHES_BEFORE_FINISH):
                engine.observe(request_for(case, engine.new_directory(case.id)), step_timeout=600)
            engine.close()


def _measured(target: Target, case: Case, conf: dict[str, str]) -> tuple[tuple[float, float, float], str]:
    with tempfile.TemporaryDirectory() as root:
        began = time.monotonic()
        engine = _started(LocalRuntime(Path(root), conf=conf), target)
        started = time.monotonic()
        seen = engine.observe(request_for(case, engine.new_directory(case.id)), step_timeout=600)
        ended = time.monotonic()
        cpu = _cpu_seconds(psutil.Process())
        engine.close()
    return (started - began, ended - began, cpu), seen.behaviour_digest


def _started(runtime: LocalRuntime, target: Target) -> DriverEngine:
    engine = runtime.start(target, on_progress=ignore_progress)
    assert isinstance(engine, DriverEngine)
    return engine


def _cpu_seconds(process: psutil.Process) -> float:
    """Of all descendants that are alive, and of theirs that have ended."""
    times = [child.cpu_times() for child in process.children(recursive=True)]
    return sum(one.user + one.system + one.children_user + one.children_system for one in times)


if __name__ == "__main__":
    main()
