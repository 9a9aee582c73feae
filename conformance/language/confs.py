"""The settings of Spark that a case may set, from ``confs.yaml``: which versions know them, and which do not exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

from conformance.core.data import read_data
from conformance.core.versions import SparkVersion, VersionRange, falling_into, releases
from conformance.language.source import Node, Report, child, entries_of, items_of, unknown

STREAMING = "spark.sql.streaming."
"""What begins like this and is not in the list does not exist."""


@dataclass(frozen=True)
class Conf:
    """A setting below ``spark.sql.streaming.``."""

    name: str
    since: SparkVersion
    until: SparkVersion | None
    """The first version that no longer knows it."""
    needs_code: str | None
    """Why the setting needs ``--allow-code``."""
    values: tuple[str, ...]
    """The values that do not need it; empty if none does."""

    def on(self, version: SparkVersion) -> bool:
        return self.since <= version and (self.until is None or version < self.until)


@cache
def streaming_confs() -> Mapping[str, Conf]:
    """Name → setting, in the order of the file."""
    return {STREAMING + name: _conf(STREAMING + name, about) for name, about in _written()["streaming"].items()}


@cache
def other_confs() -> frozenset[str]:
    """Names of the settings elsewhere that need no permission."""
    return frozenset(_written()["others"])


def refusal_of(name: str, value: str) -> str | None:
    """Why a case may set this only with ``--allow-code``; None if it always may."""
    if "${" in value:  # Spark replaces it when it reads the setting
        return f"`${{…}}` in {name} stands for a setting or a variable of the environment"
    conf = streaming_confs().get(name)
    if conf is None:
        if name in other_confs():
            return None
        return f"the setting {name} is not one of those that change only what a query computes"
    if conf.needs_code is not None:
        return f"the setting {name} {conf.needs_code}"
    if conf.values and value not in conf.values:
        return f"{value!r} as {name} may name a class; known are {', '.join(conf.values)}"
    return None


def _conf(name: str, about: Any) -> Conf:
    entry = about if isinstance(about, dict) else {"since": about}
    until = entry.get("until")
    return Conf(
        name,
        SparkVersion.parse(f"{entry['since']}.0"),
        SparkVersion.parse(f"{until}.0") if until else None,
        entry.get("needs_code"),
        tuple(entry.get("values", ())),
    )


@cache
def _written() -> Any:
    return read_data("conformance.language", "confs.yaml")


def check_confs(case: Node, report: Report) -> None:
    """Spark takes any name and changes nothing: the case would run as if the setting were not there."""
    spark = child(case, "spark")
    limited = spark is not None and report.is_valid(spark)
    versions = list(falling_into(VersionRange.parse(spark.plain())) if spark is not None and limited else releases())
    known = streaming_confs()
    steps = items_of(case, "steps")
    changes = (entries_of(step, "restart", "change", "conf") for step in steps)
    for entry in chain(entries_of(case, "conf"), *changes):
        name = str(entry.key.value)
        if not name.startswith(STREAMING):
            continue
        if (conf := known.get(name)) is None:
            report.add(entry.key, unknown("setting of Spark", name, known))
        elif versions and not any(conf.on(version) for version in versions):
            until = f" and gone since {conf.until.line}" if conf.until else ""
            message = f"{name} is known since Spark {conf.since.line}{until}, in none of the case's versions"
            report.add(entry.key, message)
