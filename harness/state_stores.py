"""Where Spark keeps state: data, in ``state_stores.yaml``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal, TypeAlias

import yaml

from conformance.versions import SparkVersion, VersionRange
from harness.surroundings import SurroundingsFailed
from harness.target import Target

Name: TypeAlias = Literal["hdfs", "rocksdb"]


class NoSuchStore(SurroundingsFailed):
    """None of the versions asked for keeps state there."""

    def __init__(self, name: str, versions: VersionRange) -> None:
        super().__init__(f"No version that was asked for has the state store {name!r}: Spark {versions} has it.")


@dataclass(frozen=True)
class StateStore:
    """A state store provider that comes with Spark."""

    name: str
    conf: dict[str, str]
    """The setting that chooses it."""
    versions: VersionRange

    @classmethod
    def named(cls, name: Name) -> StateStore:
        said: dict[str, Any] = yaml.safe_load((files("harness") / "state_stores.yaml").read_text(encoding="utf-8"))
        entry = said["stores"][name]
        return cls(name, {said["setting"]: entry["provider"]}, VersionRange.parse(entry["spark"]))

    def on(self, version: SparkVersion) -> bool:
        return version in self.versions

    def among(self, targets: Sequence[Target]) -> tuple[Target, ...]:
        """The targets that have it.

        Raises:
            NoSuchStore: none of them has.
        """
        found = tuple(target for target in targets if self.on(target.version))
        if not found:
            raise NoSuchStore(self.name, self.versions)
        return found
