"""The reference model as a voice: as it is, or misread in one rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from conformance.case import Case
from conformance.fuzzing.model_says import model_says, with_conf
from conformance.fuzzing.voice import Answer
from conformance.model.rules import Rules
from conformance.model.unpredictable import Unpredictable
from conformance.versions import SparkVersion


@dataclass(frozen=True)
class ModelVoice:
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

    def answers(self, cases: Sequence[Case]) -> Sequence[Answer]:
        return [self._answer(case) for case in cases]

    def _answer(self, case: Case) -> Answer:
        try:
            return Answer(model_says(with_conf(case, self.conf), self.version, self.rules).observation)
        except Unpredictable as unknown:
            return Answer(None, str(unknown))

    def close(self) -> None:
        pass
