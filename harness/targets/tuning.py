"""Engine settings that save time and change no answer: data, each with its reason, in ``tuning.yaml``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from conformance.core.versions import SparkVersion, VersionRange


def settings(version: SparkVersion, *, own_disk: bool = True) -> dict[str, str]:
    """The Spark settings for a version, to be given when its session starts.

    ``own_disk``: whether cases have their files on a disk of the engine's machine.
    """
    return {
        entry["conf"]: entry["value"]
        for entry in _entries()
        if ("spark" not in entry or version in VersionRange.parse(entry["spark"]))
        and (own_disk or not entry.get("disk"))
    }


@cache
def _entries() -> tuple[dict[str, Any], ...]:
    return tuple(yaml.safe_load((files("harness.targets") / "tuning.yaml").read_text(encoding="utf-8")))
