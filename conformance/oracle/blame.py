"""The third voice: what the reference model says of a cell in which an engine did not do what the case expects.

With it, of expectation, engine and model two outvote the third, and a reader knows whom to doubt.
"""

from __future__ import annotations

from collections.abc import Iterator

from conformance.core.case import Case
from conformance.core.observation import Observation, StepSeen
from conformance.judging.divergence import equivalent
from conformance.judging.finding import cell
from conformance.judging.rows import OutputSchema
from conformance.judging.verdict import Verdict
from conformance.model.unpredictable import Unpredictable
from conformance.oracle.cross_check import AGREEING
from conformance.oracle.explanation import instant
from conformance.oracle.prediction import judged, predict


def opinion(case: Case, verdict: Verdict, observation: Observation) -> tuple[str, ...]:
    """What the model says of a violation, as notes for its verdict: whose side it is on, and what it says of the step."""
    try:
        prediction = predict(case, verdict.version)
    except Unpredictable as unknown:
        return (f"{unknown}: it has no opinion",)
    place = next((finding.place.step for finding in verdict.findings if finding.place.step), None)
    with_case = judged(case, prediction).status in AGREEING
    with_engine = equivalent(prediction.observation, observation, upto=place)
    side = {
        (True, False): "the reference model says what the case expects",
        (False, True): "the reference model says what the engine did: doubt the expectation",
        (True, True): "the reference model says what the case expects and, as far as it sees, what the engine did",
        (False, False): "the reference model says otherwise than both",
    }[with_case, with_engine]
    step = next((step for step in prediction.observation.steps if step.number == place), None)
    if step is None:
        return (side,)
    return side, f"the model on step {place}: {'; '.join(_said(step, OutputSchema.of(prediction.observation.columns)))}"


def _said(step: StepSeen, schema: OutputSchema) -> Iterator[str]:
    if step.error is not None:
        yield f"fails at {step.error.stage}: {' < '.join(step.error.classes)}: {step.error.message}"
        return
    rows = [row for batch in step.batches for row in batch.rows]
    yield f"emits {', '.join(cell(schema.as_written(row)) for row in rows) or 'nothing'}"
    yield f"watermark {instant(step.watermark)}"
    dropped = [batch.dropped for batch in step.batches if batch.dropped is not None]
    if dropped:
        yield f"dropped {sum(dropped)}"
    if step.batches:
        yield f"state {cell(list(step.batches[-1].state))}"
