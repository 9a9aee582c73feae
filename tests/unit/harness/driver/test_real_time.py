"""Which micro-batches of a real-time query say something, and when it is at rest."""

from __future__ import annotations

from harness.driver.progress import at_rest, reported


def entry(id, watermark, read=0):
    return {
        "batchId": id,
        "sources": [{"startOffset": {"0": 0}, "endOffset": {"0": read}}],
        "eventTime": {"watermark": watermark},
    }


FIRST, DATA, MOVED, SAME = entry(0, "00:00"), entry(1, "00:00", 2), entry(2, "12:50"), entry(3, "12:50")


def test_micro_batches_are_told_that_read_rows_or_follow_a_move_of_the_watermark():
    assert reported([FIRST, DATA, MOVED, SAME, SAME], None) == ([DATA, MOVED], "12:50")


def test_the_watermark_of_an_earlier_step_counts():
    assert reported([SAME, SAME], "12:50") == ([], "12:50")
    assert reported([SAME], "00:00") == ([SAME], "12:50")
    assert reported([], "12:50") == ([], "12:50")


def test_a_micro_batch_without_rows_that_removes_state_is_told():
    removes = {**SAME, "stateOperators": [{"numRowsRemoved": 0}, {"numRowsRemoved": 5}]}
    keeps = {**SAME, "stateOperators": [{"numRowsRemoved": 0}]}
    assert reported([DATA, MOVED, removes, keeps], "00:00") == ([DATA, MOVED, removes], "12:50")


def test_a_query_is_at_rest_after_a_micro_batch_without_rows_that_leaves_the_watermark_alone():
    def never(_):
        return False

    assert not at_rest([], never)
    assert not at_rest([SAME], never)
    assert not at_rest([FIRST, DATA], never)
    assert not at_rest([DATA, MOVED], never)
    assert at_rest([DATA, MOVED, SAME], never)
    assert at_rest([DATA, entry(2, "00:00")], never)


def test_a_query_is_not_at_rest_while_rows_wait():
    assert not at_rest([SAME, SAME], lambda last: last is SAME)
