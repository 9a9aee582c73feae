"""The file that marks an environment as complete and describes it. It is written last."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from harness.environments.spec import EnvironmentSpec

_NAME = "environment.json"


@dataclass(frozen=True)
class Manifest:
    """The contents of a complete environment."""

    base_python: Path
    """The interpreter of the machine that the environment uses."""
    python_version: str
    pyspark: str
    spark_home: Path
    java_home: Path | None
    """Of the embedded Java; None if the host's is used."""
    java_version: str | None
    """Of the embedded Java; it never changes, and asking it takes 0.1 s."""

    def write(self, root: Path, spec: EnvironmentSpec) -> None:
        """Mark the environment in ``root`` as complete, atomically."""
        content = {
            "order": spec.as_json(),
            "base_python": str(self.base_python),
            "python_version": self.python_version,
            "pyspark": self.pyspark,
            "spark_home": str(self.spark_home),
            "java_home": self.java_home and str(self.java_home),
            "java_version": self.java_version,
            "bytecode": True,
        }
        partial = root / f"{_NAME}.partial"
        partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        partial.replace(root / _NAME)

    @classmethod
    def read(cls, root: Path) -> Manifest | None:
        """The contents of the environment in ``root``; None if it is not complete, or no longer."""
        try:
            content = json.loads((root / _NAME).read_text(encoding="utf-8"))
            if not content["bytecode"]:  # older manifests lack the key
                return None
            made = cls(
                base_python=Path(content["base_python"]),
                python_version=content["python_version"],
                pyspark=content["pyspark"],
                spark_home=Path(content["spark_home"]),
                java_home=Path(content["java_home"]) if content["java_home"] else None,
                java_version=content["java_version"] if content["java_home"] else None,
            )
        except (OSError, ValueError, KeyError, TypeError):
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
