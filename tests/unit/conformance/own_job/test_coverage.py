"""What the sample of a job showed, and what its operators never did."""

import pytest

from conformance.core.observation import DROPPED_ROWS
from conformance.own_job.coverage import never_shown
from conformance.query.reading import PHYSICAL_PLAN
from tests.support.observations import batch, observed, step


def operators(
    total: int, removed: int | None = None, dropped: int | None = 0, name: str = "stateStoreSave", **more: object
) -> dict[str, object]:
    counts = {"operatorName": name, "numRowsTotal": total, DROPPED_ROWS: dropped, **more}
    return {"stateOperators": [counts if removed is None else {**counts, "numRowsRemoved": removed}]}


def told(*progress: dict[str, object], watermark: int = 1) -> list[str]:
    batches = [batch(id, state=(1,), watermark=watermark, progress=each) for id, each in enumerate(progress)]
    return [*never_shown(observed(step(1, *batches)), "")]


def test_an_operator_that_did_all_is_covered() -> None:
    assert told(operators(1), operators(2, dropped=1), operators(1)) == []
    assert told(operators(1), operators(1, removed=1, dropped=1)) == []


def test_what_an_operator_never_did_is_said_with_what_to_add() -> None:
    assert told(operators(0)) == [
        "the aggregation never had a row in its state: add rows that reach it",
        "the aggregation never dropped a late row: it took none that reached it for late; add one",
    ]
    (never,) = told(
        operators(1, dropped=None, name="symmetricHashJoin"), operators(2, dropped=None, name="symmetricHashJoin")
    )
    assert never.startswith("the join never removed a row from its state")


def test_two_operators_of_a_kind_are_told_apart_in_the_order_of_rows() -> None:
    counts = [{"operatorName": "stateStoreSave", "numRowsTotal": total, DROPPED_ROWS: 1} for total in (0, 1)]
    progress = {"stateOperators": counts}
    batches = [batch(id, state=(0, 1), watermark=1, progress=progress) for id in (0, 1)]
    assert [*never_shown(observed(step(1, *batches)), "")] == [
        "the second aggregation never had a row in its state: add rows that reach it",
        "the first aggregation never removed a row from its state: none of its keys, conditions and timeouts depends on the watermark, "
        "or the watermark has not passed them",
    ]


def test_session_windows_have_no_name_of_their_own_up_to_3_5() -> None:
    (never,) = told(operators(0, dropped=None, name="defaultName"))
    assert never.startswith("the session windows never had a row")


def test_a_deduplication_that_met_no_duplicate_is_said() -> None:
    duplicates = [{"numDroppedDuplicateRows": count} for count in (0, 0, 1)]
    without, some = ([operators(1, 1, 1, "dedupe", customMetrics=of) for of in duplicates[at:]] for at in (0, 1))
    assert told(*some) == []
    assert told(*without[:2]) == [
        "the deduplication never dropped a duplicate: none arrived while its key was in the state; add one"
    ]


@pytest.mark.parametrize(
    ("kind", "rows", "kind_of_batch", "said"),
    [
        ("LeftOuter", [["a", 1]], "data", True),
        ("LeftOuter", [["a", None]], "data", False),
        # Only unmatched rows come without new rows, even if none of their columns is null.
        ("LeftOuter", [["a", 1]], "no-data", False),
        ("Inner", [["a", 1]], "data", False),
    ],
)
def test_an_outer_join_that_emitted_no_row_without_a_match_is_said(
    kind: str, rows: list[list[object]], kind_of_batch: str, said: bool
) -> None:
    plan = f"{PHYSICAL_PLAN}\nStreamingSymmetricHashJoin [a#1], [b#2], {kind}, condition = [ leftOnly = null ]\n"
    progress = operators(1, 1, 1, "symmetricHashJoin")
    emitted = batch(0, *rows, kind=kind_of_batch, state=(1,), watermark=1, progress=progress)
    assert bool([*never_shown(observed(step(1, emitted)), plan)]) is said


FUNCTION = "applyInPandasWithState"
TIMES_OUT = f"{PHYSICAL_PLAN}\n!FlatMapGroupsInPandasWithState f(k#5L)#10, [k#5L], 2, Append, EventTimeTimeout, 17, 0\n"


def told_of_a_function(plan: str, *, kind: str = "no-data", **counts: object) -> list[str]:
    last = {"operatorName": FUNCTION, "numRowsTotal": 1, DROPPED_ROWS: 1, **counts}
    first = batch(0, state=(1,), watermark=1, progress=operators(2, name=FUNCTION))
    second = batch(1, kind=kind, state=(1,), watermark=1, progress={"stateOperators": [last]})
    return [*never_shown(observed(step(1, first, second)), plan)]


def test_a_function_whose_keys_never_timed_out_is_said() -> None:
    (said,) = told_of_a_function(TIMES_OUT)
    assert said == (
        f"no key of the operator {FUNCTION} was seen to time out: add rows after which the watermark passes its timeout"
    )
    # With rows, a function may change state without a timeout.
    assert told_of_a_function(TIMES_OUT, kind="data", numRowsUpdated=1) == [said]
    assert told_of_a_function(TIMES_OUT.replace("EventTime", "No")) == []
    assert told_of_a_function(TIMES_OUT, numRowsRemoved=1) == []
    assert told_of_a_function(TIMES_OUT, kind="data", customMetrics={"numExpiredTimers": 2}) == []


def test_without_a_watermark_no_row_is_late_and_none_leaves() -> None:
    assert told(operators(1), operators(2), watermark=0) == []
