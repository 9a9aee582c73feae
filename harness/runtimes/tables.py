"""Table formats for the engines of a run: which package each Spark needs, and what is told where none is loaded. Delta Lake and Iceberg."""

from __future__ import annotations

import re

from conformance.core.case import TABLE_FORMATS, TableFormat
from conformance.core.versions import SparkVersion
from harness.runtimes.line_packages import LinePackage, entries

_NO_SOURCE = re.compile(r"Failed to find (?:the )?data source: (\w+)", re.IGNORECASE)


def package_of(format: TableFormat) -> LinePackage:
    return LinePackage.of(entries("tables.yaml")[format], "tables_jars.sha256")


def how_to_load(message: str, version: SparkVersion) -> str | None:
    """The option that loads what an error of Spark does not find, the package of a data source; None if that is not what it says."""
    lacking = _NO_SOURCE.search(message)
    if lacking is None:
        return None
    source = lacking[1].lower()
    if source not in TABLE_FORMATS:
        return f"no package of {source} is loaded: add --package '{version.line}=GROUP:ARTIFACT:VERSION'"
    package = package_of(source)
    if version.line not in package.lines:
        return package.lacking(version)
    coordinate = package.coordinate(version, "2.13" if version.major > 3 else "2.12")  # of pyspark on PyPI
    add = f"--package {version.line}={coordinate}"
    return f"no package of {package.name} is loaded: add {add}, and its settings with --conf ({package.source})"
