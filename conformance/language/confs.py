"""The settings of Spark that a case may set, from ``confs.yaml``: which versions know them, and which do not exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

from conformance.core.data import read_data
from conformance.core.versions import SparkVersion
from conformance.language.pipelines import settings_of
from conformance.language.source import Node, ProblemReport, entries_of, unknown
from conformance.language.version_differences import releases_in

STREAMING = "spark.sql.streaming."
"""What begins like this and is not in the list does not exist."""


@dataclass(frozen=True)
class Conf:
    """A setting below ``spark.sql.streaming.``."""

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
    """Return the settings by name, in the order of the file."""
    return {STREAMING + name: _conf(about) for name, about in _written()["streaming"].items()}


@cache
def other_confs() -> frozenset[str]:
    """Return the names of the settings elsewhere that need no permission."""
    return frozenset(_written()["others"])


def refusal_of(name: str, value: str) -> str | None:
    """Return why a case may set this only with ``--allow-code``; None if it always may."""
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


def _conf(about: Any) -> Conf:
    entry = about if isinstance(about, dict) else {"since": about}
    until = entry.get("until")
    return Conf(
        SparkVersion.parse(f"{entry['since']}.0"),
        SparkVersion.parse(f"{until}.0") if until else None,
        entry.get("needs_code"),
        tuple(entry.get("values", ())),
    )


@cache
def _written() -> Any:
    return read_data("conformance.language", "confs.yaml")


def check_confs(case: Node, report: ProblemReport) -> None:
    """Report settings that no version knows: Spark takes any name, and the case would run as if the setting were not there."""
    versions, known = releases_in(case, report), streaming_confs()
    for entry in chain.from_iterable(map(entries_of, settings_of(case, "conf"))):
        name = str(entry.key.value)
        if not name.startswith(STREAMING):
            continue
        if (conf := known.get(name)) is None:
            report.add(entry.key, unknown("setting of Spark", name, known))
        elif versions and not any(conf.on(version) for version in versions):
            until = f" and gone since {conf.until.line}" if conf.until else ""
            known_in = f"{name} is known since Spark {conf.since.line}{until}"
            report.add(entry.key, f"{known_in}, in none of the case's versions")
