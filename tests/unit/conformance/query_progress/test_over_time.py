"""What pictures show of a query does not grow with its micro-batches, and loses no extreme."""

from itertools import pairwise

import pytest

from conformance.query_progress.answer import explain_progress
from conformance.query_progress.over_time import DROPPED, NEWEST, OLDEST, WATERMARK, OverTime, Series
from conformance.query_progress.tracks import Queries
from conformance.query_progress.wire import Progress
from tests.unit.conformance.query_progress.lines import START, progress

STATE = Series("state", "stateStoreSave")
MINUTE = 60_000


def over_time(*progresses):
    queries = Queries(pictured=True)
    queries.read(map(Progress.model_validate, progresses))
    (query,) = queries.by_id.values()
    return query.over_time


def test_a_point_has_what_the_progress_of_a_micro_batch_says():
    state = {"stateStoreSave": 4}
    first = progress(0, low=1, high=2, mark="1970-01-01T00:00:00.000Z", state=state, sources=[2, 1])
    idle = progress(0, ran=False, mark=None)
    last = progress(1, low=-9, high=3, mark=-8, state=state, dropped=1, runId="c" * 8, sources=[2, 1])
    one, two = over_time(first, idle, last).points
    assert one.values == {
        NEWEST: START + 2 * MINUTE,
        OLDEST: START + MINUTE,
        Series("rows", "source 0 S0"): 2,
        Series("rows", "source 1 S1"): 1,
        Series("rows", "rows out"): 0,
        STATE: 4,
        DROPPED: 0,
    }
    assert (one.batch, one.clock, one.begins) == (0, START, False)
    assert (two.batch, two.clock, two.begins) == (1, START + MINUTE, True)
    assert two.values.items() >= {WATERMARK: START - 8 * MINUTE, DROPPED: 1}.items()


def test_progress_is_kept_over_time_only_for_a_page():
    (query,) = explain_progress([progress(0)]).queries
    assert query.query.over_time.points == []


@pytest.mark.parametrize("count", [1, 1_999, 2_000, 2_001, 8_000, 100_000])
def test_points_of_many_micro_batches_have_their_extremes_in_order(count):
    made = OverTime()
    for batch in range(count):
        values = {WATERMARK: batch, STATE: 1_000 if batch == count // 2 else batch % 7, DROPPED: batch == count // 3}
        made.add(batch, batch * 10, values, begins=batch in (0, count - 1))
    points = made.points
    assert len(points) <= 2_001
    assert (points[0].batch, points[-1].batch) == (0, count - 1)
    assert [point.begins for point in points].count(True) == (count > 1)
    assert all(a.batch < b.batch and a.clock < b.clock for a, b in pairwise(points))
    assert [point.values[WATERMARK] for point in points] == [point.batch for point in points]
    (highest,) = (point for point in points if point.values[STATE] == 1_000)
    assert abs(highest.batch - count // 2) < made.thinned
    assert sum(point.values[DROPPED] for point in points) == 1
    apart = {b.batch - a.batch for a, b in zip(points[::2], points[2::2], strict=False)}
    assert apart <= {made.thinned} if made.thinned > 1 else count < 2_000
