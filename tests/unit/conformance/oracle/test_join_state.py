"""The calculator of a join's evictions, proved by the cases whose evictions are proved on every Spark."""

import pytest

from conformance.core.values import instant_ms
from conformance.core.versions import SparkVersion
from conformance.oracle.join_state import CannotTell, JoinInput, join_state
from conformance.suite import discovery

NEWEST = SparkVersion(4, 3, 0)
NOON = instant_ms("12:00")
MINUTE = 60_000
BOUNDS = discovery.load([discovery.shipped() / "join-delays" / "range-bounds-the-state.yaml"]).cases


def on_times(case):
    """The condition of a case without its equality of keys."""
    (joined,) = (operation for operation in case.operations() if operation.name == "join")
    return joined.on.removeprefix("left_key = right_key AND ")


@pytest.mark.parametrize("case", BOUNDS, ids=lambda case: case.expansion)
def test_the_rows_in_the_state_are_those_that_the_calculator_keeps(case):
    """Each step of the case expects how many rows of both sides are kept at its watermark."""
    inputs = JoinInput("left_time", "1 hour"), JoinInput("right_time", "1 hour")
    condition = on_times(case)
    if "_number" in condition:
        condition = "left_time > right_time"
    arrived = []
    assert len(case.steps) == 4
    for step in case.steps:
        for side, rows in step.action.streams.items():
            arrived += [(side, instant_ms(row[1])) for row in rows.partitions[0]]
        watermark = instant_ms(step.expect.watermark)
        kept = 0
        for side, at in arrived:
            of_left, of_right = join_state(condition, *inputs, NEWEST, at)
            until = (of_left if side == "left" else of_right).watermark_ms
            kept += until is None or until > watermark
        assert kept == step.expect.state, step.name


def test_there_are_cases_to_prove_it_by():
    assert len(BOUNDS) >= 20


def test_the_watermark_is_there_once_every_input_is_far_enough_ahead():
    left, right = join_state(
        "click_time BETWEEN impression_time AND impression_time + INTERVAL 1 HOUR",
        JoinInput.parse("impression_time 10 minutes"),
        JoinInput.parse("click_time 20 minutes"),
        NEWEST,
        NOON,
    )
    # <= keeps a row one millisecond longer: cases/join-delays/inclusive-bound-waits-one-millisecond-longer.
    assert left.watermark_ms == NOON + 60 * MINUTE + 1
    assert dict(left.seen_ms) == {"impression_time": NOON + 70 * MINUTE + 1, "click_time": NOON + 80 * MINUTE + 1}
    assert right.watermark_ms == NOON + 1
    said = "left: a row at impression_time = 12:00 is evicted when the watermark reaches 13:00:00.001"
    assert str(left).startswith(said)


def test_equal_event_times_are_evicted_at_that_time_by_one_watermark():
    """cases/join-delays/one-watermark-bounds-both-sides-of-joined-windows: a key bounds both sides."""
    for one in join_state("a = b", JoinInput("a", "1 hour"), JoinInput("b"), NEWEST, NOON):
        assert one.watermark_ms == NOON
        assert dict(one.seen_ms) == {"a": NOON + 60 * MINUTE}


@pytest.mark.parametrize(
    ("condition", "left", "right"),
    [
        ("a > b", "a 1 hour", "b"),
        ("CAST(a AS STRING) > CAST(b AS STRING)", "a 1 hour", "b 1 hour"),
        ("a > b - INTERVAL 1 MONTH", "a 1 hour", "b 1 hour"),
    ],
)
def test_without_a_bound_a_row_is_never_evicted(condition, left, right):
    of_left, _ = join_state(condition, JoinInput.parse(left), JoinInput.parse(right), NEWEST, NOON)
    assert of_left.watermark_ms is None
    assert str(of_left) == "left: a row at a = 12:00 is never evicted"


@pytest.mark.parametrize(
    ("condition", "left", "said"),
    [
        ("a > b", "a 1 hou", "'1 hou' is not a delay"),
        ("a > b AND k = j", "a 1 hour", "leave out conditions on other columns"),
        ("a >", "a 1 hour", "does not know the syntax"),
        ("a > b", "a;b 1 hour", "'a;b' is not a column"),
        ("a > b", "", "'' is not a column"),
    ],
)
def test_what_is_wrong_is_said(condition, left, said):
    with pytest.raises(CannotTell, match=said) as caught:
        join_state(condition, JoinInput.parse(left), JoinInput("b", "1 hour"), NEWEST, NOON)
    assert caught.value.exit_code == 2
