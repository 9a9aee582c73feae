"""Which columns a join's inputs have as NOT NULL, as the physical plans of Spark 3.5.9 were seen to have them.

A plan was read after each of three micro-batches: with rows of both streams, of the left alone and of the right alone. What is seen is
written as names, with ``!`` for NOT NULL and ``?`` for nullable.
"""

import pytest

from conformance.core.spark_types import parse_schema
from conformance.core.versions import SparkVersion
from conformance.model.catalogue import rules_of
from conformance.model.catalyst.optimizer import optimized, required_columns
from conformance.model.catalyst.spark_plan import not_null_in_state
from conformance.model.columns import Ids
from conformance.model.frame import Frame
from conformance.model.plan import Join

RULES = rules_of(SparkVersion.parse("3.5.9"))
EQUAL = "key = okey"
RANGE = "key = okey AND ot >= et AND ot <= et + INTERVAL 5 SECONDS"
WINDOWS = "key = okey AND w = ow"


def streams(*, watermarks):
    ids = Ids()
    left = Frame.read("left", parse_schema("et TIMESTAMP, key STRING, n INT"), RULES, ids)
    right = Frame.read("right", parse_schema("ot TIMESTAMP, okey STRING, m INT"), RULES, ids)
    if watermarks:
        return left.with_watermark("et", "10 seconds"), right.with_watermark("ot", "10 seconds")
    return left, right


def inner(left, right):
    return left.join(right, EQUAL, "inner")


def in_a_range(left, right):
    return left.join(right, RANGE, "inner")


def outer(left, right):
    return left.join(right, RANGE, "leftOuter")


def narrowed(left, right):
    return left.select("et", "key").join(right.select("ot", "okey"), EQUAL, "inner")


def windows(left, right):
    mine = left.select("key", "window(et, '10 seconds') AS w")
    return mine.join(right.select("okey", "window(ot, '10 seconds') AS ow"), WINDOWS, "inner")


def filtered(left, right):
    return left.where("n > 1").join(right.where("m > 1"), EQUAL, "inner")


def times(left, right):
    return left.join(right, "et = ot", "inner")


def computed(left, right):
    mine = left.with_column("k2", "upper(key)")
    return mine.join(right.with_column("o2", "upper(okey)"), "k2 = o2", "inner")


@pytest.mark.parametrize(
    ("query", "watermarks", "both", "left_alone", "right_alone"),
    [
        (inner, False, "et? key! n? ot? okey! m?", "et? key! n? ot? okey? m?", "et? key? n? ot? okey! m?"),
        (inner, True, "et? key! n? ot? okey! m?", "et? key! n? ot? okey? m?", "et? key? n? ot? okey! m?"),
        (in_a_range, True, "et! key! n? ot! okey! m?", "et! key! n? ot! okey? m?", "et! key? n? ot! okey! m?"),
        (outer, True, "et? key? n? ot! okey! m?", "et? key? n? ot! okey? m?", "et? key? n? ot! okey! m?"),
        (narrowed, True, "et? key! ot? okey!", "et? key! ot? okey?", "et? key? ot? okey!"),
        (filtered, False, "et? key! n! ot? okey! m!", "et? key! n! ot? okey? m?", "et? key? n? ot? okey! m!"),
        (filtered, True, "et? key! n! ot? okey! m!", "et? key! n! ot? okey? m?", "et? key? n? ot? okey! m!"),
        (times, True, "et! key? n? ot! okey? m?", "et! key? n? ot! okey? m?", "et! key? n? ot! okey? m?"),
        (computed, True, *["et? key? n? k2? ot? okey? m? o2?"] * 3),
    ],
    ids=lambda one: one.__name__ if callable(one) else "",
)
def test_columns_of_a_join(query, watermarks, both, left_alone, right_alone):
    plan = optimized(query(*streams(watermarks=watermarks)).plan, RULES)
    assert isinstance(plan, Join)
    names = [one.name for side in plan.children for one in side.columns]
    for silent, seen in ((), both), (("right",), left_alone), (("left",), right_alone):
        known = not_null_in_state(plan, frozenset(silent), required_columns(plan), RULES)
        assert " ".join(f"{name}{'!' if one else '?'}" for name, one in zip(names, known, strict=True)) == seen


def test_a_projection_that_computes_knows_nothing_of_what_it_hands_on():
    """Windows are never NULL, and that never changes; the keys beside them are taken as they were analysed."""
    plan = optimized(windows(*streams(watermarks=True)).plan, RULES)
    told = {
        not_null_in_state(plan, frozenset(silent), required_columns(plan), RULES)
        for silent in ((), ("left",), ("right",))
    }
    assert len(told) == 1
