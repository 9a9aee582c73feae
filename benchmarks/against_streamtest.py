"""This suite against Spark's own harness for such tests, StreamTest: the wall time of a micro-batch, both in one go, by turns.

``python benchmarks/against_streamtest.py [--spark 3.5.9] [--rounds 2] [--side-by-side 4] [CASES…]``

StreamTest runs Spark's own suites of watermarks, deduplication and joins from the test jars of the release on Maven Central, in the
environment's Java: as they are, and with the suite's settings. Both sides count the micro-batches that Spark reports to have run, and
include their start. The first run needs a network.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.environments.environment import Environment
from harness.environments.provision import prepare
from harness.targets.targets import Target, Targets, tuning
from tests.engine.stream_tests import jars_of_tests, run_suites

ROOT = Path(__file__).parents[1]
CASES = [ROOT / "cases" / family for family in ("late-drops", "window-eviction", "deduplication")]
SUITES = ("EventTimeWatermarkSuite", "StreamingDeduplicationSuite", "StreamingInnerJoinSuite")
_LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %m%n
logger.progress.name = org.apache.spark.sql.execution.streaming
logger.progress.level = info
"""
"""Spark logs the progress of each micro-batch as JSON."""


@dataclass(frozen=True)
class Cost:
    """Of one run."""

    seconds: float
    """Wall time."""
    batches: int
    tests: int

    @property
    def milliseconds(self) -> float:
        """Per micro-batch."""
        return 1000 * self.seconds / max(self.batches, 1)

    def __str__(self) -> str:
        return (
            f"{self.seconds:6.1f} s, {self.tests} tests, {self.batches} micro-batches, {self.milliseconds:5.0f} ms each"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spark", default="3.5.9")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--side-by-side", type=int, action="append", help="how many cases at once; may be given several times"
    )
    parser.add_argument("cases", nargs="*", type=Path, default=CASES)
    options = parser.parse_intermixed_args()
    widths = options.side_by_side or [1, 4]
    (target,) = Targets.load().select([options.spark])
    environment = prepare(target)
    jars = jars_of_tests(target, environment)
    theirs: dict[str, list[Cost]] = {"StreamTest": [], "StreamTest, our settings": []}
    ours: dict[str, list[Cost]] = {f"ours, {width} at a time": [] for width in widths}
    for _ in range(options.rounds):
        for name, costs in theirs.items():
            costs.append(_stream_test(target, environment, jars, ours="our" in name))
            print(f"{name:26} {costs[-1]}", flush=True)
        for (name, costs), width in zip(ours.items(), widths, strict=True):
            costs.append(_ours(target, options.cases, width))
            print(f"{name:26} {costs[-1]}", flush=True)
    for name, costs in ours.items():
        for other, others in theirs.items():
            ratio = sum(one.milliseconds for one in costs) / sum(one.milliseconds for one in others)
            print(f"{name}: {ratio:.2f} of the wall time of a micro-batch of {other}")


def _stream_test(target: Target, environment: Environment, jars: Sequence[Path], *, ours: bool) -> Cost:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "log4j2.properties").write_text(_LOGGING.format(log=folder / "log"))
        options = [f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"]
        if ours:
            settings = tuning(target.version)
            options += settings.get("spark.driver.extraJavaOptions", "").split()
            options += [f"-D{key}={value}" for key, value in settings.items() if not key.endswith("extraJavaOptions")]
        began = time.monotonic()
        said = run_suites(SUITES, environment, jars, folder, options)
        seconds = time.monotonic() - began
        tests = re.search(r"Tests: succeeded (\d+)", said)
        if tests is None:
            sys.exit(f"Spark's tests did not run:\n{said[-3000:]}")
        # One progress a micro-batch; one that did nothing has no time of addBatch.
        ran = re.findall(
            r'"runId" : "(\S+)",.*?"batchId" : (\d+),.*?"durationMs" : \{(.*?)\}',
            (folder / "log").read_text(),
            re.DOTALL,
        )
        return Cost(seconds, len({(run, batch) for run, batch, parts in ran if "addBatch" in parts}), int(tests[1]))


def _ours(target: Target, cases: Sequence[Path], width: int) -> Cost:
    with tempfile.TemporaryDirectory() as name:
        results = Path(name) / "results.jsonl"
        command = [
            sys.executable,
            "-m",
            "conformance",
            "run",
            *map(str, cases),
            "--spark",
            str(target.version),
            "--fresh",
        ]
        command += ["--jobs", "1", "--side-by-side", str(width), "--output", str(results)]
        began = time.monotonic()
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seconds = time.monotonic() - began
        lines = [line for line in results.read_text().splitlines() if json.loads(line)["record"] == "cell"]
        return Cost(seconds, sum(line.count('"next_watermark"') for line in lines), len(lines))


if __name__ == "__main__":
    main()
