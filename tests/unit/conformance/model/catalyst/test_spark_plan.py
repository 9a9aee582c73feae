"""Which columns a join's inputs have as NOT NULL, as the physical plans of Spark 3.5.9 were seen to have them.

A plan was read after each of three micro-batches: with rows of both streams, of the left alone and of the right alone. What is seen is
written as names, with ``!`` for NOT NULL and ``?`` for nullable.
"""

import pytest

from conformance.core.spark_types import parse_schema
from conformance.core.versions import SparkVersion
from conformance.model.catalogue import rules_of
from conformance.model.catalyst.optimizer import optimized, required_columns
from conformance.model.catalyst.spark_plan import SparkPlan, not_null_in_state
from conformance.model.columns import Ids
from conformance.model.errors import Unpredictable
from conformance.model.frame import Frame
from conformance.model.plan import Join

RULES = rules_of(SparkVersion.parse("3.5.9"))
EQUAL = "key = okey"
RANGE = "key = okey AND ot >= et AND ot <= et + INTERVAL 5 SECONDS"


def streams(*, watermarks):
    ids = Ids()
    left = Frame.read("left", parse_schema("et TIMESTAMP, key STRING, n INT"), RULES, ids)
    right = Frame.read("right", parse_schema("ot TIMESTAMP, okey STRING, m INT"), RULES, ids)
    if watermarks:
        return left.with_watermark("et", "10 seconds"), right.with_watermark("ot", "10 seconds")
    return left, right


def times_before(left, right, *columns):
    mine = left.where("et IS NOT NULL").select(*columns).with_watermark("et", "10 seconds")
    return mine.join(right.with_watermark("ot", "10 seconds"), RANGE, "inner")


QUERIES = {
    "inner": lambda left, right: left.join(right, EQUAL, "inner"),
    "in a range": lambda left, right: left.join(right, RANGE, "inner"),
    "outer": lambda left, right: left.join(right, RANGE, "leftOuter"),
    "narrowed": lambda left, right: left.select("et", "key").join(right.select("ot", "okey"), EQUAL, "inner"),
    "filtered": lambda left, right: left.where("n > 1").join(right.where("m > 1"), EQUAL, "inner"),
    "times": lambda left, right: left.join(right, "et = ot", "inner"),
    "deduplicated": lambda left, right: left.where("n > 1").drop_duplicates("key", "et").join(right, EQUAL, "inner"),
    "limited": lambda left, right: left.where("n > 1").limit(5).join(right, EQUAL, "inner"),
    "times before": lambda left, right: times_before(left, right, "et", "key", "n"),
    # A projection between the filter and the watermark: the filter above the watermark is superfluous, and says nothing.
    "in another order": lambda left, right: times_before(left, right, "n", "key", "et AS et"),
    "computed": lambda left, right: left.with_column("k2", "upper(key)").join(
        right.with_column("o2", "upper(okey)"), "k2 = o2", "inner"
    ),
}


@pytest.mark.parametrize(
    ("query", "watermarks", "both", "left_alone", "right_alone"),
    [
        ("inner", False, "et? key! n? ot? okey! m?", "et? key! n? ot? okey? m?", "et? key? n? ot? okey! m?"),
        ("inner", True, "et? key! n? ot? okey! m?", "et? key! n? ot? okey? m?", "et? key? n? ot? okey! m?"),
        ("in a range", True, "et! key! n? ot! okey! m?", "et! key! n? ot! okey? m?", "et! key? n? ot! okey! m?"),
        ("outer", True, "et? key? n? ot! okey! m?", "et? key? n? ot! okey? m?", "et? key? n? ot! okey! m?"),
        ("narrowed", True, "et? key! ot? okey!", "et? key! ot? okey?", "et? key? ot? okey!"),
        ("filtered", False, "et? key! n! ot? okey! m!", "et? key! n! ot? okey? m?", "et? key? n? ot? okey! m!"),
        ("filtered", True, "et? key! n! ot? okey! m!", "et? key! n! ot? okey? m?", "et? key? n? ot? okey! m!"),
        ("times", True, "et! key? n? ot! okey? m?", "et! key? n? ot! okey? m?", "et! key? n? ot! okey? m?"),
        ("deduplicated", True, "et? key! n! ot? okey! m?", "et? key! n! ot? okey? m?", "et? key! n? ot? okey! m?"),
        ("limited", True, "et? key! n! ot? okey! m?", "et? key! n! ot? okey? m?", "et? key! n? ot? okey! m?"),
        ("times before", False, "et! key! n? ot! okey! m?", "et! key! n? ot! okey? m?", "et! key? n? ot! okey! m?"),
        ("in another order", False, "n? key? et? ot! okey! m?", "n? key? et? ot! okey? m?", "n? key? et! ot! okey! m?"),
        ("computed", True, *["et? key? n? k2? ot? okey? m? o2?"] * 3),
    ],
)
def test_columns_of_a_join(query, watermarks, both, left_alone, right_alone):
    plan = optimized(QUERIES[query](*streams(watermarks=watermarks)).plan, RULES)
    assert isinstance(plan, Join)
    names = [one.name for side in plan.children for one in side.columns]
    for silent, seen in ((), both), (("right",), left_alone), (("left",), right_alone):
        known = not_null_in_state(plan, frozenset(silent), required_columns(plan), RULES)
        assert " ".join(f"{name}{'!' if one else '?'}" for name, one in zip(names, known, strict=True)) == seen


def third(left, *, watermark):
    frame = Frame.read("third", parse_schema("tt TIMESTAMP, tk STRING"), RULES, left.ids)
    return frame.with_watermark("tt", "10 seconds") if watermark else frame


def inner_of_inner(left, right):
    return left.where("n > 1").join(right, EQUAL, "inner").join(third(left, watermark=False), "key = tk", "inner")


def inner_of_narrowed(left, right):
    both = left.join(right, EQUAL, "inner").select("key", "n").where("n > 1")
    return both.join(third(left, watermark=False), "key = tk", "inner")


def inner_of_semi(left, right):
    both = left.where("n > 1").join(right, RANGE, "leftSemi")
    return both.join(third(left, watermark=True), "key = tk", "inner")


def inner_of_outer(left, right):
    both = left.where("n > 1").join(right, RANGE, "leftOuter").select("et", "key", "n", "okey")
    return both.join(third(left, watermark=False), "key = tk", "inner")


@pytest.mark.parametrize(
    ("query", "watermarks", "all_rows", "of_left", "of_right", "of_third"),
    [
        (
            inner_of_inner,
            False,
            "et? key! n! ot? okey! m? tt? tk!",
            "et? key! n! ot? okey? m? tt? tk?",
            "et? key? n? ot? okey! m? tt? tk?",
            "et? key? n? ot? okey? m? tt? tk!",
        ),
        (inner_of_narrowed, False, "key? n? tt? tk!", "key? n? tt? tk?", "key? n? tt? tk?", "key? n? tt? tk!"),
        (
            inner_of_semi,
            True,
            "et! key! n! tt? tk!",
            "et! key! n! tt? tk?",
            "et! key? n? tt? tk?",
            "et! key? n? tt? tk!",
        ),
        (
            inner_of_outer,
            True,
            "et? key? n? okey? tt? tk!",
            "et? key? n? okey? tt? tk?",
            "et? key? n? okey? tt? tk?",
            "et? key? n? okey? tt? tk!",
        ),
    ],
    ids=lambda one: one.__name__ if callable(one) else "",
)
def test_columns_of_a_join_above_a_join(query, watermarks, all_rows, of_left, of_right, of_third):
    """A projection that makes the rows of a join narrower knows nothing of them; a semi join never has the columns of the right."""
    plan = optimized(query(*streams(watermarks=watermarks)).plan, RULES)
    needed = required_columns(plan)
    streams_read = {"left", "right", "third"}
    for active, seen in ((streams_read, all_rows), ({"left"}, of_left), ({"right"}, of_right), ({"third"}, of_third)):
        known = iter(not_null_in_state(plan, frozenset(streams_read - active), needed, RULES))
        columns = [column.name for side in plan.children for column in side.columns if column.id in needed[side]]
        assert " ".join(f"{name}{'!' if next(known) else '?'}" for name in columns) == seen


def test_of_a_union_below_a_join_nothing_is_known():
    """Spark 3.5.9 makes them nullable if two branches have rows, and NOT NULL if a single branch without watermark has."""
    left, right = streams(watermarks=False)
    more = Frame.read("more", parse_schema("et TIMESTAMP, key STRING, n INT"), RULES, left.ids)
    plan = optimized(left.union(more).join(right, EQUAL, "inner").plan, RULES)
    with pytest.raises(Unpredictable, match="which columns of a union are NOT NULL"):
        not_null_in_state(plan, frozenset(), required_columns(plan), RULES)


BY_KEY = (["key"], ["count(*) AS c"])


@pytest.mark.parametrize(
    ("query", "partitions", "opens"),
    [
        (lambda frame: frame.group_by(*BY_KEY).limit(5), 1, True),
        (lambda frame: frame.group_by(*BY_KEY).limit(5), 2, False),
        (lambda frame: frame.group_by([], ["count(*) AS c"]).limit(5), 2, True),
        (lambda frame: frame.group_by([], ["count(*) AS c"]).drop_duplicates("c"), 2, True),
        (lambda frame: frame.group_by(*BY_KEY).drop_duplicates("key"), 2, True),
        (lambda frame: frame.group_by(*BY_KEY).select("key AS k", "c").drop_duplicates("k"), 2, True),
        (lambda frame: frame.group_by(*BY_KEY).where("c > 1").drop_duplicates("key"), 2, True),
        (lambda frame: frame.group_by(*BY_KEY).drop_duplicates("c"), 2, False),
        (lambda frame: frame.group_by(*BY_KEY).drop_duplicates("key", "c"), 2, False),
        (lambda frame: frame.group_by(["key", "n"], ["count(*) AS c"]).drop_duplicates("n", "key"), 2, False),
        (lambda frame: frame.group_by(*BY_KEY).select("upper(key) AS key").drop_duplicates("key"), 2, False),
        (lambda frame: frame.drop_duplicates("key").group_by(*BY_KEY), 1, False),
        (lambda frame: frame.drop_duplicates("key"), 1, False),
        (lambda frame: frame.limit(5), 1, False),
    ],
)
def test_an_operator_finds_the_store_of_an_aggregation_below_it_in_the_same_task(query, partitions, opens):
    """Without an exchange between them, the first store of the task is that of the aggregation (SPARK-51955, `StateStoreRDD`)."""
    left, _ = streams(watermarks=True)
    assert SparkPlan(query(left).plan, RULES).opens_store_of_another(partitions) is opens


def test_a_projection_that_computes_knows_nothing_of_what_it_hands_on():
    """Windows are never NULL, and that never changes; the keys beside them are taken as they were analysed."""
    left, right = streams(watermarks=True)
    mine = left.select("key", "window(et, '10 seconds') AS w")
    other = right.select("okey", "window(ot, '10 seconds') AS ow")
    plan = optimized(mine.join(other, "key = okey AND w = ow", "inner").plan, RULES)
    told = {
        not_null_in_state(plan, frozenset(silent), required_columns(plan), RULES)
        for silent in ((), ("left",), ("right",))
    }
    assert len(told) == 1
