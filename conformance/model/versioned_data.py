"""The YAML beside the model: what differs between versions is in it, and nowhere in code."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import yaml

from conformance.core.versions import SparkVersion, VersionRange


def read(name: str) -> dict[str, Any]:
    """A file of the model: name of an entry → its keys."""
    content: dict[str, Any] = yaml.safe_load((files("conformance.model") / name).read_text(encoding="utf-8"))
    return content


def spark_of(entry: dict[str, Any]) -> VersionRange | None:
    """The versions an entry holds for; None where it is all."""
    return VersionRange.parse(entry["spark"]) if "spark" in entry else None


def holds(spark: VersionRange | None, version: SparkVersion) -> bool:
    return spark is None or version in spark
