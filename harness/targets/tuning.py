"""Spark settings that save time and change no answer; ``tuning.yaml`` has them with their reasons."""

from __future__ import annotations

from functools import cache
from typing import Any

from conformance.core.data import read_data
from conformance.core.versions import SparkVersion, VersionRange


def tuning(version: SparkVersion, *, own_disk: bool = True, own_code: bool = False) -> dict[str, str]:
    """The settings for a version, set when its session starts.

    ``own_disk``: whether the files of cases are on a disk of the engine's machine; ``own_code``: whether code or packages of the user
    run there, which may need more of Spark than cases do.
    """
    return {
        entry["conf"]: entry["value"]
        for entry in _entries()
        if ("spark" not in entry or version in VersionRange.parse(entry["spark"]))
        and (own_disk or not entry.get("disk"))
        and not (own_code and entry.get("code") == "none")
    }


@cache
def _entries() -> tuple[dict[str, Any], ...]:
    return tuple(read_data("harness.targets", "tuning.yaml"))
