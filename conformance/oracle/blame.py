"""What the reference model says about a violation: whether the expectation or the engine is probably wrong."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.core.case import Case
from conformance.core.observation import Observation, StepSeen
from conformance.core.values import show
from conformance.judging.divergence import equivalent
from conformance.judging.finding import cell
from conformance.judging.rows import OutputSchema
from conformance.judging.verdict import Verdict
from conformance.model.errors import Unpredictable
from conformance.oracle.cross_check import AGREEING
from conformance.oracle.prediction import predict, verdict_on


def notes_of_the_model(case: Case, verdict: Verdict, observation: Observation) -> tuple[str, ...]:
    """What the model says about a violation, as notes for its verdict: who it agrees with, and what it predicts for the step."""
    try:
        prediction = predict(case, verdict.version)
    except Unpredictable as unknown:
        return (f"the reference model cannot predict this case: {unknown}",)
    place = next((finding.place.step for finding in verdict.findings if finding.place.step), None)
    with_case = verdict_on(case, prediction).status in AGREEING
    with_engine = equivalent(prediction.observation, observation, upto=place, error_classes=False)
    side = {
        (True, False): "The model agrees with the expectation; the engine is probably wrong.",
        (False, True): "The model agrees with the engine; the expectation is probably wrong.",
        (True, True): "The model agrees with the expectation and, in everything it predicts, with the engine.",
        (False, False): "The model agrees with neither the expectation nor the engine.",
    }[with_case, with_engine]
    step = next((step for step in prediction.observation.steps if step.number == place), None)
    if step is None:
        return (side,)
    schema = OutputSchema.of(prediction.observation.columns_of(step))
    return side, f"The model predicts for step {place}: {'; '.join(_said(step, schema))}"


def _said(step: StepSeen, schema: OutputSchema) -> Iterator[str]:
    if step.error is not None:
        yield f"fails at {step.error.stage}: {' < '.join(step.error.classes)}: {step.error.message}"
        return
    rows = [row for batch in step.batches for row in batch.rows]
    yield f"emits {', '.join(cell(schema.as_written(row)) for row in rows) or 'nothing'}"
    yield f"watermark {show(step.watermark * 1000)}"
    dropped = [batch.dropped for batch in step.batches if batch.dropped is not None]
    if dropped:
        yield f"dropped {sum(dropped)}"
    if step.batches:
        yield f"state {cell(list(step.batches[-1].state))}"
