"""What a query uses, from plans as Spark prints them."""

from __future__ import annotations

import pytest

from conformance.own_job.plan_features import features_of
from reports.analysis.features import FEATURES

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


@pytest.mark.parametrize(
    ("plan", "uses"),
    [
        (AGGREGATION, {"window aggregation"}),
        (AGGREGATION.replace("window#50-T300000ms, user", "user"), {"aggregation"}),
        (JOIN, {"outer join", "several watermarks"}),
        (JOIN.replace("LeftOuter", "Inner"), {"inner join", "several watermarks"}),
        (AGGREGATION + JOIN, {"window aggregation", "outer join", "several watermarks", "chained operators"}),
        (f"StreamingDeduplicateWithinWatermark [user#1], {STATE}, 0, 1\n", {"deduplication"}),
        (f"+- SessionWindowStateStoreSave [user#1], session_window#2, {STATE}\n", {"session windows"}),
        (f"TransformWithStateInPandas f(t#1), [user#1], {STATE}\n", {"arbitrary state"}),
        ("Union\n:- *(1) Project [t#1]\n+- *(2) Project [t#2]\n", {"union"}),
        ("*(1) Project [Union#1, StateStoreSave AS x#1]\n", set()),
    ],
)
def test_from_the_operators_of_the_physical_plan(plan: str, uses: set[str]) -> None:
    found = features_of(LOGICAL + PHYSICAL + "\n" + plan, "append")
    assert set(found) == uses | {"append mode"}
    assert set(found) <= set(FEATURES)
