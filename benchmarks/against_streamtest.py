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
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.environments.cache_directory import cache_dir
from harness.environments.environment import Environment
from harness.environments.jars import Coordinate, fetch_with_dependencies
from harness.environments.provision import prepare
from harness.progress import ignore_progress
from harness.targets.targets import Target, Targets, tuning

ROOT = Path(__file__).parents[1]
CASES = [ROOT / "cases" / family for family in ("late-drops", "window-eviction", "deduplication")]
SUITES = ("EventTimeWatermarkSuite", "StreamingDeduplicationSuite", "StreamingInnerJoinSuite")
CENTRAL = "https://repo1.maven.org/maven2/org/apache/spark"
_TEST_JARS = ("spark-sql", "spark-catalyst", "spark-core")
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
    jars = _jars(target, environment)
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


def _jars(target: Target, environment: Environment) -> list[Path]:
    """Spark's tests and what they need beside Spark."""
    scala = re.search(r"spark-sql_(2\.1\d)-", " ".join(map(str, (environment.spark_home / "jars").iterdir())))
    assert scala is not None
    found = []
    for artifact in _TEST_JARS:
        name = f"{artifact}_{scala[1]}-{target.version}-tests.jar"
        path = cache_dir() / "jars" / name
        if not path.exists():
            part = path.with_suffix(".part")
            urllib.request.urlretrieve(f"{CENTRAL}/{artifact}_{scala[1]}/{target.version}/{name}", part)
            part.replace(path)
        found.append(path)
    wanted = Coordinate("org.scalatest", f"scalatest_{scala[1]}", "3.2.16")
    return [
        *found,
        *fetch_with_dependencies(
            wanted, f"scalatest_{scala[1]}-3.2.16", environment, shipped=True, on_progress=ignore_progress
        ),
    ]


def _stream_test(target: Target, environment: Environment, jars: Sequence[Path], *, ours: bool) -> Cost:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "log4j2.properties").write_text(_LOGGING.format(log=folder / "log"))
        command = [
            str(environment.java_home / "bin" / "java"),
            "-Xmx2g",
            "-Dspark.testing=true",
            f"-Djava.io.tmpdir={folder}",
        ]
        command += [f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}", "-XX:+IgnoreUnrecognizedVMOptions"]
        command += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
        if ours:
            settings = tuning(target.version)
            command += settings.get("spark.driver.extraJavaOptions", "").split()
            command += [f"-D{key}={value}" for key, value in settings.items() if not key.endswith("extraJavaOptions")]
        command += [
            "-cp",
            ":".join([*map(str, jars), f"{environment.spark_home}/jars/*"]),
            "org.scalatest.tools.Runner",
        ]
        command += ["-R", str(jars[0]), "-oW"]
        command += [part for suite in SUITES for part in ("-s", f"org.apache.spark.sql.streaming.{suite}")]
        began = time.monotonic()
        done = subprocess.run(
            command, cwd=folder, env=environment.environ(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        seconds = time.monotonic() - began
        tests = re.search(r"Tests: succeeded (\d+)", done.stdout)
        if tests is None:
            sys.exit(f"Spark's tests did not run:\n{done.stdout[-3000:]}")
        # One progress a micro-batch; one that did nothing has no time of addBatch.
        ran = re.findall(
            r'"runId" : "(\S+)",.*?"batchId" : (\d+),.*?"durationMs" : \{(.*?)\}',
            (folder / "log").read_text(),
            re.DOTALL,
        )
        return Cost(seconds, len({(run, batch) for run, batch, parts in ran if "addBatch" in parts}), int(tests[1]))


_OPENED = ("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util")
_OPENED += ("java.util.concurrent", "java.util.concurrent.atomic", "sun.nio.ch", "sun.nio.cs", "sun.security.action")
_OPENED += ("sun.util.calendar",)
"""As Spark's build opens them to its tests."""


def _ours(target: Target, cases: Sequence[Path], width: int) -> Cost:
    with tempfile.TemporaryDirectory() as name:
        results = Path(name) / "results.jsonl"
        command = [
            sys.executable,
            "-m",
            "conformance.cli.main",
            "run",
            *map(str, cases),
            "--spark",
            str(target.version),
        ]
        command += ["--fresh", "--jobs", "1", "--side-by-side", str(width), "--output", str(results)]
        began = time.monotonic()
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seconds = time.monotonic() - began
        lines = [line for line in results.read_text().splitlines() if json.loads(line)["record"] == "cell"]
        return Cost(seconds, sum(line.count('"next_watermark"') for line in lines), len(lines))


if __name__ == "__main__":
    main()
