"""The invariants: what holds of every stream under a watermark; ``invariants.yaml`` describes the tables they query."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.core.data import read_data


@dataclass(frozen=True)
class Invariant:
    name: str
    sentence: str
    """What holds."""
    violations_sql: str
    """A query in portable SQL that returns the violations."""
    checked_sql: str
    """A query that counts what was checked, in one row and column. If it is 0, the run says nothing about the invariant."""
    checked_unit: str
    """What ``checked_sql`` counts, in the plural."""
    source: str
    """Where Spark guarantees it: a link or a ticket."""


INVARIANTS = tuple(
    Invariant(name, **entry) for name, entry in read_data("conformance.invariants", "invariants.yaml").items()
)
