"""What a job misses, by the error of Python, Java or Spark that says so, and the option that gives it."""

import re
from collections.abc import Mapping

from conformance.core.case import TABLE_FORMATS, TableFormat
from conformance.core.observation import OwnCodeError
from conformance.core.versions import SparkVersion
from harness.runtimes.line_packages import entries, package_of

_SOURCE = re.compile(r"Failed to find (?:the )?data source: ([\w.-]+)", re.IGNORECASE)
_CLASS = re.compile(r"(?:ClassNotFoundException|NoClassDefFoundError): ([\w./$]+)")
_MODULE = re.compile(r"No module named '([\w.]+)'|(Pandas|PyArrow) >= \S+ must be installed; however, it was not found")
_NAME = re.compile(r"name '(\w+)' is not defined")
_IN_THE_JVM = re.compile(r"_jvm\.([\w.]+)")
_OF_SQL = re.compile(r"\b(?:from|to|schema_of)_(avro|protobuf)\b")
_VARIABLE = re.compile(r"KeyError\(?'(\w+)'")
_UNREAD = re.compile(
    r"TABLE_OR_VIEW_NOT_FOUND|Table or view not found|PATH_NOT_FOUND|Path does not exist|No FileSystem for scheme|FileSystem not found"
    r"|requires a single-part namespace|CATALOG_NOT_FOUND"
)
_METADATA = re.compile(r"(?:with name|[Cc]annot resolve|Column) ['`]_metadata\b")
_OF_A_NOTEBOOK = ("spark", "sc", "sqlContext", "dbutils", "display", "displayHTML", "mssparkutils", "notebookutils")
_REFUSED = re.compile(r"""(?:NotGiven|NotInATrial)\((["'])(.*)\1\)""", re.DOTALL)
"""What the driver refuses in the name of a platform, as Python shows its exception."""
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PIPELINE = (
    "a declarative pipeline is tried by its file, whose flows are queries: conformance check FILE.py, not FILE:FUNCTION"
)


def how_to_mend(message: str, version: SparkVersion, traceback: str = "") -> str | None:
    """What is missing and the option that gives it; None if that is not what an error says. ``traceback``: with the author's lines."""
    if "OUTSIDE_OF_DECLARATIVE_PIPELINE" in message or "cannot import name 'pipelines' from 'pyspark'" in message:
        return _PIPELINE
    if "relative import with no known parent package" in message:
        return "a program with relative imports is a module of its package: name it package.module, not FILE, as python -m does"
    if module := _MODULE.search(message):
        return _module(module[1] or module[2].lower(), version)
    if name := _NAME.search(message):
        return _name(name[1])
    if source := _SOURCE.search(message):
        return _source(source[1].rstrip(".").lower(), version)
    if java := _CLASS.search(message):
        return _class(java[1].replace("/", "."), version)
    if "'JavaPackage' object is not callable" in message:
        called = _IN_THE_JVM.findall(traceback) + [
            "org.apache.spark.sql." + name for name in _OF_SQL.findall(traceback)
        ]
        return _class(called[-1] if called else "", version)
    if (variable := _VARIABLE.match(message)) and "environ" in traceback:
        return f"the environment variable {variable[1]} is not set in an engine: set it, and add --env {variable[1]}"
    if _METADATA.search(message):
        return "no _metadata: a stream that SQL reads has none but as a column of its sample: add it there, or read the files in a program"
    if _UNREAD.search(message):
        what = "a batch read or write needs what a trial does not have, samples being those of streams only"
        return f"{message.rstrip('.')}: {what}: let an argument, a setting or --env name a copy of it"
    return None


def not_given(error: OwnCodeError, version: SparkVersion) -> str | None:
    """Say what a trial did not give to the author's code: what is missing, with its option, or what is refused; None of another error."""
    refused = _REFUSED.fullmatch(error.raised)
    return refused[2] if refused else how_to_mend(error.raised, version, error.traceback)


def what_ended(error: OwnCodeError, version: SparkVersion) -> str:
    """Say what ended the author's code: what is missing and the option that gives it, or what is refused, or the error with its lines."""
    where = f" at {error.at}" if error.at else ""
    if missing := not_given(error, version):
        return f"{missing}; it is asked for{where}" if where else missing
    if error.raised.startswith("WithoutEnd("):
        return f"it starts queries, or waits for their end, again and again{where}: it must end when its queries do"
    return "\n".join(error.lines())


def _module(name: str, version: SparkVersion) -> str | None:
    if name.partition(".")[0] == "dlt":
        return f"no module {name}: {_PIPELINE}"
    if name in ("pyspark.dbutils", "databricks.sdk.runtime", "dbruntime"):
        return f"no module {name}, which only Databricks has: {_name('dbutils')}"
    if (package := _longest(entries("missing.yaml")["modules"], name)) is None:
        return None
    more = f"; {_source('delta', version)}" if name.partition(".")[0] == "delta" else ""
    add = f"write its package, {package}, into a file, and give that with --requirements FILE"
    return f"no module {name}: {add}; for an installed Spark, pip install it{more}"


def _name(name: str) -> str | None:
    if name not in _OF_A_NOTEBOOK:
        return None
    session = "; a program makes it: spark = SparkSession.builder.getOrCreate()" if name == "spark" else ""
    return (
        f"{name} is not defined: is this a notebook? Only its platform gives it {name}: begin the file with the line "
        f"'# Databricks notebook source', or give the .ipynb{session}"
    )


def _source(name: str, version: SparkVersion) -> str:
    if name in TABLE_FORMATS:
        return _table(name, version)
    return f"no package of {name} is loaded: {_add(entries('missing.yaml')['sources'].get(name), version)}"


def _class(name: str, version: SparkVersion) -> str | None:
    known = entries("missing.yaml")
    if (format := _longest(known["tables"], name)) is not None:
        return _table("delta" if format == "delta" else "iceberg", version)
    artifact = _longest(known["sources"], name)
    if artifact is None and name.startswith("org.apache.spark."):
        return None  # a class that this release lacks
    if artifact is None and name.startswith("com.databricks."):
        own = f"; its state store in RocksDB is here {_ROCKSDB}" if "RocksDBStateStore" in name else ""
        return f"no class {name}, which only Databricks has{own}: let an argument or --env choose it"
    what = f"no class {name} is loaded" if name else "a class of Java that the code calls is not loaded"
    return f"{what}: {_add(artifact, version)}"


def _add(artifact: str | None, version: SparkVersion) -> str:
    """What to add for ``group:artifact``; for None, what to add in general."""
    if artifact is None:
        return f"add --package '{version.line}=GROUP:ARTIFACT:VERSION', or --jar FILE if you have its jar"
    of_spark = artifact.startswith("org.apache.spark:")
    released = str(version) if of_spark else "VERSION"
    choose = "" if of_spark else f", with its VERSION for Spark {version.line}"
    return f"add --package '{version.line}={artifact}_{_scala(version)}:{released}'{choose}"


def _table(name: TableFormat, version: SparkVersion) -> str:
    package = package_of(name)
    if (why := package.lacking(version)) is not None:
        return why
    coordinate = package.coordinate(version, _scala(version))
    add = f"--package {version.line}={coordinate}"
    return f"no package of {package.name} is loaded: add {add}, and its settings with --conf ({package.source})"


def _scala(version: SparkVersion) -> str:
    return "2.13" if version.major > 3 else "2.12"  # of pyspark on PyPI


def _longest(known: Mapping[str, str], name: str) -> str | None:
    """The entry of the longest name that is this name, or a beginning of it."""
    fitting = [entry for entry in known if name == entry or name.startswith(f"{entry}.")]
    return known[max(fitting, key=len)] if fitting else None
