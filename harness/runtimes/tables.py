"""Table formats for the engines of a run: which package each Spark needs, and the settings of the session. Delta Lake and Iceberg."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from conformance.core.case import TABLE_FORMATS, TableFormat
from conformance.core.data import read_data
from conformance.core.versions import SparkVersion
from harness.environments.environment import Environment
from harness.environments.jars import Coordinate, fetch_with_dependencies, known_jars, not_shipped
from harness.errors import HarnessError
from harness.progress import ProgressCallback
from harness.runtimes.own_code import LOCAL_JARS, with_jars

_EXTENSIONS = "spark.sql.extensions"
_LISTS = (LOCAL_JARS, _EXTENSIONS)


@dataclass(frozen=True)
class TableAccess:
    """What an engine needs to read tables."""

    settings: Mapping[str, str]
    """What the engine is started with."""
    description: str
    """The packages with their versions."""


def package_lacking(format: TableFormat, version: SparkVersion) -> str | None:
    """Why a Spark reads no tables of a format; None if there is a package for it."""
    entry = _entry(format)
    first = entry.get("since", {}).get(version.line)
    if first is not None and version < SparkVersion.parse(first):
        return f"the package of {entry['name']} for Spark {version.line} runs from {first} on: choose a newer one"
    if version.line in entry["lines"]:
        return None
    lines = ", ".join(entry["lines"])
    return f"{entry['name']} has no package for Spark {version.line}: choose one of {lines} ({entry['source']})"


_NO_SOURCE = re.compile(r"Failed to find (?:the )?data source: (\w+)", re.IGNORECASE)


def how_to_load(message: str, version: SparkVersion) -> str | None:
    """The option that loads what an error of Spark does not find, the package of a data source; None if that is not what it says."""
    found = _NO_SOURCE.search(message)
    if found is None:
        return None
    source = found[1].lower()
    if source not in TABLE_FORMATS:
        return f"no package of {source} is loaded: add --package '{version.line}=GROUP:ARTIFACT:VERSION'"
    entry = _formats()[source]
    if version.line not in entry["lines"]:
        return package_lacking(source, version)
    group, artifact, released = entry["lines"][version.line].split(":")
    scala = "2.13" if version.major > 3 else "2.12"  # of pyspark on PyPI
    package = f"{version.line}={group}:{artifact}_{scala}:{released}"
    return f"no package of {entry['name']} is loaded: add --package {package}, and its settings with --conf ({entry['source']})"


def table_access(
    formats: Sequence[TableFormat],
    version: SparkVersion,
    environment: Environment,
    given: Mapping[str, str],
    on_progress: ProgressCallback,
) -> TableAccess:
    """The packages of formats for an engine, fetched if they are not in the cache.

    Args:
        formats: each has a package for this version.
        version: of its Spark.
        environment: of the engine.
        given: the settings that it has without tables; the user's own jars and extensions stay.
        on_progress: is told what takes long.

    Raises:
        HarnessError: no package fits this Spark, or its version of Scala is unknown.
        JarsNotFetched: a jar cannot be fetched, or is another than the known one.
    """
    settings: dict[str, str] = {}
    packages = []
    known = known_jars("harness.runtimes", "tables_jars.sha256")
    for format in formats:
        if (why := package_lacking(format, version)) is not None:
            raise HarnessError(why)
        entry = _entry(format)
        group, artifact, released = entry["lines"][version.line].split(":")
        package = Coordinate(group, f"{artifact}_{environment.scala()}", released)
        name = f"{package.artifact}-{released}"
        jars = fetch_with_dependencies(package, name, environment, known=known, shipped=True, on_progress=on_progress)
        if f"{name}.jar" not in known:
            on_progress(f"no sha256 of {name}.jar is known to this suite: it is used as Maven sends it")
        added = {LOCAL_JARS: ",".join(map(str, not_shipped(jars, environment))), **entry["conf"]}
        for key, value in added.items():
            before = settings.get(key, given.get(key, ""))
            settings[key] = with_jars(before, value.split(",")) if key in _LISTS else value
        packages.append(f"{package.artifact} {released}")
    return TableAccess(settings, ", ".join(packages))


def _entry(format: TableFormat) -> Mapping[str, Any]:
    entry: Mapping[str, Any] = _formats()[format]
    return entry


@cache
def _formats() -> Mapping[str, Any]:
    formats: Mapping[str, Any] = read_data("harness.runtimes", "tables.yaml")
    return formats
