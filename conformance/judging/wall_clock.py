"""Cases whose event time is the engine's clock: the rows are determined, the watermarks change from run to run."""

from __future__ import annotations

import re

from conformance.core.case import Case
from conformance.core.observation import Observation

_CLOCK = re.compile(r"\b(?:(?:current_timestamp|current_date|localtimestamp)\b|now\(\s*\))", re.IGNORECASE)


def reads_the_clock(case: Case) -> bool:
    """Whether some expression of the case asks for the current time."""
    return any(_CLOCK.search(repr(operation.arguments)) for operation in case.operations())


def behaviour(case: Case, observation: Observation) -> str:
    """The digest of the observation, without watermarks if the case reads the clock."""
    return observation.digest(instants=not reads_the_clock(case))


def digest_omits_instants(digest: str | None, observation: Observation) -> bool:
    """Whether a recorded digest was made without watermarks, that is, whether its case reads the clock."""
    return digest == observation.digest(instants=False) != observation.behaviour_digest
