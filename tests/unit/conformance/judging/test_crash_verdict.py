"""The verdict on a restart: the same rows, or an error that says what is wrong."""

import pytest

from conformance.core.observation import ErrorSeen, Interrupted
from conformance.judging.crash_verdict import Reference, Restart, is_named, judge_crash
from tests.support import observations

A, B, C = ('["a"]',), ('["b"]',), ('["c"]',)
REFERENCE = {4: A, 5: (), 6: B, 7: C}


def batch(id, *rows):
    return observations.batch(id, *((row,) for row in rows))


def failed(*classes, message="something"):
    return ErrorSeen(stage="run", classes=classes, message=message)


def seen(*batches, **keys):
    return observations.observed(observations.step(2, *batches, **keys))


def judged(before, observation, *more):
    return judge_crash(Restart(before, observation), [Reference(REFERENCE), *more])


def test_a_replay_with_the_same_rows_continues():
    assert judged({4: A}, seen(batch(4, "a"), batch(5), batch(6, "b"), batch(7, "c"))).status == "continues"
    assert judged({}, seen(batch(4, "a"), batch(6, "b"), batch(7, "c"))).status == "continues"


@pytest.mark.parametrize(
    ("before", "batches", "why"),
    [
        ({}, [batch(4, "b"), batch(6, "b"), batch(7, "c")], 'micro-batch 4: 1 row lost: ["a"]; 1 row added: ["b"]'),
        ({4: A}, [batch(4, "b"), batch(6, "b"), batch(7, "c")], "micro-batch 4 emitted other rows when it ran again"),
        ({}, [batch(6, "b"), batch(7, "c")], 'micro-batch 4: 1 row lost: ["a"]'),
        ({4: A}, [batch(6, "b", "b"), batch(7, "c")], 'micro-batch 6: 1 row added: ["b"]'),
        ({4: A}, [batch(6, "b")], 'micro-batch 7: 1 row lost: ["c"]'),
    ],
)
def test_other_and_lost_rows_violate(before, batches, why):
    verdict = judged(before, seen(*batches))
    assert verdict.status == "violates"
    assert verdict.why.startswith(why)


def test_a_query_that_stops_between_two_micro_batches_has_a_reference_of_its_own():
    # The micro-batch without rows is left out at a restart, so its rows come with the next data.
    late = seen(batch(5, "b", "c"))
    assert judged({4: A}, late).status == "violates"
    verdict = judged({4: A}, late, Reference({4: A, 5: (*B, *C)}, frozenset({4})))
    assert verdict.status == "continues"
    assert verdict.why.startswith("as after a stop between two micro-batches: micro-batch 5: 2 rows added")
    # It says nothing of a crash before that point.
    assert (
        judged({}, seen(batch(4, "a"), batch(5, "b", "c")), Reference({4: A, 5: (*B, *C)}, frozenset({4}))).status
        == "violates"
    )


def test_rows_that_came_before_a_refusal_must_be_right_too():
    error = failed("IllegalStateException", message="batch 6 is gone")
    assert judged({}, seen(batch(4, "a"), error=error)).status == "refused"
    wrong = judged({}, seen(batch(4, "x"), error=error))
    assert (wrong.status, wrong.error) == ("violates", "IllegalStateException")
    # The sink got them, although the micro-batch was never committed.
    uncommitted = seen(error=error, interrupted=Interrupted(id=4, rows=(("x",),)))
    assert judged({}, uncommitted).status == "violates"
    assert judged({}, seen(error=error, interrupted=Interrupted(id=4, rows=(("a",),)))).status == "refused"


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (failed("StreamingQueryException", "IllegalStateException"), True),
        (failed("SparkException", "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED", "NullPointerException"), True),
        (failed("StreamingQueryException", "EOFException", message="Stream ended"), False),
        (failed("StreamingQueryException", "EOFException", message="<case>/checkpoint/state/0/0/3.delta"), True),
        (failed("StreamingQueryException", "NullPointerException"), False),
        (failed(), False),
    ],
)
def test_a_named_error_says_what_is_wrong(error, named):
    assert is_named(error) is named
    assert judged({}, seen(error=error)).status == ("refused" if named else "unclear")
