"""A real environment, from a real index: it is made, it holds what was asked for, and its Spark starts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness.environments import java as javas
from harness.environments import provision
from harness.environments.environment import Environment
from harness.targets.targets import Target, Targets
from tests.support.effort import full_run_only

_COUNT = """\
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
java = spark.sparkContext._jvm.java.lang.System.getProperty("java.version")
print(spark.version, java, spark.range(3).count())
"""


def _answer(environment: Environment) -> str:
    command = [str(environment.python), "-c", _COUNT]
    answer = subprocess.run(
        command, env=environment.environ(), capture_output=True, text=True, timeout=1800, check=False
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.splitlines()[-1]


def _target(line: str) -> Target:
    (target,) = Targets.load().select([line])
    return target


def _prepared(target: Target, cache: Path) -> Environment:
    environ = {**os.environ, "CONFORMANCE_CACHE": str(cache)}
    said: list[str] = []
    environment = provision.prepare(target, on_progress=said.append, environ=environ)
    assert said[-1] == "ready"
    assert environment.pyspark == str(target.version)
    assert environment.spark_home.is_relative_to(cache)
    assert provision.prepared(target, environ=environ) is not None
    return environment


@full_run_only
@pytest.mark.parametrize("line", ["3.0", "3.5", "newest"])
def test_on_a_machine_without_java_it_brings_its_own(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(javas, "_places", lambda _: iter(()))
    target = _target(line)
    environment = _prepared(target, tmp_path)
    assert environment.java_home.is_relative_to(tmp_path)
    assert _answer(environment) == f"{target.version} {environment.java_version} 3"
