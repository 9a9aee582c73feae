"""The verdict on a checkpoint that was resumed: the same rows, other rows, or an error."""

import pytest

from conformance.core.observation import ErrorSeen, Interrupted, Observation, OwnCodeError, StepSeen, Written
from conformance.judging.checkpoint_verdict import Restarted, SinkReference, is_named, judge_crash, resumed_at
from tests.support import observations
from tests.support.observations import COLUMNS, step, window

A, B, C = ('["a"]',), ('["b"]',), ('["c"]',)
REFERENCE = {4: A, 5: (), 6: B, 7: C}


def batch(id, *rows):
    return observations.batch(id, *((row,) for row in rows))


def failed(*classes, message="something"):
    return ErrorSeen(stage="run", classes=classes, message=message)


def seen(*batches, **keys):
    return observations.observed(observations.step(2, *batches, **keys))


def judged(before, observation, *more):
    return judge_crash(Restarted(before, observation), [SinkReference(REFERENCE), *more])


def test_a_replay_with_the_same_rows_continues():
    assert judged({4: A}, seen(batch(4, "a"), batch(5), batch(6, "b"), batch(7, "c"))).outcome == "resumed"
    assert judged({}, seen(batch(4, "a"), batch(6, "b"), batch(7, "c"))).outcome == "resumed"


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
    assert verdict.outcome == "other rows"
    assert verdict.why.startswith(why)


def test_a_query_that_stops_between_two_micro_batches_has_a_reference_of_its_own():
    # The micro-batch without rows is left out at a restart, so its rows come with the next data.
    late = seen(batch(5, "b", "c"))
    assert judged({4: A}, late).outcome == "other rows"
    verdict = judged({4: A}, late, SinkReference({4: A, 5: (*B, *C)}, frozenset({4})))
    assert verdict.outcome == "resumed"
    assert verdict.why.startswith("as after a stop between two micro-batches: micro-batch 5: 2 rows added")
    # It says nothing of a crash before that point.
    assert (
        judged({}, seen(batch(4, "a"), batch(5, "b", "c")), SinkReference({4: A, 5: (*B, *C)}, frozenset({4}))).outcome
        == "other rows"
    )


def test_rows_that_came_before_a_refusal_must_be_right_too():
    error = failed("IllegalStateException", message="batch 6 is gone")
    assert judged({}, seen(batch(4, "a"), error=error)).outcome == "fails later"
    wrong = judged({}, seen(batch(4, "x"), error=error))
    assert (wrong.outcome, wrong.error, wrong.batch) == ("other rows", error, 4)
    # The sink got them, although the micro-batch was never committed.
    uncommitted = seen(error=error, interrupted=Interrupted(id=4, rows=(("x",),)))
    assert judged({}, uncommitted).outcome == "other rows"
    assert judged({}, seen(error=error, interrupted=Interrupted(id=4, rows=(("a",),)))).outcome == "fails later"


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (failed("StreamingQueryException", "IllegalStateException"), True),
        (failed("SparkException", "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED", "NullPointerException"), True),
        (failed("StreamingQueryException", "EOFException", message="Stream ended"), False),
        (failed("StreamingQueryException", "EOFException", message="<case>/checkpoint/state/0/0/3.delta"), True),
        (failed("StreamingQueryException", "NullPointerException"), False),
        (failed("StreamingQueryException", "AssertionError", message="assertion failed"), False),
        (
            failed(
                "StreamingQueryException",
                "AssertionError",
                message="Query [id = 1, runId = 2] terminated with exception: assertion failed: There are [1] sources in the "
                "checkpoint offsets and now there are [3] sources requested by the query. Cannot continue.",
            ),
            True,
        ),
        (failed(), False),
    ],
)
def test_a_named_error_says_what_is_wrong(error, named):
    assert is_named(error) is named
    assert judged({}, seen(error=error)).outcome == ("refused" if named else "unclear")


ERROR = ErrorSeen(stage="run", classes=("STATE_STORE_GONE",), message="it is gone")


def after_a_step(*steps: StepSeen) -> Observation:
    return Observation.of("case", COLUMNS, (step(1, observations.batch(0)), *steps))


def resumed(total: int = 1, **keys: object) -> Observation:
    return after_a_step(step(2, observations.batch(1, window("12:00", "12:10", total), **keys)))


def refused(error: ErrorSeen = ERROR) -> Observation:
    return after_a_step(step(2, error=error))


MISTAKE = ErrorSeen(
    stage="run",
    classes=("PythonException",),
    message="it raised",
    own_code=OwnCodeError(raised="KeyError('fee')", at="acme/totals.py:12", during="in a UDF"),
)


FAILED_LATER = after_a_step(step(2, observations.batch(1, window("12:00", "12:10", 1))), step(3, error=ERROR))
UNCLEAR = refused(failed("StreamingQueryException", "EOFException", message="Stream ended"))


@pytest.mark.parametrize(
    ("restarted", "seen", "outcome", "batch"),
    [
        (resumed(), resumed(), "resumed", 1),
        (None, resumed(), "resumed", 1),
        (resumed(), resumed(2), "other rows", 1),
        (resumed(), resumed(state=(7,)), "resumed", 1),
        (resumed(), refused(), "refused", None),
        (None, refused(), "refused", None),
        (resumed(), UNCLEAR, "unclear", None),
        (resumed(), FAILED_LATER, "fails later", 1),
        (resumed(), refused(MISTAKE), "fails later", None),
        (resumed(), None, "no answer", None),
        (None, after_a_step(step(2)), "no answer", None),
    ],
)
def test_a_checkpoint_that_another_version_resumed(restarted, seen, outcome, batch):
    verdict = resumed_at(2, seen, restarted, "the engine was lost")
    assert (verdict.outcome, verdict.batch, verdict.fails_anyway) == (outcome, batch, False)
    assert bool(verdict.difference) == (outcome == "other rows")
    assert bool(verdict.reason) == (outcome == "no answer")


def test_a_query_that_fails_where_its_checkpoint_was_written_fails_anyway():
    verdict = resumed_at(2, refused(), refused())
    assert (verdict.outcome, verdict.fails_anyway, verdict.error) == ("refused", True, ERROR)
    better = resumed_at(2, resumed(), refused())
    assert (better.outcome, better.fails_anyway) == ("resumed", False)
    assert "STATE_STORE_GONE" in better.difference


def test_rows_that_only_moved_are_said_of_other_rows_not_of_a_query_that_fails_anyway():
    row = window("12:00", "12:10", 1)
    late = after_a_step(step(2, observations.batch(1), observations.batch(2, row)))
    assert resumed_at(2, late, resumed()).moved == "1 row later, within the same step"
    assert resumed_at(2, resumed(), FAILED_LATER).moved == ""
    earlier = after_a_step(step(2, observations.batch(1), observations.batch(2, row)), step(3, error=ERROR))
    assert (resumed_at(2, resumed(), earlier).outcome, resumed_at(2, resumed(), earlier).moved) == ("resumed", "")


@pytest.mark.parametrize(
    ("seen", "whole", "outcome"),
    [
        (refused(), step(1, error=ERROR), "fails later"),
        (refused(), step(1, error=failed("DIVIDE_BY_ZERO")), "refused"),
        (refused(), step(1), "refused"),
        (UNCLEAR, UNCLEAR.steps[1], "unclear"),
    ],
)
def test_an_error_that_the_whole_query_has_there_too_is_no_refusal(seen, whole, outcome):
    """An error that does not say what is wrong stays unclear: the whole query may fail for another reason."""
    assert resumed_at(2, seen, whole=Observation.of("case", COLUMNS, (whole,))).outcome == outcome


def test_the_last_micro_batch_may_be_of_any_step_after_the_cut():
    steps = step(2, observations.batch(1)), step(3, observations.batch(2)), step(4)
    assert resumed_at(2, after_a_step(*steps)).batch == 2


def test_why_is_one_line():
    error = failed("StreamingQueryException", message="  The state is gone.\nat line 7")
    assert resumed_at(2, refused(error)).why == "The state is gone."
    assert resumed_at(2, None, reason="the engine was lost").why == "the engine was lost"


@pytest.mark.parametrize(("first", "again"), [("a", "b"), ("b", "a")])
def test_other_rows_are_other_rows_whichever_come_first(first, again):
    verdict = judge_crash(Restarted({4: (f'["{first}"]',)}, seen(batch(4, again))), [SinkReference({4: A})])
    assert (verdict.outcome, verdict.batch) == ("other rows", 4)


def test_of_several_restarts_the_last_says_how_the_query_ended():
    gone = failed("IllegalStateException", message="/checkpoint/offsets/4 is gone")
    restarted = Restarted({4: A}, seen(batch(6, "b")), seen(batch(7, "c"), error=gone))
    assert judge_crash(restarted, [SinkReference(REFERENCE)]).error is gone


def in_the_sink(*written, error=None):
    observation = seen(batch(5, "b"), error=error)
    step = observation.steps[-1].model_copy(
        update={"written": tuple(Written(id=id, rows=tuple((row,) for row in rows)) for id, rows in written)}
    )
    return observation.model_copy(update={"steps": (*observation.steps[:-1], step)})


@pytest.mark.parametrize(
    ("written", "outcome", "difference"),
    [
        pytest.param([(3, "z"), (4, "a"), (5, "b")], "resumed", "", id="as without a crash"),
        pytest.param([(5, "b"), (6, "a")], "resumed", "each row once", id="in another micro-batch"),
        pytest.param([(4, "aa"), (5, "b")], "other rows", "added", id="twice"),
        pytest.param([(4, "a")], "other rows", "lost", id="lost"),
    ],
)
def test_in_a_sink_each_row_is_once(written, outcome, difference):
    restarts = seen(batch(5, "b")), in_the_sink(*written)  # the last of them found the sink as it is in the end
    verdict = judge_crash(Restarted({}, *restarts, first=4), [SinkReference({4: A, 5: ('["b"]',)})])
    assert (verdict.outcome, difference in verdict.difference) == (outcome, True)


def test_a_sink_whose_rows_change_is_no_refusal():
    error = ErrorSeen(stage="read", classes=("RowsChanged",), message="micro-batch 4 had the rows")
    verdict = judge_crash(Restarted({}, in_the_sink(error=error), first=4), [SinkReference({4: A})])
    assert verdict.outcome == "other rows"
