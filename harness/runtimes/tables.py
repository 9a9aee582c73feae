"""Table formats for the engines of a run, Delta Lake and Iceberg: which package each Spark needs."""

from __future__ import annotations

from conformance.core.case import TableFormat
from harness.runtimes.line_packages import LinePackage, entries


def package_of(format: TableFormat) -> LinePackage:
    return LinePackage.of(entries("tables.yaml")[format], "tables_jars.sha256")
