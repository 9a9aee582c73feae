"""The reference model as a voice: as it is, or misread in one rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from conformance.core.case import Case
from conformance.core.versions import SparkVersion
from conformance.fuzzing.cached_prediction import model_says, with_conf
from conformance.fuzzing.oracle import OracleAnswer
from conformance.model.errors import Unpredictable
from conformance.model.rules import Rules


@dataclass(frozen=True)
class ModelOracle:
    """Says what the model predicts.

    Args:
        version: of Spark.
        rules: those of the version where none are given.
        called: its name; ``model-3.5.9`` where it is empty.
    """

    version: SparkVersion
    rules: Rules | None = None
    called: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)
    at_once: int = 1

    @property
    def name(self) -> str:
        return self.called or f"model-{self.version}"

    def answers(self, cases: Sequence[Case]) -> Sequence[OracleAnswer]:
        return [self._answer(case) for case in cases]

    def _answer(self, case: Case) -> OracleAnswer:
        try:
            return OracleAnswer(model_says(with_conf(case, self.conf), self.version, self.rules).observation)
        except Unpredictable as unknown:
            return OracleAnswer(None, str(unknown))

    def close(self) -> None:
        pass
