"""What becomes of a checkpoint: always beside a restart on the version that wrote it."""

from __future__ import annotations

import pytest

from conformance.core.observation import ErrorSeen, Observation, OwnCodeError
from conformance.own_job.handoffs import grouped, judge_handoff
from tests.support.observations import COLUMNS, batch, step, window

ERROR = ErrorSeen(stage="run", classes=("STATE_STORE_GONE",), message="it is gone")


def seen(total: int = 1, **keys: object) -> Observation:
    steps = (step(1, batch(0)), step(2, batch(1, window("12:00", "12:10", total), **keys)))
    return Observation.of("case", COLUMNS, steps)


def failed() -> Observation:
    return Observation.of("case", COLUMNS, (step(1, batch(0)), step(2, error=ERROR)))


MISTAKE = ErrorSeen(
    stage="run",
    classes=("PythonException",),
    message="it raised",
    own_code=OwnCodeError(raised="KeyError('fee')", at="acme/totals.py:12", during="in a UDF"),
)


def failed_later(error: ErrorSeen = ERROR) -> Observation:
    steps = (step(1, batch(0)), step(2, batch(1, window("12:00", "12:10", 1))), step(3, error=error))
    return Observation.of("case", COLUMNS, steps)


def with_a_mistake() -> Observation:
    return Observation.of("case", COLUMNS, (step(1, batch(0)), step(2, error=MISTAKE)))


@pytest.mark.parametrize(
    ("restarted", "resumed", "met"),
    [
        (seen(), seen(), "resumed"),
        (seen(), seen(2), "other rows"),
        (seen(), seen(state=(7,)), "resumed"),
        (seen(), failed(), "refused"),
        (seen(), failed_later(), "fails"),
        (seen(), with_a_mistake(), "fails"),
        (failed(), failed(), "fails everywhere"),
        (failed(), seen(), "resumed"),
        (seen(), None, "unknown"),
        (None, seen(), "unknown"),
    ],
)
def test_it_meets(restarted: Observation | None, resumed: Observation | None, met: str) -> None:
    assert judge_handoff(2, restarted, resumed, "the engine was lost").met == met


def test_the_worst_is_told_first_and_what_is_the_same_once() -> None:
    found = [
        judge_handoff(2, seen(), seen(), None),
        judge_handoff(3, seen(), failed(), None),
        judge_handoff(4, seen(), seen(2), None),
        judge_handoff(5, seen(), failed(), None),
    ]
    assert [(group.met, group.steps) for group in grouped(found)] == [
        ("refused", (3, 5)),
        ("other rows", (4,)),
        ("resumed", (2,)),
    ]
