"""The file that says an environment was made to its end, and what is in it. It is written last."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from harness.environments.spec import EnvironmentSpec

_NAME = "environment.json"


@dataclass(frozen=True)
class Manifest:
    """What is in a finished environment."""

    base_python: Path
    """The interpreter of the machine that the environment's was made from."""
    python_version: str
    pyspark: str
    spark_home: Path
    java_home: Path | None
    """Of the embedded Java; None where the host's serves."""
    java_version: str | None
    """What that Java said when it was asked, once: nobody changes it after, and to start it takes a tenth of a second."""

    def write(self, root: Path, order: EnvironmentSpec) -> None:
        """Mark the environment in ``root`` as finished, in one stroke."""
        said = {
            "order": order.as_json(),
            "base_python": str(self.base_python),
            "python_version": self.python_version,
            "pyspark": self.pyspark,
            "spark_home": str(self.spark_home),
            "java_home": self.java_home and str(self.java_home),
            "java_version": self.java_version,
            "bytecode": True,
        }
        partial = root / f"{_NAME}.partial"
        partial.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
        partial.replace(root / _NAME)

    @classmethod
    def read(cls, root: Path) -> Manifest | None:
        """What the environment in ``root`` holds; None where it is not finished, or no longer whole."""
        try:
            said = json.loads((root / _NAME).read_text(encoding="utf-8"))
            if not said["bytecode"]:  # those of before it had any lack the key
                return None
            made = cls(
                base_python=Path(said["base_python"]),
                python_version=said["python_version"],
                pyspark=said["pyspark"],
                spark_home=Path(said["spark_home"]),
                java_home=Path(said["java_home"]) if said["java_home"] else None,
                java_version=said["java_version"] if said["java_home"] else None,
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None
        # The interpreter is a link to one of the machine's, which may have gone since; so may parts of a tidied-up cache.
        whole = (
            interpreter(root).exists()
            and (made.spark_home / "jars").is_dir()
            and (made.java_home is None or java(made.java_home).exists())
        )
        return made if whole else None


def interpreter(root: Path) -> Path:
    """The Python of the environment in ``root``."""
    return root / "Scripts" / "python.exe" if os.name == "nt" else root / "bin" / "python"


def java(home: Path) -> Path:
    """The launcher of the Java in ``home``."""
    return home / "bin" / ("java.exe" if os.name == "nt" else "java")
