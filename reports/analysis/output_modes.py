"""One trace in each output mode, by the reference model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from conformance.core.case import Case, OutputMode
from conformance.core.versions import SparkVersion
from reports.analysis.model_agreement import ModelPrediction, reference_model


def in_each_mode(case: Case, version: SparkVersion) -> Iterator[tuple[Case, ModelPrediction]]:
    """The case in append, update and complete mode, with what happens; without the modes that the model does not support."""
    for mode in get_args(OutputMode):
        changed = case.model_copy(update={"output_mode": mode})
        predicted = reference_model(changed, version)
        if predicted is not None:
            yield (
                changed,
                ModelPrediction(predicted.observation, predicted.explanation, predicted.account(predicted.observation)),
            )
