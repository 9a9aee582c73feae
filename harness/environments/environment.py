"""The place a driver runs in: a Python with a pyspark, a Java, and the variables both are started with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# What is set on the host must not reach an engine of ours: it would be another engine than the one that was asked for.
_FOREIGN_PREFIXES = ("SPARK_", "PYSPARK_", "PYTHON")
_CLUSTERS = frozenset({"HADOOP_CONF_DIR", "YARN_CONF_DIR"})
_FOREIGN = frozenset(
    {
        *_CLUSTERS,
        "HIVE_CONF_DIR",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "CONDA_DEFAULT_ENV",
        "__PYVENV_LAUNCHER__",
    }
)


@dataclass(frozen=True)
class Environment:
    """Everything that is needed to start a driver. All paths are absolute."""

    target: str
    """The name of the target: ``spark-3.5.9``."""
    python: Path
    """The interpreter that can import this pyspark."""
    python_version: str
    pyspark: str
    """The version of the pyspark, as it says itself."""
    spark_home: Path
    """Where its ``jars`` and ``bin`` are."""
    java_home: Path
    java_version: str
    base_python: Path | None = None
    """The interpreter of this machine that ``python`` was made from; None for the installed target."""
    root: Path | None = None
    """The directory that was made for it; None for the installed target, which uses what was there."""

    def environ(self, host: Mapping[str, str] | None = None, *, elsewhere: bool = False) -> dict[str, str]:
        """The complete variables of the driver's process, made from those of the host (by default this process's).

        Of the host's, Spark's and Python's own go, except for the installed target, whose engine they are part of.
        Proxies, certificates and everything else stay. ``elsewhere``: its executors are in a cluster on other machines, which the
        host's configuration of Hadoop leads to, and which call back.
        """
        host = os.environ if host is None else host
        wanted = _CLUSTERS if elsewhere else frozenset()
        kept = {
            name: value for name, value in host.items() if self.root is None or name in wanted or not _is_foreign(name)
        }
        folders = [str(self.java_home / "bin"), *([str(self.python.parent)] if self.root is not None else [])]
        path = os.pathsep.join([*folders, *([kept["PATH"]] if kept.get("PATH") else [])])
        return kept | {
            "PATH": path,
            "JAVA_HOME": str(self.java_home),
            "SPARK_HOME": str(self.spark_home),
            "PYSPARK_PYTHON": str(self.python),
            "PYSPARK_DRIVER_PYTHON": str(self.python),
            "PYSPARK_PIN_THREAD": "true",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONIOENCODING": "utf-8",
            **({} if elsewhere else {"SPARK_LOCAL_IP": "127.0.0.1"}),
            "TZ": "UTC",
        }


def _is_foreign(name: str) -> bool:
    return name in _FOREIGN or name.startswith(_FOREIGN_PREFIXES)
