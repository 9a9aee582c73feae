"""The checkpoints of a job: those with the same verdict are one answer, the worst first."""

from __future__ import annotations

from conformance.core.observation import ErrorSeen
from conformance.judging.checkpoint_verdict import CheckpointVerdict
from conformance.own_job.verdict import grouped

GONE, LOST = (ErrorSeen(stage="run", classes=(name,), message="it is gone") for name in ("STATE_GONE", "STATE_LOST"))


def test_the_worst_comes_first_and_the_same_verdicts_together() -> None:
    resumed, refused = CheckpointVerdict("resumed"), CheckpointVerdict("refused", GONE)
    found = [
        (2, resumed),
        (3, refused),
        (4, CheckpointVerdict("other rows", difference="step 4")),
        (5, refused),
        (6, CheckpointVerdict("refused", GONE, fails_anyway=True)),
        (7, CheckpointVerdict("no answer", reason="the engine was lost")),
        (8, CheckpointVerdict("refused", LOST)),
    ]
    assert [(group.verdict.outcome, group.verdict.fails_anyway, group.steps) for group in grouped(found)] == [
        ("refused", False, (3, 5)),
        ("refused", False, (8,)),
        ("other rows", False, (4,)),
        ("no answer", False, (7,)),
        ("refused", True, (6,)),
        ("resumed", False, (2,)),
    ]
