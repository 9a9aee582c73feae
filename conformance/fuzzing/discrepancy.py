"""A find: the smallest case on which two oracles differ in a way that no rule of the model explains."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformance.fuzzing.comparison import AnswerDifference


@dataclass(frozen=True)
class Discrepancy:
    """A case that shows a difference."""

    written: Mapping[str, Any]
    """The shrunk case in the shape of its YAML, without expectations."""
    difference: AnswerDifference
    drawn: Mapping[str, Any]
    """The case as generated."""
    number: int
    """Of the generated case, from 1."""
    seconds: float
    """From the start of the campaign until the case was shrunk."""
    fully_shrunk: bool = True
    """False if shrinking was interrupted."""

    @property
    def name(self) -> str:
        """The name of its file: ``is-over-spark-3.5.9-model-3.5.9``."""
        names = [name for name, _ in self.difference.rules[:1]] or [self.difference.what]
        return slug(" ".join([*names, self.difference.one.oracle, self.difference.other.oracle]))

    @property
    def steps(self) -> int:
        return len(self.written["steps"])

    @property
    def rows(self) -> int:
        """The number of rows that arrive."""
        return sum(_rows_of(step) for step in self.written["steps"])


def slug(text: str) -> str:
    """A text as a file name."""
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
