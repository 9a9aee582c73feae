"""A find: the smallest case in which two voices differ, and nobody knows why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformance.fuzzing.comparison import Difference


@dataclass(frozen=True)
class Discrepancy:
    """A case that shows a difference."""

    written: Mapping[str, Any]
    """In the shape of its YAML, without expectations; shrunk."""
    difference: Difference
    drawn: Mapping[str, Any]
    """As it was found."""
    number: int
    """Of the case as it was drawn, from 1."""
    seconds: float
    """From the beginning of the hunt until it was found and small."""
    whole: bool = True
    """False where shrinking was interrupted."""

    @property
    def name(self) -> str:
        """What its file is called: ``state-goes-spark-3.5.9-model-3.5.9``."""
        names = [name for name, _ in self.difference.rules[:1]] or [self.difference.what]
        return slug(" ".join([*names, self.difference.one.who, self.difference.other.who]))

    @property
    def steps(self) -> int:
        return len(self.written["steps"])

    @property
    def rows(self) -> int:
        """How many rows arrive in it."""
        return sum(_rows_of(step) for step in self.written["steps"])


def slug(text: str) -> str:
    """A text as the name of a file."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")


def _rows_of(step: Mapping[str, Any]) -> int:
    restart = step.get("restart")
    arrivals = [
        step.get("add", {}),
        *step.get("backlog", ()),
        restart.get("add", {}) if isinstance(restart, Mapping) else {},
    ]
    return sum(_count(rows) for arrival in arrivals for rows in arrival.values())


def _count(rows: Any) -> int:
    return sum(map(len, rows["partitions"])) if isinstance(rows, Mapping) else len(rows)
