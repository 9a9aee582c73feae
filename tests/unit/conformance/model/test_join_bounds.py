"""The bound of a side by the condition of a join. Source: Spark's `StreamingJoinHelperSuite`, whose conditions and values these are."""

import pytest

from conformance.core.spark_types import parse_schema
from conformance.core.versions import SparkVersion
from conformance.model.catalogue import rules_of
from conformance.model.columns import Ids
from conformance.model.errors import Refused
from conformance.model.frame import Frame
from conformance.model.join_bounds import KeyBound, RangeBound, bounds, equalities, lower_bounds

NEWEST = rules_of(SparkVersion(4, 3, 0))
WATERMARK_MS = 10_000


def joined(condition, rules=NEWEST, how="inner"):
    ids = Ids()
    left = Frame.read("left", parse_schema("leftTime TIMESTAMP, leftOther INT"), rules, ids)
    right = Frame.read("right", parse_schema("rightTime TIMESTAMP, rightOther INT"), rules, ids)
    return (
        left.with_watermark("leftTime", "1 hour").join(right.with_watermark("rightTime", "1 hour"), condition, how).plan
    )


def bound_ms(condition, rules=NEWEST, side=0):
    """The bound of the left side (0) or the right side (1) at watermark 10 s; None if there is none."""
    bound = bounds(joined(condition, rules))[side]
    return bound.state_watermark_ms(WATERMARK_MS, rules) if isinstance(bound, RangeBound) else None


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        # The direction.
        ("leftTime > rightTime", 10000),
        ("leftTime >= rightTime", 9999),
        ("leftTime < rightTime", None),
        ("leftTime <= rightTime", None),
        ("rightTime > leftTime", None),
        ("rightTime >= leftTime", None),
        ("rightTime < leftTime", 10000),
        ("rightTime <= leftTime", 9999),
        # Casts.
        ("CAST(leftTime AS LONG) > CAST(rightTime AS LONG)", 10000),
        ("CAST(leftTime AS LONG) < CAST(rightTime AS LONG)", None),
        ("CAST(leftTime AS DOUBLE) > CAST(rightTime AS DOUBLE)", 10000),
        ("CAST(leftTime AS LONG) > CAST(rightTime AS DOUBLE)", 10000),
        ("CAST(leftTime AS LONG) > CAST(rightTime AS FLOAT)", 10000),
        ("CAST(leftTime AS DOUBLE) > CAST(rightTime AS FLOAT)", 10000),
        ("CAST(leftTime AS STRING) > CAST(rightTime AS STRING)", None),
        # Intervals.
        ("leftTime > rightTime + interval 1 second", 11000),
        ("leftTime + interval 2 seconds > rightTime", 8000),
        ("leftTime > rightTime - interval 3 second", 7000),
        ("rightTime < leftTime - interval 3 second", 13000),
        ("rightTime - interval 1 second < leftTime - interval 3 second", 12000),
        ("leftTime > rightTime + interval '0 00:00:01' day to second", 11000),
        ("leftTime + interval '00:00:02' hour to second > rightTime", 8000),
        ("leftTime > rightTime - interval '00:03' minute to second", 7000),
        ("rightTime < leftTime - interval '1 20:30:40' day to second", 160250000),
        ("rightTime - interval 1 second < leftTime - interval '20:15:32' hour to second", 72941000),
        # Numbers.
        ("CAST(leftTime AS LONG) > CAST(rightTime AS LONG) + 1", 11000),
        ("CAST(leftTime AS LONG) > CAST(rightTime AS LONG) - 1", 9000),
        ("CAST(leftTime AS LONG) > CAST((rightTime + interval 1 second) AS LONG)", 11000),
        ("CAST(leftTime AS LONG) > 2 + CAST(rightTime AS LONG)", 12000),
        ("CAST(leftTime AS LONG) > -0.5 + CAST(rightTime AS LONG)", 9500),
        ("CAST(leftTime AS LONG) - CAST(rightTime AS LONG) > 2", 12000),
        ("-CAST(rightTime AS DOUBLE) + CAST(leftTime AS LONG) > 0.1", 10100),
        ("0 > CAST(rightTime AS LONG) - CAST(leftTime AS LONG) + 0.2", 10200),
        ("CAST(leftTime AS LONG) + 2 > CAST(rightTime AS LONG)", 8000),
        ("1 + CAST(leftTime AS LONG) > CAST(rightTime AS LONG)", 9000),
        ("CAST((leftTime  + interval 3 second) AS LONG) > CAST(rightTime AS LONG)", 7000),
        ("CAST(leftTime AS LONG) - 2 > CAST(rightTime AS LONG)", 12000),
        ("CAST(leftTime AS LONG) + 0.5 > CAST(rightTime AS LONG)", 9500),
        ("CAST(leftTime AS LONG) - CAST(rightTime AS LONG) - 2 > 0", 12000),
        ("-CAST(rightTime AS LONG) + CAST(leftTime AS LONG) - 0.1 > 0", 10100),
        ("CAST(leftTime AS LONG) - 2.0 > CAST(rightTime AS LONG) + 1", 13000),
        # Several conditions: the lowest bound.
        ("leftTime > rightTime - interval 3 second AND rightTime < leftTime + interval 2 seconds", 7000),
        ("leftTime > rightTime - interval 3 second AND rightTime < leftTime + interval 4 seconds", 6000),
        # What gives none.
        ("cast(leftTime AS LONG) > leftOther", None),
        ("leftOther > rightOther", None),
        ("leftOther > rightOther AND leftTime > rightTime", 10000),
        ("cast(rightTime AS DOUBLE) < rightOther", None),
        ("leftTime > rightTime + interval 1 month", None),
        # Without the other side, and at or below zero.
        ("cast(leftTime AS LONG) > 10", 10000),
        ("CAST(leftTime AS LONG) > CAST(rightTime AS LONG) - 10", 0),
        ("CAST(leftTime AS LONG) > CAST(rightTime AS LONG) - 100", -90000),
    ],
)
def test_the_conditions_of_sparks_suite(condition, expected):
    assert bound_ms(condition) == expected


def test_each_side_has_its_own_bound():
    condition = "leftTime BETWEEN rightTime - INTERVAL 10 SECONDS AND rightTime + INTERVAL 5 SECONDS"
    assert (bound_ms(condition), bound_ms(condition, side=1)) == (-1, 4999)


@pytest.mark.parametrize(
    ("condition", "at_the_start", "in_a_micro_batch"),
    [
        ("leftTime > rightTime - make_dt_interval(0, 0, 0, 3)", False, True),
        ("leftTime > to_timestamp(rightTime)", False, True),
        ("leftTime > rightTime - INTERVAL 3 SECONDS", True, True),
        ("rightTime - leftTime < INTERVAL 3 SECONDS", False, False),
        ("leftTime > date_trunc('HOUR', rightTime)", False, False),
        ("leftTime > CAST(CAST(rightTime AS LONG) AS TIMESTAMP)", True, True),
    ],
)
def test_the_checks_at_the_start_do_not_compute(condition, at_the_start, in_a_micro_batch):
    """`UnsupportedOperationChecker` reads the analysed plan, in which constants are not folded and functions not replaced."""
    plan = joined(condition)
    for folded, expected in ((False, at_the_start), (True, in_a_micro_batch)):
        assert bool(lower_bounds(plan.left.columns, plan.right.columns, plan, folded=folded)) == expected


@pytest.mark.parametrize(
    ("condition", "of_3_0", "of_4_1", "of_4_2_1"),
    [
        ("leftTime > rightTime - INTERVAL 1 SECOND - INTERVAL 1 SECOND", 9000, 9000, 8000),
        ("leftTime + INTERVAL 1 SECOND > rightTime - INTERVAL 1 SECOND", 9000, 8000, 8000),
        ("INTERVAL 1 SECOND + leftTime > rightTime - INTERVAL 1 SECOND", 9000, 8000, 8000),
        ("CAST(leftTime AS LONG) + 1 > CAST(rightTime AS LONG) - 1", 9000, 9000, 8000),
        ("leftTime + INTERVAL 1 SECOND > rightTime - INTERVAL 2 SECONDS", 7000, 7000, 7000),
        ("leftTime - INTERVAL 1 SECOND > rightTime - INTERVAL 1 SECOND", 10000, 10000, 10000),
    ],
)
def test_equal_terms_counted_once_before_4_2_1(condition, of_3_0, of_4_1, of_4_2_1):
    for version, expected in (("3.0.3", of_3_0), ("4.1.4", of_4_1), ("4.2.0", of_4_1), ("4.2.1", of_4_2_1)):
        assert bound_ms(condition, rules_of(SparkVersion.parse(version))) == expected


def test_a_null_safe_equality_is_a_key_without_an_event_time():
    plan = joined("leftOther <=> rightOther AND leftTime = rightTime")
    assert [pair.null_safe for pair in equalities(plan)] == [True, False]
    assert isinstance(bounds(plan)[0], KeyBound)
    assert bounds(joined("leftOther = rightOther AND leftTime <=> rightTime")) == (None, None)


def test_differences_of_times_cannot_be_compared_before_3_2():
    with pytest.raises(Refused, match="does not support ordering on type interval"):
        joined("rightTime - leftTime < INTERVAL 3 SECONDS", rules_of(SparkVersion.parse("3.1.3")))
