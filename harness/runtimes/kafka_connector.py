"""Spark's connector for Kafka: which jars an engine of a version needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from conformance.core.versions import SparkVersion
from harness.environments.environment import Environment
from harness.environments.jars import Coordinate, JarsNotFetched, fetch_with_dependencies
from harness.errors import HarnessError
from harness.progress import ProgressCallback

_ARTIFACT = "spark-sql-kafka-0-10"
_LAST_PATCH = 9
"""No line of Spark has had a later patch."""
_JAR = re.compile(r"(?P<artifact>.+?)-(?P<version>\d[^/]*)\.jar")


class NoConnector(HarnessError):
    """A Spark has no connector for Kafka."""


@dataclass(frozen=True)
class Connector:
    """The connector for an engine."""

    version: str
    """Of Spark's own numbering; of an earlier release if there is none for the version itself."""
    jars: tuple[Path, ...]
    """Those that Spark does not ship."""

    def __str__(self) -> str:
        return f"{_ARTIFACT} {self.version}"


def connector(version: SparkVersion, environment: Environment, on_progress: ProgressCallback) -> Connector:
    """The connector for a Spark: that of its release or, where that has none, of the nearest one.

    Nearest are earlier patches of its line, then later ones, then earlier lines of the same major version.

    Raises:
        NoConnector: the repository has none, or the Spark does not say its version of Scala.
        JarsNotFetched: the repository cannot be reached.
    """
    scala = _scala(environment)
    artifact = f"{_ARTIFACT}_{scala}"
    for wanted in _nearest(version):
        try:
            found = fetch_with_dependencies(
                Coordinate("org.apache.spark", artifact, wanted),
                f"{artifact}-for-{version}",
                environment,
                shipped=True,
                on_progress=on_progress,
            )
        except JarsNotFetched as error:
            if error.unreachable:
                raise
            continue
        shipped = {_artifact(jar.name) for jar in (environment.spark_home / "jars").glob("*.jar")}
        jars = tuple(jar for jar in found if _artifact(jar.name) not in shipped)
        own = next(jar for jar in found if jar.name.startswith(f"{artifact}-"))
        return Connector(own.name.removeprefix(f"{artifact}-").removesuffix(".jar"), jars)
    raise NoConnector(
        f"Spark {version} has no connector for Kafka: Maven has no {artifact} of its line or an earlier one"
    )


def _nearest(version: SparkVersion) -> Iterator[str]:
    # One by one, because a release may be there while one that it needs is not.
    yield from (f"{version.line}.{patch}" for patch in range(version.patch, -1, -1))
    yield from (f"{version.line}.{patch}" for patch in range(version.patch + 1, _LAST_PATCH + 1))
    yield f"[{version.major}.0.0,{version}]"


def _scala(environment: Environment) -> str:
    for jar in (environment.spark_home / "jars").glob("spark-core_*.jar"):
        return jar.name.removeprefix("spark-core_").partition("-")[0]
    raise NoConnector(f"{environment.spark_home} has no spark-core among its jars, which tells the version of Scala")


def _artifact(name: str) -> str:
    found = _JAR.fullmatch(name)
    return found["artifact"] if found else name
