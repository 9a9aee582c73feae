"""What a micro-batch tells of its event times, and the watermark above a join."""

import pytest

from conformance.core.spark_types import parse_schema
from conformance.core.versions import SparkVersion
from conformance.model.catalogue import rules_of
from conformance.model.columns import Ids
from conformance.model.frame import Frame
from conformance.model.watermark import EventTimeStatistics, input_watermarks

NEWEST = rules_of(SparkVersion(4, 3, 0))


@pytest.mark.parametrize(
    ("times_ms", "average"), [([1, 2], 1), ([1, 2, 2], 1), ([1, 2, 3], 2), ([-1, -2, -2], -1), ([7], 7)]
)
def test_the_average_is_cut_to_milliseconds(times_ms, average):
    """As `EventTimeStats.avg` becomes a Long: towards zero, never rounded."""
    found = EventTimeStatistics.of([time * 1000 for time in times_ms], is_window=False, rules=NEWEST)
    assert found == EventTimeStatistics(min(times_ms), max(times_ms), average)


def test_without_rows_there_are_no_statistics():
    assert EventTimeStatistics.of([], is_window=False, rules=NEWEST) is None


@pytest.mark.parametrize(
    ("version", "how", "above"),
    [("4.3.0", "leftSemi", 99_999), ("4.2.1", "leftSemi", 89_999), ("4.3.0", "inner", 89_999)],
)
def test_above_a_semi_join_the_watermark_waits_for_the_left_side_alone_since_4_3(version, how, above):
    """The right side waits ten seconds, the left one only for the rows of its own millisecond."""
    rules, ids = rules_of(SparkVersion.parse(version)), Ids()
    left, right = (
        Frame.read(name, parse_schema(f"{name}_t TIMESTAMP, {name}_k STRING"), rules, ids).with_watermark(
            f"{name}_t", "0 seconds"
        )
        for name in ("l", "r")
    )
    joined = left.join(right, "l_k = r_k AND l_t >= r_t AND l_t <= r_t + INTERVAL 10 SECONDS", how)
    plan = joined.drop_duplicates("l_k", "l_t").plan
    assert input_watermarks(plan, 100_000, rules, single=False) == (above, 100_000)
