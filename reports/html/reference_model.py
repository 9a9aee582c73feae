"""What the reference model says of a case, for those who show it beside an engine."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion
from conformance.model.errors import Unpredictable
from conformance.oracle.cross_check import AGREEING
from conformance.oracle.explanation import explanation_lines
from conformance.oracle.prediction import Prediction, predict, verdict_on


@dataclass(frozen=True)
class Said:
    """A prediction; its account is made where somebody reads it."""

    case: Case
    prediction: Prediction

    @property
    def observation(self) -> Observation:
        return self.prediction.observation

    @property
    def told(self) -> tuple[tuple[str, str], ...]:
        """Its account, line by line, each with its tone."""
        return tuple((line.tone, str(line)) for line in explanation_lines(self.case, self.prediction))

    @property
    def as_expected(self) -> bool:
        """Whether it says what the case expects of the version."""
        return verdict_on(self.case, self.prediction).status in AGREEING


def reference_model(case: Case, version: SparkVersion) -> Said | None:
    """Its prediction; None where the case uses something it does not know."""
    try:
        return Said(case, predict(case, version))
    except Unpredictable:
        return None
