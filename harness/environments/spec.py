"""What an environment must contain, and the directory that follows from it."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from packaging.specifiers import SpecifierSet

from conformance.core.versions import SparkVersion

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
