"""The suite's way of running cases against the way people run such tests today, both in one go.

``python benchmarks/todays_way.py [--spark 3.5] [--partitions 200] [CASES…]``

Today's way: pytest, a test a case, one session for all, Spark's own configuration, one after the other. Who knows Spark sets one
thing in such tests, the number of partitions of a shuffle, and so it is given the suite's one; ``--partitions 200`` is Spark's own.
Ours: ``conformance run`` with what this machine gives. Each case's answers must be the same both ways. The engines' start is part of
both times.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from conformance.suite import discovery
from harness.targets.targets import Targets
from reports.results.reading import Results

ROOT = Path(__file__).parents[1]
CASES = [ROOT / "cases" / "late-drops", ROOT / "cases" / "window-eviction", ROOT / "cases" / "output-modes"]

TODAY = """
import json, pathlib, tempfile
import pytest
from conformance.suite import discovery
from harness.runtimes.local import LocalRuntime
from harness.engine.request import request_for
from harness.progress import ignore_progress
from harness.targets.targets import Targets

PATHS, SPARK, SEEN, PARTITIONS = json.loads(pathlib.Path(__file__).with_name("wanted.json").read_text())
(TARGET,) = Targets.load().select([SPARK])
CASES = [case for case in discovery.load(map(pathlib.Path, PATHS)).cases if case.applies_to(TARGET.version)]


@pytest.fixture(scope="session")
def engine(tmp_path_factory):
    engine = LocalRuntime(
        tmp_path_factory.mktemp("engine"), plain=True, conf={"spark.sql.shuffle.partitions": PARTITIONS}
    ).start(TARGET, on_progress=ignore_progress)
    yield engine
    engine.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case, engine):
    seen = engine.observe(request_for(case, engine.new_directory(case.id)), step_timeout=120)
    with open(SEEN, "a") as file:
        file.write(json.dumps([case.id, seen.behaviour_digest]) + "\\n")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spark", default="3.5")
    parser.add_argument("--partitions", default="1")
    parser.add_argument("cases", nargs="*", type=Path, default=CASES)
    options = parser.parse_args()
    (target,) = Targets.load().select([options.spark])
    given = discovery.load(options.cases).cases
    # Topics and tables need a broker and packages, which today's way does not have.
    running = [case for case in given if case.applies_to(target.version) and not case.topics and not case.table_formats]
    paths, applying = sorted({str(case.path) for case in running}), [case.id for case in running]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seen = folder / "seen.jsonl"
        (folder / "test_today.py").write_text(TODAY)
        (folder / "wanted.json").write_text(json.dumps([paths, options.spark, str(seen), options.partitions]))
        today = _seconds([sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "test_today.py"], folder)
        before = dict(json.loads(line) for line in seen.read_text().splitlines())
        run = ["-m", "conformance", "run", *paths, "--spark", options.spark, "--fresh", "--output", "ours.jsonl"]
        ours = _seconds([sys.executable, *run], folder)
        cells = Results.read(folder / "ours.jsonl").cells
        after = {cell.case: cell.observation.behaviour_digest for cell in cells if cell.observation is not None}
    differing = sorted(id for id in applying if before.get(id) != after.get(id))
    print(f"{target}, {len(applying)} cases")
    print(f"today's way  {today:6.1f} s")
    print(f"ours         {ours:6.1f} s")
    print(f"answers      {len(applying) - len(differing)} the same, {len(differing)} different {' '.join(differing)}")
    print(f"ratio        {today / ours:.2f}")


def _seconds(command: list[str], folder: Path) -> float:
    began = time.monotonic()
    subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


if __name__ == "__main__":
    main()
