"""Which micro-batches of a real-time query say something, and when it is at rest."""

import pytest

from harness.driver.progress import IDLE_MICRO_BATCHES, at_rest, is_idle, reported, runs_by_the_clock


def entry(id, watermark, read=0):
    return {
        "batchId": id,
        "sources": [{"startOffset": {"0": 0}, "endOffset": {"0": read}}],
        "eventTime": {"watermark": watermark},
    }


def nothing(_batch):
    return []


FIRST, DATA, MOVED, SAME = entry(0, "00:00"), entry(1, "00:00", 2), entry(2, "12:50"), entry(3, "12:50")


def test_micro_batches_are_told_that_read_rows_or_follow_a_move_of_the_watermark():
    assert reported([FIRST, DATA, MOVED, SAME, SAME], None, nothing) == ([DATA, MOVED], "12:50")


def test_the_watermark_of_an_earlier_step_counts():
    assert reported([SAME, SAME], "12:50", nothing) == ([], "12:50")
    assert reported([SAME], "00:00", nothing) == ([SAME], "12:50")
    assert reported([], "12:50", nothing) == ([], "12:50")


def test_a_micro_batch_without_rows_that_removes_state_is_told():
    removes = {**SAME, "stateOperators": [{"numRowsRemoved": 0}, {"numRowsRemoved": 5}]}
    keeps = {**SAME, "stateOperators": [{"numRowsRemoved": 0}]}
    assert reported([DATA, MOVED, removes, keeps], "00:00", nothing) == ([DATA, MOVED, removes], "12:50")


def test_a_query_is_at_rest_after_a_micro_batch_without_rows_that_leaves_the_watermark_alone():
    def never(_):
        return False

    assert not at_rest([], never)
    assert not at_rest([SAME], never)
    assert not at_rest([FIRST, DATA], never)
    assert not at_rest([DATA, MOVED], never)
    assert at_rest([DATA, MOVED, SAME], never)
    assert at_rest([DATA, entry(2, "00:00")], never)
    assert not at_rest([SAME, SAME], lambda last: last is SAME)


def test_a_micro_batch_without_rows_that_emits_some_is_told():
    timer = {**SAME, "batchId": 7}
    assert reported([DATA, MOVED, SAME, timer], "00:00", {7: [["a"]]}.get) == ([DATA, MOVED, timer], "12:50")


@pytest.mark.parametrize(
    ("plan", "by_the_clock"),
    [
        ("TransformWithStateInPySpark process(k#1, t#2), 1, Append, ProcessingTime, struct<k:string>", True),
        ("FlatMapGroupsInPandasWithState f(k#1), [k#1], Append, ProcessingTimeTimeout", True),
        ("TransformWithStateInPySpark process(k#1, t#2), 1, Append, EventTime, struct<k:string>", False),
        ("Project [processingTime#1, ProcessingTimes#2]", False),
    ],
)
def test_which_queries_run_by_the_clock(plan, by_the_clock):
    assert runs_by_the_clock(plan) is by_the_clock


def test_a_query_is_idle_after_some_micro_batches_in_a_row_that_do_nothing():
    assert IDLE_MICRO_BATCHES == 3
    assert not is_idle([SAME, SAME], nothing)
    assert not is_idle([SAME, DATA, SAME, SAME], nothing)
    assert is_idle([DATA, SAME, SAME, SAME], nothing)
    assert not is_idle([SAME, entry(7, "12:50"), SAME], {7: [["a"]]}.get)
