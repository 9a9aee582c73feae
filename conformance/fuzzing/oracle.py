"""Whoever can be asked what a case does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion


@dataclass(frozen=True)
class OracleAnswer:
    """What a voice says of a case."""

    observation: Observation | None
    why: str = ""
    """Why it says nothing; empty where it does."""


class Oracle(Protocol):
    """The reference model at a version, a model that is wrong, or an engine.

    What it says of a case does not depend on what it was asked before.
    """

    @property
    def name(self) -> str:
        """As people call it: ``spark-3.5.9``, ``spark-3.5.9 with rocksdb``, ``model-3.5.9``. Of several voices each has another."""
        ...

    @property
    def version(self) -> SparkVersion:
        """The Spark it is, or stands for."""
        ...

    @property
    def conf(self) -> Mapping[str, str]:
        """Spark settings that all cases have with it, where they do not say otherwise."""
        ...

    @property
    def at_once(self) -> int:
        """How many cases it answers side by side: to ask it fewer wastes time."""
        ...

    def answers(self, cases: Sequence[Case]) -> Sequence[OracleAnswer]:
        """What it says of each; cases have different ids."""
        ...

    def close(self) -> None:
        """Ends what it started; from any thread, and more than once."""
        ...
