"""Where the optimiser of Spark places filters, and which aggregations it would leave out."""

from contextlib import nullcontext

import pytest

from conformance.core.spark_types import parse_schema
from conformance.core.versions import SparkVersion
from conformance.model.catalogue import rules_of
from conformance.model.catalyst.optimizer import check_aggregations, check_event_times, optimized
from conformance.model.columns import Ids
from conformance.model.errors import Unpredictable
from conformance.model.expressions import Expression
from conformance.model.frame import Frame
from conformance.model.plan import Aggregate, Filter, Join, LocalRelation, Plan, StreamSource, Watermark, walk

RULES = rules_of(SparkVersion.parse("4.3.0"))
IDS = Ids()


def stream(name: str) -> Frame:
    frame = Frame.read(name, parse_schema("t TIMESTAMP, k STRING, n INT"), RULES, IDS).with_watermark("t", "10 seconds")
    return frame.select(f"t AS t{name}", f"k AS k{name}", f"n AS n{name}")


def text(condition: Expression, plan: Plan) -> str:
    names = {one.id: one.name for node in walk(plan) for one in node.columns}
    if condition.kind == "column":
        return names[condition.value]
    args = [text(arg, plan) for arg in condition.args]
    return f"{condition.name}({', '.join(args)})" if args else str(condition.value)


def filters(frame: Frame) -> dict[str, list[str]]:
    """The conditions above the join, and those of each input, except that keys are not null."""
    plan = optimized(frame.plan, RULES)
    (join,) = [node for node in walk(plan) if isinstance(node, Join)]

    def found(below: Plan) -> list[str]:
        conditions = [text(node.condition, below) for node in walk(below) if isinstance(node, Filter)]
        return sorted(one for one in conditions if not one.startswith("is not null"))

    inside = {id(node) for side in join.children for node in walk(side)}
    above = [node for node in walk(plan) if isinstance(node, Filter) and id(node) not in inside]
    return {
        "above": sorted(text(node.condition, plan) for node in above),
        "left": found(join.left),
        "right": found(join.right),
    }


def joined(how: str = "inner", on: str = "ka = kb AND ta = tb") -> Frame:
    return stream("a").join(stream("b"), on, how)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("condition", "above", "left", "right"),
    [
        ("na > 1", [], [">(n, 1)"], []),
        ("nb > 1", [], [], [">(n, 1)"]),
        ("na > nb", [], [], []),
        ("na > 1 AND nb > 2", [], [">(n, 1)"], [">(n, 2)"]),
        ("na > 1 AND na > nb", [], [">(n, 1)"], []),
    ],
)
def test_a_filter_above_an_inner_join_goes_to_the_side_that_it_is_about(condition, above, left, right) -> None:
    assert filters(joined().where(condition)) == {"above": above, "left": left, "right": right}


def test_a_filter_about_both_sides_is_a_condition_of_the_join_and_implies_others() -> None:
    frame = joined(on="na = nb AND ta = tb").where("length(kb) = na")
    assert filters(frame) == {"above": [], "left": [], "right": ["=(length(k), n)"]}


def test_a_condition_on_a_key_filters_both_sides() -> None:
    assert filters(joined().where("ka = 'x'")) == {"above": [], "left": ["=(k, x)"], "right": ["=(k, x)"]}


@pytest.mark.parametrize(
    ("of_a", "of_c", "right"),
    [("na > 1", "nc > 1", [">(n, 1)"]), ("na > 1", "nc > 2", []), ("na > 1", "kc > 'x'", []), ("na > 1", "true", [])],
)
def test_a_condition_on_every_branch_of_a_union_filters_the_other_side_of_a_join(of_a, of_c, right) -> None:
    """`Union.validConstraints`: what holds in each branch, by the names of the first."""
    frame = stream("a").where(of_a).union(stream("c").where(of_c)).join(stream("b"), "na = nb AND ka = kb", "inner")
    assert filters(frame)["right"] == right


@pytest.mark.parametrize(
    ("how", "left", "right"),
    [
        ("inner", [">(n, 1)"], [">(n, 2)"]),
        ("leftOuter", [], [">(n, 2)"]),
        ("rightOuter", [">(n, 1)"], []),
        ("fullOuter", [], []),
        ("leftSemi", [">(n, 1)"], [">(n, 2)"]),
    ],
)
def test_a_condition_of_the_join_filters_no_side_that_it_preserves(how, left, right) -> None:
    found = filters(joined(how, "ka = kb AND ta = tb AND na > 1 AND nb > 2"))
    assert found == {"above": [], "left": left, "right": right}


@pytest.mark.parametrize(
    ("how", "condition", "narrowed"),
    [
        ("leftOuter", "nb > 1", "inner"),
        ("leftOuter", "na > 1", "leftOuter"),
        ("rightOuter", "na > 1", "inner"),
        ("rightOuter", "nb > 1", "rightOuter"),
        ("fullOuter", "na > 1", "leftOuter"),
        ("fullOuter", "nb > 1", "rightOuter"),
        ("fullOuter", "na > 1 AND nb > 1", "inner"),
    ],
)
def test_a_filter_that_no_null_row_passes_narrows_an_outer_join(how, condition, narrowed) -> None:
    plan = optimized(joined(how).where(condition).plan, RULES)
    assert [node.how for node in walk(plan) if isinstance(node, Join)] == [narrowed]


@pytest.mark.parametrize(("how", "condition"), [("leftOuter", "nb IS NULL"), ("fullOuter", "na IS NULL")])
def test_a_filter_that_null_rows_may_pass_stays_above_an_outer_join(how, condition) -> None:
    found = filters(joined(how).where(condition))
    assert (len(found["above"]), found["left"], found["right"]) == (1, [], [])
    plan = optimized(joined(how).where(condition).plan, RULES)
    assert [node.how for node in walk(plan) if isinstance(node, Join)] == [how]


def test_a_filter_that_a_narrower_join_no_longer_holds_up_goes_to_its_side() -> None:
    frame = joined("fullOuter").where("na IS NULL OR na > 1").where("na < 9")
    found = filters(frame)
    assert (found["above"], len(found["left"])) == ([], 2)
    assert [node.how for node in walk(optimized(frame.plan, RULES)) if isinstance(node, Join)] == ["leftOuter"]


@pytest.mark.parametrize(
    ("condition", "known"),
    [("na > 1 OR (nb > 1 AND na > 3)", False), ("na > 1 OR nb > 1", True), ("na > nb", True)],
)
def test_a_part_of_a_condition_that_may_filter_a_side_is_not_predicted(condition, known) -> None:
    with nullcontext() if known else pytest.raises(Unpredictable, match="an AND in an OR"):
        optimized(joined("inner").where(condition).plan, RULES)


@pytest.mark.parametrize(("condition", "is_below"), [("ka = 'x'", True), ("ta IS NOT NULL", False)])
def test_a_filter_goes_below_the_watermark_unless_it_is_about_the_event_time(condition, is_below) -> None:
    plan = optimized(stream("a").where(condition).plan, RULES)
    (watermark,) = [node for node in walk(plan) if isinstance(node, Watermark)]
    assert any(isinstance(node, Filter) for node in walk(watermark)) is is_below


@pytest.mark.parametrize("cuts", [False, True])
def test_a_constant_filter_above_state_is_left_out_or_cuts_the_plan_on_versions_that_do(cuts: bool) -> None:
    rules = RULES.altered(false_filters_cut_the_plan=cuts)
    counted = stream("a").group_by(["ka"], ["count(*) AS c"])
    kinds = [type(optimized(counted.where(text).plan, rules)) for text in ("1 = 1", "1 = 2")]
    assert kinds == ([Aggregate, LocalRelation] if cuts else [Filter, Filter])


@pytest.mark.parametrize(
    ("between", "outputs", "is_known"),
    [
        (["ka", "na"], ["max(na) AS m"], False),
        (["ka", "na", "7 AS seven"], ["max(na) AS m"], False),
        (["ka", "na", "c"], ["max(na) AS m"], False),
        (["ka", "na", "c"], ["max(c) AS m"], True),
        (["ka", "na"], ["count(na) AS m"], True),
        (["ka", "na"], ["sum(na) AS m"], True),
        (["ka", "na", "c + na AS both"], ["max(na) AS m"], False),
    ],
)
def test_an_aggregation_of_which_only_keys_are_used_is_not_predicted(between, outputs, is_known) -> None:
    below = stream("a").group_by(["ka", "na"], ["count(*) AS c"])
    plan = below.select(*between).group_by(["ka"], outputs).plan
    with nullcontext() if is_known else pytest.raises(Unpredictable, match="only the keys are used"):
        check_aggregations(plan)


@pytest.mark.parametrize(("used", "is_known"), [(["na", "nb"], False), (["na", "ta", "tb"], True)])
def test_an_event_time_of_a_join_that_nothing_needs_is_not_predicted(used, is_known) -> None:
    plan = joined(on="ka = kb").select(*used).plan
    with nullcontext() if is_known else pytest.raises(Unpredictable, match="an event time in the input of a join"):
        check_event_times(plan)


def test_a_plan_still_reads_its_streams() -> None:
    plan = optimized(joined().where("na > nb").plan, RULES)
    assert sorted(node.stream for node in walk(plan) if isinstance(node, StreamSource)) == ["a", "b"]
