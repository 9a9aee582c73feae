"""Spark's own harness for tests of streaming queries, ``StreamTest``, from the test jars of a release on Maven Central."""

from __future__ import annotations

import os
import re
import subprocess
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from conformance.core.versions import SparkVersion
from harness.environments.cache_directory import cache_dir
from harness.environments.environment import Environment
from harness.environments.jars import CENTRAL, Coordinate, fetch_with_dependencies
from harness.progress import ignore_progress
from harness.targets.targets import Target

_TEST_JARS = ("spark-sql", "spark-catalyst", "spark-core")
_OPENED = ("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util")
_OPENED += ("java.util.concurrent", "java.util.concurrent.atomic", "sun.nio.ch", "sun.nio.cs", "sun.security.action")
_OPENED += ("sun.util.calendar",)
"""As Spark's build opens them to its tests."""


def jar_of_tests(artifact: str, version: SparkVersion) -> Path:
    """One artifact's tests, ``spark-sql_2.13``, with the files that they read."""
    name = f"{artifact}-{version}-tests.jar"
    path = cache_dir() / "jars" / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        urllib.request.urlretrieve(f"{CENTRAL}/org/apache/spark/{artifact}/{version}/{name}", part)
        part.replace(path)
    return path


def jars_of_tests(target: Target, environment: Environment) -> list[Path]:
    """Spark's tests and what they need beside Spark."""
    scala = re.search(r"spark-sql_(2\.1\d)-", " ".join(map(str, (environment.spark_home / "jars").iterdir())))
    assert scala is not None
    found = [jar_of_tests(f"{artifact}_{scala[1]}", target.version) for artifact in _TEST_JARS]
    wanted = Coordinate("org.scalatest", f"scalatest_{scala[1]}", "3.2.16")
    return [
        *found,
        *fetch_with_dependencies(
            wanted, f"scalatest_{scala[1]}-3.2.16", environment, shipped=True, on_progress=ignore_progress
        ),
    ]


def scala_compiler(environment: Environment, jars: Sequence[Path] = ()) -> list[str]:
    """The command of the compiler that Spark ships for its shell. ``jars``: on the class path of the source, beside Spark's."""
    of_spark = f"{environment.spark_home}/jars/*"
    java = str(environment.java_home / "bin" / "java")
    return [java, "-cp", of_spark, "scala.tools.nsc.Main", "-classpath", ":".join([*map(str, jars), of_spark])]


def compile_suites(sources: Sequence[Path], environment: Environment, jars: Sequence[Path], into: Path) -> None:
    """Compile Scala into a new folder of classes."""
    into.mkdir()
    command = [*scala_compiler(environment, jars), "-d", str(into), *map(str, sources)]
    subprocess.run(command, check=True, env=environment.environ())


def run_suites(
    suites: Sequence[str],
    environment: Environment,
    class_path: Sequence[Path],
    folder: Path,
    options: Sequence[str] = (),
) -> str:
    """Run suites of the package ``org.apache.spark.sql.streaming``; return what ScalaTest prints.

    ``class_path``: beside Spark's own; the first has the suites. ``options``: of the JVM.
    """
    command = [str(environment.java_home / "bin" / "java"), "-Xmx2g", "-Dspark.testing=true"]
    command += [f"-Djava.io.tmpdir={folder}", "-XX:+IgnoreUnrecognizedVMOptions", *options]
    command += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
    command += ["-cp", ":".join([*map(str, class_path), f"{environment.spark_home}/jars/*"])]
    command += ["org.scalatest.tools.Runner", "-R", str(class_path[0]), "-oW"]
    command += [part for suite in suites for part in ("-s", f"org.apache.spark.sql.streaming.{suite}")]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment.environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout
