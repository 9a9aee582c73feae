"""What changes from one answer to another, and what it means for an upgrade."""

import pytest

from conformance.core.case import Differs, ExpectedError
from conformance.core.observation import BatchSeen, Column, Observation
from conformance.judging.comparison import BehaviourChange, behaviour_change, contrast, difference
from tests.support import cells as a
from tests.support.observations import batch, differs, failed, step, window


def changed(before: Observation | str, after: Observation | str, *entries: Differs) -> BehaviourChange:
    answers = a.cell(a.CASE, "spark-3.5.9", before, entries), a.cell(a.CASE, "spark-4.3.0", after, entries)
    where = difference(*answers)
    assert where is not None
    return behaviour_change(*answers, where)


def told(before: Observation | str, after: Observation | str, *entries: Differs) -> tuple[str, str]:
    change = changed(before, after, *entries)
    return change.meaning, change.what


RENAMED = a.CALM.model_copy(update={"columns": (Column(name="N", type="int"), *a.CALM.columns[1:])})


@pytest.mark.parametrize(
    ("before", "after", "meaning", "what"),
    [
        (
            a.CALM,
            RENAMED,
            "rows",
            "output columns "
            + " instead of ".join(
                ", ".join(f"{column.name} {column.type}" for column in seen.columns) for seen in (RENAMED, a.CALM)
            ),
        ),
        (a.CALM, a.LOST, "rows", "1 of 2 rows is no longer emitted, 1 more dropped as late"),
        (a.LOST, a.CALM, "rows", "1 more row than before, 1 fewer dropped as late"),
        (a.CALM, a.OTHER, "rows", "1 row has different values"),
        (a.CALM, a.REFUSED, "refused", "is refused at start: AnalysisException"),
        (a.CALM, a.FAILED, "refused", "fails while it runs: SparkException"),
        (a.REFUSED, a.CALM, "accepted", "runs; it was refused at start (AnalysisException) before"),
        (
            a.seen(failed(1, "AnalysisException", stage="analysis")),
            a.CALM,
            "accepted",
            "runs; it was refused at analysis (AnalysisException) before",
        ),
        (a.CALM, a.HELD, "timing", "1 row later: still in state when the case ends"),
        (a.HELD, a.CALM, "timing", "1 row earlier: previously still in state when the case ends"),
        (a.CALM, a.EARLIER, "timing", "1 row earlier, within the same step"),
        (a.EARLIER, a.CALM, "timing", "1 row later, within the same step"),
        (a.CALM, a.FULLER, "metric", "same rows; differs in rows in state"),
        (
            a.REFUSED,
            a.FAILED_LATER,
            "accepted",
            "starts, then fails while it runs: SparkException; it was refused at start (AnalysisException) before",
        ),
        (a.FAILED_LATER, a.REFUSED, "refused", "is refused at start: AnalysisException"),
        (a.REFUSED, a.FAILED, "metric", "fails at run instead of start"),
        (a.REFUSED, a.REFUSED_OTHERWISE, "metric", "fails with ParseException instead of AnalysisException"),
    ],
)
def test_each_meaning(before, after, meaning: str, what: str) -> None:
    assert told(before, after) == (meaning, what)


THIRD = window("12:20", "12:30", 3)


def answered(*batches: BatchSeen) -> Observation:
    return a.seen(step(1, *batches))


BOTH = answered(batch(0, a.FIRST, a.SECOND), batch(1, kind="no-data"))


@pytest.mark.parametrize(
    ("rows", "state", "dropped", "meaning", "what"),
    [
        ((), 3, 0, "timing", "2 rows later: still in state when the case ends"),
        ((), 4, 0, "timing", "2 rows later: still in state when the case ends"),
        ((), 2, 0, "rows", "2 of 2 rows are no longer emitted"),
        ((), 1, 0, "rows", "2 of 2 rows are no longer emitted"),
        ((), 3, 1, "rows", "2 of 2 rows are no longer emitted, 1 more dropped as late"),
        ((a.FIRST, THIRD), 3, 0, "rows", "1 row has different values"),
        ((THIRD, THIRD), 3, 0, "rows", "2 rows have different values"),
        ((THIRD,), 3, 0, "rows", "1 different row instead of 2"),
        ((THIRD, THIRD, THIRD), 3, 0, "rows", "3 different rows instead of 2"),
    ],
)
def test_a_missing_row_is_only_later_if_state_keeps_as_many_rows_and_no_more_are_dropped(
    rows, state: int, dropped: int, meaning: str, what: str
) -> None:
    after = answered(batch(0, *rows), batch(1, kind="no-data", state=(state,), dropped=dropped))
    assert told(BOTH, after) == (meaning, what)


@pytest.mark.parametrize(
    ("state", "dropped", "meaning", "what"),
    [
        (3, 0, "timing", "2 rows earlier: previously still in state when the case ends"),
        (4, 0, "timing", "2 rows earlier: previously still in state when the case ends"),
        (2, 0, "rows", "2 more rows than before"),
        (1, 0, "rows", "2 more rows than before"),
        (3, 1, "rows", "2 more rows than before, 1 fewer dropped as late"),
    ],
)
def test_an_added_row_is_only_earlier_if_state_kept_as_many_rows_and_no_fewer_are_dropped(
    state: int, dropped: int, meaning: str, what: str
) -> None:
    before = answered(batch(0), batch(1, kind="no-data", state=(state,), dropped=dropped))
    assert told(before, BOTH) == (meaning, what)


def test_a_row_that_was_in_state_is_earlier_although_more_are_dropped() -> None:
    before = answered(batch(0), batch(1, kind="no-data", state=(3,)))
    after = answered(batch(0, a.FIRST, a.SECOND), batch(1, kind="no-data", dropped=1))
    said = "2 rows earlier: previously still in state when the case ends"
    assert told(before, after) == ("timing", said)


def test_fewer_dropped_rows_do_not_explain_a_lost_one() -> None:
    both, first = answered(batch(0, a.FIRST, a.SECOND, dropped=1)), answered(batch(0, a.FIRST))
    assert told(both, first) == ("rows", "1 of 2 rows is no longer emitted")
    assert told(first, both) == ("rows", "1 more row than before")


def test_state_is_that_of_all_operators_when_the_case_ends() -> None:
    before = answered(batch(0, a.FIRST, a.SECOND, state=(1, 1)))
    in_another = answered(batch(0, a.FIRST, state=(9, 9)), batch(1, kind="no-data", state=(0, 3)))
    assert changed(before, in_another).meaning == "timing"
    no_longer = answered(batch(0, a.FIRST, state=(9, 9)), batch(1, kind="no-data", state=(1, 1)))
    assert changed(before, no_longer).meaning == "rows"


@pytest.mark.parametrize(
    ("after", "what"),
    [
        ((step(1, batch(0, a.SECOND), batch(1, a.FIRST)),), "1 row later and 1 row earlier, within the same step"),
        ((step(1, batch(0), batch(1, a.FIRST, a.SECOND)),), "1 row later, within the same step"),
        ((step(1, batch(0, a.FIRST)), step(2, batch(1, a.SECOND))), "1 row later"),
        ((step(1, batch(0)), step(2, batch(1, a.FIRST, a.SECOND))), "2 rows later"),
        ((step(1), step(2, batch(0), batch(1, a.SECOND), batch(2, a.FIRST))), "2 rows later"),
    ],
)
def test_where_the_same_rows_come(after, what: str) -> None:
    assert told(a.CALM, a.seen(*after)) == ("timing", what)


def test_of_equal_rows_the_first_is_compared_with_the_first() -> None:
    before = answered(batch(0, a.FIRST), batch(1), batch(2, a.FIRST), batch(3))
    after = answered(batch(0), batch(1, a.FIRST), batch(2), batch(3, a.FIRST))
    assert changed(before, after).what == "2 rows later, within the same step"


def test_every_metric_that_differs_is_told() -> None:
    after = answered(batch(0, a.FIRST), batch(1, a.SECOND, kind="no-data", state=(3,), watermark=5, next_watermark=6))
    assert told(a.CALM, after) == ("metric", "same rows; differs in watermark, rows in state")


def test_one_observation_is_not_compared() -> None:
    for answers in ((a.CALM, a.BROKEN), (a.BROKEN, a.CALM)):
        assert told(*answers) == ("metric", "no observation was recorded")


def test_a_row_is_lost_and_not_in_state_if_nothing_ran() -> None:
    before = answered(batch(0, a.FIRST, state=(0,)))
    assert told(before, a.seen(step(1))) == ("rows", "1 of 1 row is no longer emitted")


def test_a_case_ends_with_the_error_of_its_last_step() -> None:
    first = step(1, batch(0, a.FIRST))
    broke = step(2, error=a.FAILED.steps[0].error)
    said = told(a.seen(first, step(2, batch(1))), a.seen(first, broke))
    assert said == ("refused", "fails while it runs: SparkException")


def test_two_failures_at_one_stage_differ_only_in_what_came_before() -> None:
    error = a.FAILED.steps[0].error
    answers = [a.seen(step(1, batch(0, a.FIRST, state=(state,)), error=error)) for state in (1, 2)]
    assert told(*answers) == ("metric", "same rows; differs in rows in state")


def test_a_row_in_state_is_later_although_fewer_are_dropped() -> None:
    before, after = answered(batch(0, a.FIRST, a.SECOND, dropped=1)), answered(batch(0, a.FIRST, state=(2,)))
    assert told(before, after) == ("timing", "1 row later: still in state when the case ends")


FAILED_LATER_ONLY_FULLER = a.seen(step(1, batch(0, a.FIRST, state=(7,)), error=a.FAILED.steps[0].error))


@pytest.mark.parametrize(
    ("before", "after", "met"),
    [
        (a.REFUSED, a.CALM, False),  # newly accepted
        (a.FAILED, a.CALM, False),
        (a.REFUSED, a.REFUSED_OTHERWISE, False),  # another error for a query that never ran
        (a.FAILED, a.FAILED_OTHERWISE, False),
        (a.FAILED_LATER, a.FAILED_LATER_OTHERWISE, False),  # it failed there, and fails there
        (a.FAILED_LATER, a.FAILED_LATER_FULLER, True),  # what it did until then has changed
        (a.FAILED_LATER, FAILED_LATER_ONLY_FULLER, True),  # and not the error
        (a.CALM, a.REFUSED, True),
        (a.CALM, a.FULLER, True),
    ],
)
def test_whether_a_query_that_runs_can_meet_it(before, after, met: bool) -> None:
    assert changed(before, after).met_by_running_queries is met


ABSENT = differs(
    "<4",
    unsupported="the API arrived in 4.0",
    link="SPARK-3",
    error=ExpectedError.model_validate({"class": ("AnalysisException",)}),
)


TWO_OTHERS = a.seen(
    step(1, batch(0, window("12:00", "12:10", 5)), batch(1, window("12:10", "12:20", 6), kind="no-data"))
)
STEP_LATER = a.seen(step(1, batch(0, a.FIRST)), step(2, batch(1, a.SECOND, kind="no-data")))
FAILS_AFTER_A_STEP = a.seen(step(1, batch(0, a.FIRST)), a.FAILED.steps[0].model_copy(update={"number": 2}))


class TestContrast:
    """What is said about an old version never reads as if it came after the new one."""

    @pytest.mark.parametrize(
        ("own", "other", "said"),
        [
            (a.FAILED, a.CALM, "here the query fails while it runs: SparkException; on 4.3.0 it runs"),
            (a.CALM, a.REFUSED, "here the query runs; on 4.3.0 it is refused at start: AnalysisException"),
            (
                a.REFUSED,
                a.FAILED_LATER,
                "here the query is refused at start: AnalysisException; on 4.3.0 it starts, then fails while it runs: "
                "SparkException",
            ),
            (
                a.REFUSED,
                a.REFUSED_OTHERWISE,
                "here the query is refused at start: AnalysisException; on 4.3.0 it is refused at start: ParseException",
            ),
            (a.LOST, a.CALM, "1 row emitted only on 4.3.0, 1 more dropped as late here"),
            (a.CALM, a.LOST, "1 row emitted only here, 1 more dropped as late on 4.3.0"),
            (a.HELD, a.CALM, "1 row emitted only on 4.3.0, state at the end: 2 rows here, 1 on 4.3.0"),
            (a.CALM, a.HELD, "1 row emitted only here, state at the end: 1 row here, 2 on 4.3.0"),
            (a.OTHER, a.CALM, "1 row has other values here than on 4.3.0"),
            (a.EARLIER, a.CALM, "1 row earlier, within the same step, compared with 4.3.0"),
            (a.FULLER, a.CALM, "same rows; differs in rows in state"),
            (TWO_OTHERS, a.CALM, "2 rows have other values here than on 4.3.0"),
            (STEP_LATER, a.CALM, "1 row later, compared with 4.3.0"),
            (a.CALM, STEP_LATER, "1 row earlier, compared with 4.3.0"),
            (
                FAILS_AFTER_A_STEP,
                a.CALM,
                "here the query starts, then fails while it runs: SparkException; on 4.3.0 it runs",
            ),
        ],
    )
    def test_both_sides_are_named(self, own, other, said) -> None:
        assert contrast(a.cell(a.CASE, "spark-3.5.9", own), a.cell(a.CASE, "spark-4.3.0", other), "4.3.0") == said

    @pytest.mark.parametrize(("own", "other"), [(a.BROKEN, a.CALM), (a.CALM, a.NOT_RUN)])
    def test_one_answer_is_not_enough(self, own, other) -> None:
        sides = a.cell(a.CASE, "spark-3.5.9", own), a.cell(a.CASE, "spark-4.3.0", other)
        assert contrast(*sides, "4.3.0") == "no observation was recorded"

    def test_a_feature_that_is_not_available(self) -> None:
        own = a.cell(a.CASE, "spark-3.5.9", a.REFUSED, (ABSENT,))
        told = "here the query uses a feature that is not available (AnalysisException); on 4.3.0 it runs"
        assert contrast(own, a.cell(a.CASE, "spark-4.3.0", a.CALM), "4.3.0") == told


@pytest.mark.parametrize(
    ("after", "meaning", "what"),
    [
        (a.CALM, "accepted", "runs; not available before (AnalysisException)"),
        (
            a.FAILED_LATER,
            "accepted",
            "starts, then fails while it runs: SparkException; not available before (AnalysisException)",
        ),
        (
            a.REFUSED_OTHERWISE,
            "metric",
            "is refused at start: ParseException; not available before (AnalysisException)",
        ),
    ],
)
def test_a_feature_that_did_not_exist_was_not_refused(after, meaning: str, what: str) -> None:
    assert told(a.REFUSED, after, ABSENT) == (meaning, what)
