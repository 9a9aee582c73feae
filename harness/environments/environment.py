"""What a driver runs in: a Python with pyspark, a Java, and their environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# These variables of the host must not reach an engine, because they would change it.
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
    """Everything needed to start a driver. All paths are absolute."""

    target: str
    """The name of the target: ``spark-3.5.9``."""
    python: Path
    """The interpreter that can import this pyspark."""
    python_version: str
    pyspark: str
    """The version of pyspark, as it reports it."""
    spark_home: Path
    """The directory with its ``jars`` and ``bin``."""
    java_home: Path
    java_version: str
    base_python: Path | None = None
    """The interpreter of this machine that the virtual environment uses; None for the installed target."""
    root: Path | None = None
    """The directory of the virtual environment; None for the installed target, which has none."""
    python_path: tuple[Path, ...] = ()
    """Directories and zips that PYTHONPATH must begin with to import pyspark."""

    def environ(self, host: Mapping[str, str] = os.environ, *, elsewhere: bool = False) -> dict[str, str]:
        """All environment variables of the driver's process, based on the host's (by default this process's).

        The host's variables for Spark and Python are removed, except for the installed target, which may depend on them. Proxies,
        certificates and everything else stay. ``elsewhere``: its executors run in a cluster on other machines, which the host's Hadoop
        configuration locates, and which connect back.
        """
        wanted = _CLUSTERS if elsewhere else frozenset()
        kept = {
            name: value for name, value in host.items() if self.root is None or name in wanted or not _is_foreign(name)
        }
        folders = [str(self.java_home / "bin"), *([str(self.python.parent)] if self.root is not None else [])]
        path = os.pathsep.join([*folders, *([kept["PATH"]] if kept.get("PATH") else [])])
        modules = os.pathsep.join([*map(str, self.python_path), *filter(None, [kept.get("PYTHONPATH")])])
        return kept | {
            "PATH": path,
            "JAVA_HOME": str(self.java_home),
            "SPARK_HOME": str(self.spark_home),
            "PYSPARK_PYTHON": str(self.python),
            "PYSPARK_DRIVER_PYTHON": str(self.python),
            "PYSPARK_PIN_THREAD": "true",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONIOENCODING": "utf-8",
            **({"PYTHONPATH": modules} if modules else {}),
            **({} if elsewhere else {"SPARK_LOCAL_IP": "127.0.0.1"}),
            "TZ": "UTC",
        }


def _is_foreign(name: str) -> bool:
    return name in _FOREIGN or name.startswith(_FOREIGN_PREFIXES)
