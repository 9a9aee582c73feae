"""A case in segments: its steps split where one process is killed and another resumes from the checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from conformance.core.case import Case, Restart
from conformance.core.observation import Observation, StepSeen


@dataclass(frozen=True)
class Segment:
    """Steps of a case that one process runs."""

    first: int
    """Number of the first step, from 1. A restart by ``kill`` here is its second half: the query starts again."""
    last: int
    """Number of the last step. A restart by ``kill`` here is its first half: the engine is killed in it."""
    killed: bool = False
    """Whether it ends with the engine killed."""


def segments_of(case: Case, first: int = 1, last: int | None = None) -> tuple[Segment, ...]:
    """Some steps of a case, split where an engine is killed; all of them by default."""
    last = last or len(case.steps)
    found = []
    for step in case.steps[first - 1 : last]:
        if isinstance(step.action, Restart) and step.action.how == "kill" and not (step.number == first > 1):
            found.append(Segment(first, step.number, killed=True))
            first = step.number
    return (*found, Segment(first, last))


def kills_its_engine(case: Case) -> bool:
    """Whether the case kills an engine, and with it everything else that runs there."""
    return any(segment.killed for segment in segments_of(case))


def join_segments(observations: Sequence[Observation]) -> Observation:
    """One observation from those of the segments of one run, in order.

    Both halves of a step in which the engine was killed become one step with the micro-batches of both.
    """
    steps: list[StepSeen] = []
    for observation in observations:
        for seen in observation.steps:
            seen = seen.model_copy(update={"columns": observation.columns_of(seen)})
            if steps and steps[-1].number == seen.number:
                before = steps.pop()
                seen = seen.model_copy(
                    update={
                        "batches": (*before.batches, *seen.batches),
                        "wall_ms": before.wall_ms + seen.wall_ms,
                        "interrupted": before.interrupted,
                    }
                )
            steps.append(seen)
    columns = next((one.columns for one in reversed(observations) if one.columns), ())
    return Observation.of(observations[0].case, columns, tuple(steps))
