"""The account of a micro-batch: what became of each row, which windows are in state, and who says so."""

from __future__ import annotations

import pytest

from conformance.account.account import BatchAccount, Span, account, batches_of
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion
from conformance.model.errors import Unpredictable
from conformance.oracle.prediction import predict
from tests.support.whole_suite import whole_suite

CASES = {case.id: case for case in whole_suite().cases}
VERSION = SparkVersion(4, 3, 0)
ONE_OF_TWO_WINDOWS = "late-drops/row-late-in-one-sliding-window-only"
GUIDE = "late-drops/guide-example-in-update-mode"
BEHIND_A_JOIN = "chained-aggregations/inclusive-interval-delays-one-millisecond-more"


def told(id: str, *, with_model: bool = True) -> tuple[BatchAccount, ...]:
    """The account of what the model predicts, as if an engine had answered so."""
    case, prediction = CASES[id], predict(CASES[id], VERSION)
    return batches_of(account(case, VERSION, prediction.observation, prediction if with_model else None))


def with_last_dropped(observation: Observation, dropped: int | None) -> Observation:
    """The same answer, with another count of dropped rows in its last micro-batch."""
    *steps, last = observation.steps
    *batches, wrong = last.batches
    changed = last.model_copy(update={"batches": (*batches, wrong.model_copy(update={"dropped": dropped}))})
    return observation.model_copy(update={"steps": (*steps, changed)})


def late(batches: tuple[BatchAccount, ...]) -> dict[str, tuple[str, str]]:
    """The late rows, each with who says so and the operator that dropped it."""
    return {row.text: (row.by, row.operator) for one in batches for row in one.rows if row.fate == "late"}


class TestFates:
    def test_a_row_that_is_late_for_one_of_its_windows_counts_in_the_other(self) -> None:
        # 12:08 is in 12:00 – 12:10, which is too late for it, and in 12:05 – 12:15, which is not.
        rows = [row for one in told(ONE_OF_TWO_WINDOWS) for row in one.rows if "12:08" in row.text]
        assert [(row.fate, row.behind) for row in rows] == [("taken", True)]

    def test_a_row_is_late_if_it_is_late_for_each_of_its_windows_and_the_operator_is_named(self) -> None:
        # The example of the guide: (12:04, donkey) is too late; the engine counts 2, one for each window.
        (said,) = late(told(GUIDE)).values()
        assert said == ("model", "aggregation by window, word")

    def test_without_the_model_what_the_count_does_not_say_is_not_known(self) -> None:
        assert late(told(GUIDE, with_model=False)) == {}
        fates = [row.fate for row in told(GUIDE, with_model=False)[-1].rows]
        assert fates == ["behind", "taken"]

    def test_the_number_of_dropped_rows_says_which_are_late_where_only_these_can_be(self) -> None:
        case = CASES["late-drops/late-by-the-watermark-of-the-batch-before"]
        old = SparkVersion(3, 3, 4)
        observation = predict(case, old).observation
        assert {by for by, _ in late(batches_of(account(case, old, observation))).values()} == {"engine"}
        # Of a version that is not known, neither is the watermark by which rows are late.
        assert late(batches_of(account(case, None, observation))) == {}

    def test_the_model_counts_only_up_to_where_it_predicts_otherwise(self) -> None:
        case, prediction = CASES[GUIDE], predict(CASES[GUIDE], VERSION)
        batches = batches_of(account(case, VERSION, with_last_dropped(prediction.observation, 7), prediction))
        assert [one.model is not None for one in batches] == [True] * (len(batches) - 1) + [False]
        assert batches[-1].kept is None

    @pytest.mark.parametrize("id", [id for id in CASES if id.startswith(("chained-aggregations/", "join-delays/"))])
    def test_an_operator_drops_only_rows_that_it_read(self, id: str) -> None:
        try:
            prediction = predict(CASES[id], VERSION)
        except Unpredictable:
            pytest.skip("the model does not predict it")
        for batch in (batch for step in prediction.steps for batch in step.batches):
            read = {stream: len(rows) for stream, rows in batch.read}
            for operator in batch.operators:
                late_rows = {origin for one in operator.late for origin in one.origins}
                assert late_rows <= set(operator.read)
                assert all(place < read[stream] for stream, place in operator.read)


class TestWindows:
    def test_a_window_behind_a_join_is_there_when_a_pair_has_matched(self) -> None:
        case = CASES[BEHIND_A_JOIN]
        assert "window" in str(case.query)
        for one in told(BEHIND_A_JOIN):
            assert one.kept is not None
            assert len(one.kept) <= sum(one.seen.state)

    def test_without_the_model_only_emitted_windows_are_known(self) -> None:
        batches = told(GUIDE, with_model=False)
        assert {one.kept for one in batches} == {None}
        assert any(one.emitted for one in batches)

    @pytest.mark.parametrize(("time", "holds"), [(0, True), (9, True), (10, False), (None, False)])
    def test_a_window_holds_its_start_and_not_its_end(self, time: int | None, holds: bool) -> None:
        assert Span(0, 10).holds(time) is holds
