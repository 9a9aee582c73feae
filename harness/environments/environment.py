"""What a driver runs in: a Python with pyspark, a Java, and their environment variables."""

import hashlib
import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from packaging.specifiers import SpecifierSet
from pydantic import BaseModel, ConfigDict

from conformance.core.versions import SparkVersion
from harness.errors import HarnessError

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
    python: Path
    python_version: str
    pyspark: str
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

    def scala(self) -> str:
        """The version of Scala that its Spark is built for, ``2.12``. Raises ``HarnessError`` if its jars do not say it."""
        for jar in (self.spark_home / "jars").glob("spark-core_*.jar"):
            return jar.name.removeprefix("spark-core_").partition("-")[0]
        raise HarnessError(f"{self.spark_home} has no spark-core among its jars, which tells the version of Scala")

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


_NAME = "environment.json"
_FORMAT = 1
"""Increase it when environments of older suites must not be used anymore."""


@dataclass(frozen=True)
class EnvironmentSpec:
    """What an environment must contain. Equal specs share one environment."""

    version: SparkVersion
    python: SpecifierSet
    requirements: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        return {
            "format": _FORMAT,
            "platform": f"{sys.platform}-{platform.machine()}",
            "spark": str(self.version),
            "python": sorted(map(str, self.python)),
            "requirements": list(self.requirements),
        }

    def directory(self, cache: Path) -> Path:
        """Its directory: ``…/environments/3.5.9-0123456789ab``."""
        digest = hashlib.sha256(json.dumps(self.as_json(), sort_keys=True).encode()).hexdigest()
        return cache / "environments" / f"{self.version}-{digest[:12]}"


class Manifest(BaseModel):
    """The contents of a complete environment."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    order: dict[str, object]
    """What was asked for: ``EnvironmentSpec.as_json``."""
    base_python: Path
    python_version: str
    pyspark: str
    spark_home: Path
    java_home: Path | None
    """The embedded Java; None if the host's is used."""
    java_version: str | None
    """That of the embedded Java: it never changes, and asking it takes 0.1 s."""

    def write(self, root: Path) -> None:
        """Mark the environment in ``root`` as complete, atomically."""
        partial = root / f"{_NAME}.partial"
        partial.write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")
        partial.replace(root / _NAME)

    @classmethod
    def read(cls, root: Path) -> Self | None:
        """The contents of the environment in ``root``; None if it is not complete, or no longer."""
        try:
            made = cls.model_validate_json((root / _NAME).read_bytes())
        except (OSError, ValueError):
            return None
        # The interpreter links to one of the machine, which may have been removed since, as may parts of the cache.
        complete = (
            interpreter(root).exists()
            and (made.spark_home / "jars").is_dir()
            and (made.java_home is None or java(made.java_home).exists())
        )
        return made if complete else None


def interpreter(root: Path) -> Path:
    """The Python of the environment in ``root``."""
    return root / "Scripts" / "python.exe" if os.name == "nt" else root / "bin" / "python"


def java(home: Path) -> Path:
    """The launcher of the Java in ``home``."""
    return home / "bin" / ("java.exe" if os.name == "nt" else "java")
