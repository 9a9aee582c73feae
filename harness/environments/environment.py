"""What a driver runs in: a Python with pyspark, a Java, and their environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# An engine runs what a case says, so it gets only these variables of the host: no tokens, keys or passwords.
_PASSED = frozenset(
    {
        *("PATH", "LD_LIBRARY_PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TMPDIR", "TMP", "TEMP"),
        *("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"),
    }
)
_PASSED_PREFIXES = ("LC_",)
_TO_A_CLUSTER = frozenset(
    {"HADOOP_CONF_DIR", "YARN_CONF_DIR", "HADOOP_USER_NAME", "KRB5CCNAME", "KRB5_CONFIG", "KUBECONFIG"}
)
"""Where a cluster is, and who asks."""
_TO_AN_INSTALLED_SPARK = ("SPARK_", "PYSPARK_", "PYTHON", "HADOOP_", "YARN_", "HIVE_", "JAVA_")
"""Prefixes: an installed Spark may depend on them; any other must not see them, because they would change it."""


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

        Only what every program needs is passed on: paths, names, locale, Java options. The installed target keeps the host's
        variables for Spark and Python too, because it may depend on them. ``elsewhere``: its executors run in a cluster on other
        machines, which the host's Hadoop configuration locates, and which connect back.
        """
        names = _PASSED | (_TO_A_CLUSTER if elsewhere else frozenset())
        prefixes = (*_PASSED_PREFIXES, *(_TO_AN_INSTALLED_SPARK if self.root is None else ()))
        kept = {name: value for name, value in host.items() if name in names or name.startswith(prefixes)}
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
