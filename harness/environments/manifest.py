"""What an environment must contain, the directory that follows from it, and the file that marks it as complete: written last."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from packaging.specifiers import SpecifierSet
from pydantic import BaseModel, ConfigDict

from conformance.core.versions import SparkVersion

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

    model_config = ConfigDict(frozen=True)

    order: dict[str, object]
    """``EnvironmentSpec.as_json``"""
    base_python: Path
    """The interpreter of the machine that the environment uses."""
    python_version: str
    pyspark: str
    spark_home: Path
    java_home: Path | None
    """Of the embedded Java; None if the host's is used."""
    java_version: str | None
    """Of the embedded Java; it never changes, and asking it takes 0.1 s."""
    bytecode: Literal[True]
    """Older manifests lack the key; their environments are made again."""

    def write(self, root: Path) -> None:
        """Mark the environment in ``root`` as complete, atomically."""
        partial = root / f"{_NAME}.partial"
        partial.write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")
        partial.replace(root / _NAME)

    @classmethod
    def read(cls, root: Path) -> Manifest | None:
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
