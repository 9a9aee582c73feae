"""The event times that a micro-batch reports."""

import pytest

from conformance.core.versions import SparkVersion
from conformance.model.catalogue import rules_of
from conformance.model.watermark import EventTimeStatistics

NEWEST = rules_of(SparkVersion(4, 3, 0))


@pytest.mark.parametrize(
    ("times_ms", "average"), [([1, 2], 1), ([1, 2, 2], 1), ([1, 2, 3], 2), ([-1, -2, -2], -1), ([7], 7)]
)
def test_the_average_is_cut_to_milliseconds(times_ms, average):
    """As `EventTimeStats.avg` becomes a Long: towards zero, never rounded."""
    found = EventTimeStatistics.of([time * 1000 for time in times_ms], is_window=False, rules=NEWEST)
    assert found == EventTimeStatistics(min(times_ms), max(times_ms), average)
