"""Cases whose event time is the engine's clock: what they emit is determined, the watermarks they run with are not."""

from __future__ import annotations

import re

from conformance.core.case import Case
from conformance.core.observation import Observation

_READS_IT = re.compile(r"\b(?:(?:current_timestamp|current_date|localtimestamp)\b|now\(\s*\))", re.IGNORECASE)


def reads_the_clock(case: Case) -> bool:
    """Whether some expression of the case asks what time it is."""
    return any(_READS_IT.search(repr(operation.arguments)) for operation in case.operations())


def behaviour(case: Case, observation: Observation) -> str:
    """The digest of what was seen, without the instants of the clock where they are the watermark."""
    return _without_instants(observation).behaviour_digest if reads_the_clock(case) else observation.behaviour_digest


def _without_instants(observation: Observation) -> Observation:
    steps = tuple(
        step.model_copy(
            update={
                "watermark": 0,
                "batches": tuple(
                    batch.model_copy(update={"watermark": None, "next_watermark": None}) for batch in step.batches
                ),
            }
        )
        for step in observation.steps
    )
    return observation.model_copy(update={"steps": steps})
