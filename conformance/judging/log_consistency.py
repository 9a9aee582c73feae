"""Compares the records of a watermark (progress, offset log, commit log) and of the state. A disagreement is a finding.

The offset log has the watermark that a micro-batch was planned with, the progress the one it ran with, and the commit log of
the previous micro-batch the one it should run with: Spark's ``OffsetSeqMetadata`` and ``CommitMetadata``. The progress counts the rows
of the state while they change; the data source ``statestore``, where it was asked, has read them from the checkpoint.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from conformance.core.case import Case, Restart
from conformance.core.observation import BatchSeen, Observation, Row
from conformance.core.values import show
from conformance.judging.finding import FindingLocation, ReplayDiffers, WitnessesDisagree


def disagreements(case: Case, observation: Observation) -> Iterator[WitnessesDisagree]:
    """Every micro-batch whose watermark is not the same in all records.

    The progress has no watermark if the query has none, which is not a disagreement. The commit log is compared only between
    consecutive ids, since a replayed micro-batch has the id of the one before it.
    """
    before: BatchSeen | None = None
    for step in observation.steps:
        for batch in step.batches:
            place = FindingLocation.of_step(case, step.number, (batch.id,))
            if batch.watermark is not None and batch.watermark != batch.logged:
                yield WitnessesDisagree(
                    place=place,
                    expected=_shown(batch.logged),
                    observed=_shown(batch.watermark),
                    witness="progress",
                )
            follows = before is not None and batch.id == before.id + 1
            if before is not None and follows and before.next_watermark not in (None, batch.logged):
                yield WitnessesDisagree(
                    place=place,
                    expected=_shown(batch.logged),
                    observed=_shown(before.next_watermark),
                    witness="commit log of the batch before",
                )
            before = batch


def state_disagreements(case: Case, observation: Observation) -> Iterator[WitnessesDisagree]:
    """Every step after which the state in the checkpoint does not have as many rows as the progress says."""
    for step in observation.steps:
        if step.stored is None:
            continue
        last = step.batches[-1]
        counted: tuple[int | None, ...] = last.state
        stored = tuple(one.rows for one in step.stored)
        # What a processor keeps in variables is not counted.
        if len(stored) == len(counted):
            counted = tuple(rows if other is not None else None for rows, other in zip(counted, stored, strict=True))
        if counted != stored:
            yield WitnessesDisagree(
                aspect="state",
                place=FindingLocation.of_step(case, step.number, (last.id,)),
                expected=counted,
                observed=stored,
                witness="data source statestore",
            )


def lost_or_doubled(case: Case, observation: Observation) -> Iterator[ReplayDiffers]:
    """Every micro-batch that emitted different rows before a kill and when it ran again.

    If the restart changes the query or a setting, the expectations of the case apply instead.
    """
    for step in observation.steps:
        action = case.steps[step.number - 1].action
        if step.interrupted is None or not isinstance(action, Restart) or action.change.model_fields_set:
            continue
        again = next((batch for batch in step.batches if batch.id == step.interrupted.id), None)
        if again is not None and _counted(again.rows) != _counted(step.interrupted.rows):
            place = FindingLocation.of_step(case, step.number, (again.id,))
            yield ReplayDiffers(place=place, expected=step.interrupted.rows, observed=again.rows)


def _counted(rows: tuple[Row, ...]) -> Counter[str]:
    return Counter(json.dumps(row) for row in rows)


def _shown(millis: int | None) -> str | None:
    return None if millis is None else show(millis * 1000)
