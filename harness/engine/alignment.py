"""Checks that rows meant for one micro-batch were seen in one.

Two file sources are not atomic: a micro-batch may be planned between two renames. The driver holds the query's progress lock while it
places files; this checks from the sources' own offsets that it worked.
"""

from __future__ import annotations

from conformance.core.observation import BatchSeen, Observation
from harness.engine.protocol import CaseRequest, StepRequest


class SplitBatch(Exception):
    """Rows of one ``add`` or one ``backlog`` entry were seen in several micro-batches: the run must be repeated, not judged."""

    def __init__(self, step: int, batches: tuple[int, ...]) -> None:
        ids = ", ".join(str(batch) for batch in batches)
        super().__init__(f"the rows of step {step} were split over micro-batches {ids}")
        self.step = step
        self.batches = batches


def check_alignment(request: CaseRequest, observation: Observation) -> None:
    """Compare each step's data batches with what was placed.

    Raises:
        SplitBatch: a step has more data batches than entries, or two streams of one entry moved in different ones.
    """
    trigger = request.trigger
    # A process that resumes another's checkpoint may first replay what that one did not commit.
    replay_pending = request.first > 1 and trigger != "default"
    for step, seen in zip(request.steps, observation.steps, strict=False):
        if step.action == "kill":
            # The next process reports what came after the kill.
            if sum(batch.kind == "data" for batch in seen.batches) > len(step.batches):
                raise SplitBatch(seen.number, tuple(batch.id for batch in seen.batches))
            continue
        if step.action == "restart":
            trigger = (step.change and step.change.trigger) or trigger
            # A run of `once` or `availableNow` first replays what was not committed.
            replay_pending = trigger != "default"
            continue
        data = tuple(batch for batch in seen.batches if batch.kind == "data")
        if seen.error is None and not replay_pending and step.batches and _split(step, data):
            raise SplitBatch(seen.number, tuple(batch.id for batch in data))
        replay_pending = replay_pending and not seen.batches


def _split(step: StepRequest, data: tuple[BatchSeen, ...]) -> bool:
    if len(data) > len(step.batches):
        return True
    arrived = set().union(*step.batches)
    for batch in data:
        moved = {source.stream for source in batch.sources if source.moved}
        # Streams that the query does not read at the moment cannot move.
        read = arrived & {source.stream for source in batch.sources}
        if not read <= moved:
            return True
    return False
