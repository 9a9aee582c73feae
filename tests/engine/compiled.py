"""Jars of Java and Scala sources, for one Spark."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.environments.environment import Environment
from tests.engine.stream_tests import scala_compiler

needs_javac = pytest.mark.skipif(shutil.which("javac") is None, reason="there is no Java compiler")


def java_jar(jar: Path, environment: Environment) -> None:
    """Compile the Java sources beside a jar into it."""
    command = ["javac", "--release", "17", "-cp", f"{environment.spark_home}/jars/*"]
    _compiled(jar, [*command, *map(str, jar.parent.glob("*.java"))])


def scala_jar(jar: Path, environment: Environment, source: str = "Jobs.scala") -> None:
    """Compile a Scala source beside a jar into it."""
    _compiled(jar, [*scala_compiler(environment), str(jar.parent / source)])


def _compiled(jar: Path, command: list[str]) -> None:
    classes = jar.with_suffix("")
    classes.mkdir()
    subprocess.run([*command, "-d", str(classes)], check=True, env={"PATH": os.environ["PATH"]})
    Path(shutil.make_archive(str(classes), "zip", classes)).rename(jar)
