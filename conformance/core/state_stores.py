"""State store providers, from ``state_stores.yaml``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from conformance.core.data import read_data
from conformance.core.versions import SparkVersion, VersionRange

Name: TypeAlias = Literal["hdfs", "rocksdb"]


@dataclass(frozen=True)
class StateStore:
    """A built-in state store provider of Spark."""

    name: str
    conf: dict[str, str]
    """The conf that selects it."""
    versions: VersionRange

    @classmethod
    def named(cls, name: Name) -> StateStore:
        data: dict[str, Any] = read_data("conformance.core", "state_stores.yaml")
        entry = data["stores"][name]
        return cls(name, {data["setting"]: entry["provider"]}, VersionRange.parse(entry["spark"]))

    def on(self, version: SparkVersion) -> bool:
        return version in self.versions
