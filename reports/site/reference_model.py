"""What the reference model says of a case, for those who show it beside an engine."""

from __future__ import annotations

from conformance.case import Case
from conformance.model.unpredictable import Unpredictable
from conformance.predict import predict
from conformance.telling import told
from conformance.versions import SparkVersion
from reports.site.report import Predicted


def reference_model(case: Case, version: SparkVersion) -> Predicted | None:
    """Its prediction and its account; None where the case uses something it does not know."""
    try:
        prediction = predict(case, version)
        lines = tuple((line.tone, str(line)) for line in told(case, prediction))
    except Unpredictable:
        return None
    return Predicted(prediction.observation, lines)
