"""What a query consists of, from plans as Spark prints them."""

import pytest

from conformance.query.reading import (
    PHYSICAL_PLAN,
    Operator,
    QueryAggregation,
    QueryDeduplication,
    QueryJoin,
    QueryLimit,
    QueryStateFunction,
    QueryUnion,
    QueryWatermark,
    QueryWindow,
    physical_plan,
    read_calls,
    read_plan,
)

LOGICAL = "== Optimized Logical Plan ==\nDeduplicate [user#1]\n+- EventTimeWatermark t#0: timestamp, 10 minutes\n\n"
STATE = "state info [ checkpoint = file:/c/state, runId = 7b83408b, opId = 0, ver = 1, numPartitions = 1]"
AGGREGATION = f"""
*(6) HashAggregate(keys=[window#50-T300000ms], functions=[count(1)], output=[start#56, end#57, clicks#48L])
+- StateStoreSave [window#50-T300000ms, user#3], {STATE}, Append, 0, 43320000, 2
   +- *(5) HashAggregate(keys=[window#50-T300000ms], functions=[merge_count(1)])
      +- StateStoreRestore [window#50-T300000ms], {STATE}, 2
"""
JOIN = f"""
                     +- StreamingSymmetricHashJoin [Inner#2], [clicked_ad#8], LeftOuter, condition = [ leftOnly = null ], {STATE}
                        :- Exchange hashpartitioning(ad#2, 1), REQUIRED_BY_STATEFUL_OPERATOR, [plan_id=372]
                        :  +- EventTimeWatermark shown_at#0: timestamp, 5 minutes
                        +- Exchange hashpartitioning(clicked_ad#8, 1), REQUIRED_BY_STATEFUL_OPERATOR, [plan_id=373]
                           +- *(2) EventTimeWatermark clicked_at#7: timestamp, 5 minutes
"""
PHYSICAL = "== Physical Plan =="


TUMBLING_OR_SLIDING = QueryWindow(None, "", None, None, 0, (), filtered=False)
SESSION = QueryWindow("session", "", None, None, 0, (), filtered=False)
WINDOWED = QueryAggregation(("window#50-T300000ms", "user#3"), (TUMBLING_OR_SLIDING,))
SHOWN, CLICKED = QueryWatermark(None, "shown_at", "5 minutes"), QueryWatermark(None, "clicked_at", "5 minutes")


@pytest.mark.parametrize(
    ("plan", "operators"),
    [
        (AGGREGATION, [WINDOWED]),
        (AGGREGATION.replace("window#50-T300000ms, user", "user"), [QueryAggregation(("user#3",))]),
        (JOIN, [SHOWN, CLICKED, QueryJoin("leftOuter", "")]),
        (JOIN.replace("LeftOuter", "Inner"), [SHOWN, CLICKED, QueryJoin("inner", "")]),
        (JOIN.replace("clicked_ad#8", "LeftSemi#8"), [SHOWN, CLICKED, QueryJoin("leftOuter", "")]),
        ("BroadcastHashJoin [a#1], [b#2], LeftAnti, BuildRight, false\n", [QueryJoin("leftAnti", "", stateful=False)]),
        (
            f"StreamingDeduplicateWithinWatermark [user#1], {STATE}, 0, 1\n",
            [QueryDeduplication((), within_watermark=True)],
        ),
        (
            f"+- SessionWindowStateStoreSave [user#1], session_window#2, {STATE}\n",
            [QueryAggregation(("user#1",), (SESSION,))],
        ),
        (
            f"TransformWithStateInPandas f(t#1), [user#1], {STATE}\n",
            [QueryStateFunction("TransformWithStateInPandas", "")],
        ),
        ("Union\n:- *(1) Project [t#1]\n+- *(2) Project [t#2]\n", [QueryUnion()]),
        ("StreamingGlobalLimit 2, state info\n+- StreamingLocalLimit 2\n", [QueryLimit()]),
        ("*(1) Project [Union#1, StateStoreSave AS x#1]\n", []),
    ],
)
def test_from_the_operators_of_the_physical_plan(plan: str, operators: list[Operator]) -> None:
    assert [*read_plan(LOGICAL + PHYSICAL + "\n" + plan).operators] == operators


def test_a_plan_is_a_tree() -> None:
    (root,) = physical_plan(PHYSICAL + JOIN)
    assert [child.name for child in root.children] == ["Exchange", "Exchange"]
    names = ["EventTimeWatermark", "Exchange"] * 2
    assert [node.name for node in root.upwards()] == [*names, "StreamingSymmetricHashJoin"]


@pytest.mark.parametrize(
    ("line", "column", "delay"),
    [
        ("EventTimeWatermark shown_at#0: timestamp, 5 minutes", "shown_at", "5 minutes"),
        ("EventTimeWatermark c0545a3c-219a-4e02-ab52-502b0b052058, ts#0: timestamp, 10 minutes", "ts", "10 minutes"),
        ("EventTimeWatermark window#10: struct<start:timestamp,end:timestamp>, 10 minutes", "window", "10 minutes"),
    ],
)
def test_the_column_of_a_watermark_with_and_without_the_id_of_4_1(line: str, column: str, delay: str) -> None:
    assert read_plan(f"{PHYSICAL_PLAN}\n{line}\n").watermarks == (QueryWatermark(None, column, delay),)


ANALYZED = """== Parsed Logical Plan ==
Project [uuid(Some(1)) AS other#1]

== Analyzed Logical Plan ==
d: decimal(10,2), r: double
~Project [named_struct(a, Rand(-4), b, f(n#1L, 2)) AS s#2, n#1L]
+- *(1) Filter (rand(5) < cast(n#1L as double))
   +- Aggregate [k#3], [k#3, max(n#1L) AS m#9L]

== Optimized Logical Plan ==
Project [randn(3)]
"""


def test_calls_are_those_of_the_analysed_plan_with_their_place():
    assert [(call.function, call.text, call.place) for call in read_calls(ANALYZED)] == [
        ("named_struct", "named_struct(a, Rand(-4), b, f(n#1L, 2))", "the projection of s"),
        ("rand", "Rand(-4)", "the projection of s"),
        ("f", "f(n#1L, 2)", "the projection of s"),
        ("rand", "rand(5)", "the filter"),
        ("cast", "cast(n#1L as double)", "the filter"),
        ("max", "max(n#1L)", "the aggregation of m"),
    ]
    assert [*read_calls(PHYSICAL)] == []


def test_an_operator_whose_input_is_marked_as_missing_is_read():
    """Spark marks the operators of functions in Python so, because their plan does not show all that they take."""
    plan = f"{PHYSICAL}\n!FlatMapGroupsInPandasWithState f(k#5L)#10, [k#5L], 2, Append, EventTimeTimeout, 17, 0\n"
    assert read_plan(plan).operators == (QueryStateFunction("FlatMapGroupsInPandasWithState", "", times_out=True),)
