"""Functions whose value is another in each run: where filters stay because of them, and what is the same in every run."""

import pytest

from conformance.model import sql
from conformance.model.catalyst.optimizer import optimized
from conformance.model.errors import Refused, Unpredictable
from conformance.model.plan import Filter, Watermark, walk
from tests.support.model_frames import SECOND, VERSIONS, played, two_views, watermarked

ABOVE, BELOW = 890, 90
"""The watermark if a filter that removes the row of 900 seconds runs above it, or below."""


def watermark_with(*conditions, version="4.3.0"):
    frame = watermarked(version)
    for condition in conditions:
        frame = frame.where(condition)
    rows, watermark = played(frame, [(100, 1, "a"), (900, 2, "b")])
    assert rows == [[(100 * SECOND, 1, "a")]]
    return watermark


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("conditions", "watermark"),
    [
        (["n < 2 AND rand() + n >= n"], BELOW),
        (["uuid() IS NOT NULL", "n < 2"], ABOVE),
        (["n < 2 OR rand() + n < n"], ABOVE),
        (["n < 2 AND t < now()"], BELOW),
        (["n < 2 OR t > now()"], ABOVE),
    ],
)
def test_filters_pass_beside_what_changes_and_not_below_it(version, conditions, watermark):
    """`CombineFilters`, `PushPredicateThroughNonJoin` and `CurrentBatchTimestamp`; seen on the same versions, and on 3.1.3."""
    assert watermark_with(*conditions, version=version) == watermark


@pytest.mark.parametrize(
    "condition",
    [
        "rand() >= 0",
        "rand() < 2",
        "1 > rand()",
        "-1 < rand()",
        "rand() < 1.5 AND rand(42) >= 0",
        "rand() >= 0 OR n < 0",
        "n < 2 OR rand() < 0",
    ],
)
def test_a_comparison_of_rand_with_a_number_is_not_predicted_since_3_4(condition):
    """Since SPARK-39651 Spark decides some of them before it places filters."""
    assert watermark_with(condition, "n < 2", version="3.3.4") == ABOVE
    with pytest.raises(Unpredictable, match=r"a comparison of rand\(\) with a number"):
        watermark_with(condition, "n < 2", version="3.4.0")


@pytest.mark.parametrize("column", ["rand()", "current_timestamp()", "uuid()"])
def test_a_filter_stays_above_a_column_that_changes(column):
    frame = watermarked().with_column("r", column).where("n < 2")
    plan = optimized(frame.select("t", "n", "r IS NOT NULL AS is").plan, frame.rules)
    lowest = [type(node).__name__ for node in walk(plan) if isinstance(node, Filter | Watermark)]
    assert lowest == ["Filter", "Watermark"]


@pytest.mark.parametrize("column", ["rand()", "current_timestamp()", "uuid()"])
def test_an_unused_column_that_changes_is_not_predicted(column):
    """`ColumnPruning` takes the column away before filters are placed."""
    frame = watermarked().with_column("r", column).where("n < 2").select("t", "n")
    with pytest.raises(Unpredictable, match="an unused column whose value is another in each run"):
        played(frame, [(100, 1, "a")])


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("rand() + n < 5.5", "rand that depends on chance"),
        ("rand(42) + n > 5.1", "rand that depends on chance"),
        ("n < 2 OR rand() + n < 5.5", "rand that depends on chance"),
        ("rand() % 0.5 < 1", "a comparison with rand that may differ"),
        ("rand() < rand()", "a comparison with rand and rand that may differ"),
        ("randn() < 9", "a comparison with randn that may differ"),
        ("uuid() < 'a'", "a comparison with uuid that may differ"),
        ("rand() = n", "rand, whose value is another in each run"),
    ],
)
def test_a_sample_of_rows_is_not_predicted(condition, reason):
    """Spark gives random numbers a new seed in each micro-batch, so not even ``rand(42)`` repeats: `IncrementalExecution`."""
    with pytest.raises(Unpredictable, match=reason):
        played(watermarked().where(condition), [(100, 5, "a")])


def test_rows_that_no_random_number_can_change_are_predicted():
    assert played(watermarked().where("n < 2 AND rand() + n < 5.5"), [(100, 5, "a")]) == ([[]], 0)
    condition = "n < 2 OR rand() + n < 1.5"
    assert played(watermarked().where(condition), [(100, 1, "a")]) == ([[(100 * SECOND, 1, "a")]], 90)


@pytest.mark.parametrize(
    ("how", "version", "found"),
    [
        ("join", "3.4.4", "nondeterministic expressions are only allowed"),
        ("join", "3.5.9", "expects a deterministic expression"),
        ("aggregate", "3.0.3", "should not appear in the arguments of an aggregate function"),
        ("aggregate", "4.3.0", "should not appear in the arguments of an aggregate function"),
        ("distinct", "3.0.3", "Distinct aggregations are not supported"),
        ("distinct", "4.3.0", "Distinct aggregations are not supported"),
        ("id", "4.3.0", "monotonically_increasing_id.* is not supported"),
    ],
)
def test_what_may_not_be_random_and_what_only_a_batch_computes_is_refused(how, version, found):
    view = watermarked(version)
    joined = "SELECT v.n FROM v JOIN w ON v.t = w.t AND rand() < 0.5"
    queries = {
        "join": lambda: sql.run(joined, two_views(version)),
        "aggregate": lambda: view.group_by(["s"], ["count(rand()) AS c"]),
        "distinct": lambda: played(view.group_by(["s"], ["count(DISTINCT n) AS c"]), mode="update"),
        "id": lambda: played(view.select("monotonically_increasing_id() AS id")),
    }
    with pytest.raises(Refused, match=found):
        queries[how]()


@pytest.mark.parametrize("function", ["first", "last", "collect_list", "max"])
def test_a_filter_on_a_key_goes_below_an_aggregation_by_order_since_3_3(function):
    """SPARK-32940."""
    for version, expected in (("3.2.4", BELOW if function == "max" else ABOVE), ("3.3.0", BELOW)):
        frame = watermarked(version).group_by(["n"], [f"{function}(s) AS found"]).where("n < 2").select("n")
        assert played(frame, [(100, 1, "a"), (900, 2, "b")], mode="update") == ([[(1,)]], expected)
