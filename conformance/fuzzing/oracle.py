"""The protocol of an oracle: something that answers what a case does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion


@dataclass(frozen=True)
class OracleAnswer:
    """The answer of an oracle to one case."""

    observation: Observation | None
    why: str = ""
    """Why there is no observation; empty if there is one."""


class Oracle(Protocol):
    """The reference model of a version, a wrong model, or an engine.

    Its answer to a case does not depend on previous cases.
    """

    @property
    def name(self) -> str:
        """A unique name for display: ``spark-3.5.9``, ``spark-3.5.9 with rocksdb``, ``model-3.5.9``."""

    @property
    def version(self) -> SparkVersion:
        """The Spark version that it runs or predicts."""

    @property
    def conf(self) -> Mapping[str, str]:
        """Spark settings added to every case, unless the case sets them itself."""

    @property
    def at_once(self) -> int:
        """How many cases it answers in parallel; smaller batches waste time."""

    def answers(self, cases: Sequence[Case]) -> Sequence[OracleAnswer]:
        """An answer for each case; the cases have different ids."""

    def close(self) -> None:
        """Release its resources. May be called from any thread, and more than once."""
