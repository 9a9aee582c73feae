"""Hazelcast Jet's throttles and frames against the tables of WatermarkEmissionPolicyTest and WindowDefinitionTest."""

import pytest

from conformance.policies.rules import (
    ByFrame,
    FrameBorder,
    Frames,
    InvalidParameter,
    MinStep,
    SuppressDuplicates,
    Throttle,
)
from conformance.policies.trace import MIN
from tests.support.java_longs import MAX

TUMBLING_3 = Frames(3)
BY_MIN_STEP = [(2, 2), (3, None), (4, 4), (6, 6), (9, 9), (10, None), (11, 11)]
BY_FRAME = [(MIN, None), (2, 2), (3, 3), (4, None), (5, None), (6, 6), (13, 13), (14, None), (15, 15)]
BY_FRAME_0_6 = [(MIN, None), (2, 0), (3, 3), (4, None), (5, None), (6, 6), (13, 12), (14, None), (15, 15)]


@pytest.mark.parametrize(
    ("throttle", "table"),
    [
        pytest.param(MinStep(2), BY_MIN_STEP, id="when_wmIncreasing_then_throttleByMinStep"),
        pytest.param(ByFrame(TUMBLING_3), BY_FRAME, id="when_wmIncreasing_then_throttleByFrame"),
        pytest.param(FrameBorder(TUMBLING_3), BY_FRAME_0_6, id="the same in 0.6"),
        pytest.param(
            SuppressDuplicates(), [(MIN, None), (2, 2), (2, None), (1, None), (3, 3)], id="suppressDuplicates"
        ),
    ],
)
def test_what_is_emitted(throttle: Throttle, table: list[tuple[int, int | None]]) -> None:
    last = MIN
    for current, emitted in table:
        found = throttle.emit(current, last)
        assert found == emitted, current
        last = last if found is None else found


@pytest.mark.parametrize(("last", "step", "current"), [(10, MAX, 10), (MAX - 1, 2, 5), (2, MAX - 1, MIN)])
def test_the_least_next_watermark_overflows(last: int, step: int, current: int) -> None:
    """``currentWm >= lastEmittedWm + minStep`` of ``WatermarkEmissionPolicy.emitByMinStep`` in 0.5."""
    assert MinStep(step).emit(current, last) == current


FRAMES: dict[tuple[int, int], list[tuple[int, int]]] = {
    (4, 0): [
        (-5, -8),
        *((ts, -4) for ts in range(-4, 0)),
        *((ts, 0) for ts in range(4)),
        *((ts, 4) for ts in range(4, 8)),
        (8, 8),
    ],
    (4, 1): [
        (-4, -7),
        *((ts, -3) for ts in range(-3, 1)),
        *((ts, 1) for ts in range(1, 5)),
        *((ts, 5) for ts in range(5, 9)),
        (9, 9),
    ],
    (4, 2): [
        *((ts, -6) for ts in (-4, -3)),
        *((ts, -2) for ts in range(-2, 2)),
        *((ts, 2) for ts in range(2, 6)),
        *((ts, 6) for ts in range(6, 10)),
    ],
}
"""WindowDefinitionTest: length and offset → timestamp, and the border at or below it."""


@pytest.mark.parametrize(
    ("frames", "timestamp", "floor"),
    [pytest.param(Frames(*frames), *row, id=f"{frames}: {row[0]}") for frames, rows in FRAMES.items() for row in rows],
)
def test_borders_of_frames(frames: Frames, timestamp: int, floor: int) -> None:
    assert frames.floor(timestamp) == floor


def test_borders_at_the_ends_of_time() -> None:
    assert Frames(3).floor(MIN) == MIN
    assert Frames(4, 3).floor(MIN + 2) == MIN
    assert Frames(4, 3).floor(MAX) == MAX


@pytest.mark.parametrize(("length", "offset"), [(0, 0), (4, 4), (4, -1)])
def test_no_frames(length: int, offset: int) -> None:
    with pytest.raises(InvalidParameter):
        Frames(length, offset)
