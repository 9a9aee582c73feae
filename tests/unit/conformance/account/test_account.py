"""The account of a micro-batch: what became of each row, which windows are in state, and who says so."""

import pytest

from conformance.account.account import (
    LONGEST_MESSAGE,
    BatchAccount,
    Span,
    StepAccount,
    account,
    account_without_case,
    batches_of,
)
from conformance.core.case import Case
from conformance.core.observation import Column, Observation
from conformance.core.values import show
from conformance.core.versions import SparkVersion
from conformance.language import case_from
from conformance.model.errors import Unpredictable
from conformance.oracle.prediction import predict
from tests.support import observations as seen
from tests.support.effort import number, sample
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


def case_of(query, *steps, streams="t TIMESTAMP, id INT", **keys) -> Case:
    """A case; a step is the rows of ``events`` of a micro-batch, or an action."""
    actions = [{"add": {"events": step}} if isinstance(step, list) else step for step in steps]
    streams = {"events": streams} if isinstance(streams, str) else streams
    return case_from({"title": "t", "streams": streams, "query": query, "steps": actions, **keys}, "a/b")


def answered(case: Case, *, with_model: bool = False, version: SparkVersion = VERSION) -> tuple[StepAccount, ...]:
    """The account of what the model predicts for a case, as if an engine had answered so."""
    prediction = predict(case, version)
    return account(case, version, prediction.observation, prediction if with_model else None)


def treated(steps: tuple[StepAccount, ...]) -> list[list[str]]:
    """The treated of the rows of each micro-batch that was given some."""
    return [[row.treatment for row in batch.rows] for batch in batches_of(steps) if batch.rows]


def late(batches: tuple[BatchAccount, ...]) -> dict[str, tuple[str, str]]:
    """The late rows, each with who says so and the operator that dropped it."""
    return {row.text: (row.by, row.operator) for one in batches for row in one.rows if row.treatment == "late"}


class TestTreatments:
    def test_a_row_that_is_late_for_one_of_its_windows_counts_in_the_other(self) -> None:
        # 12:08 is in 12:00 – 12:10, which is too late for it, and in 12:05 – 12:15, which is not.
        rows = [row for one in told(ONE_OF_TWO_WINDOWS) for row in one.rows if "12:08" in row.text]
        assert [(row.treatment, row.behind) for row in rows] == [("taken", True)]

    def test_a_row_is_late_if_it_is_late_for_each_of_its_windows_and_the_operator_is_named(self) -> None:
        # The example of the guide: (12:04, donkey) is too late; the engine counts 2, one for each window.
        (said,) = late(told(GUIDE)).values()
        assert said == ("engine", "aggregation by window, word")

    @pytest.mark.parametrize("dropped", [1, 3])
    def test_a_count_that_groups_of_late_rows_do_not_make_up_says_nothing(self, dropped: int) -> None:
        observation = with_last_dropped(predict(CASES[GUIDE], VERSION).observation, dropped)
        assert late(batches_of(account(CASES[GUIDE], VERSION, observation))) == {}

    def test_the_number_of_dropped_rows_says_which_are_late_where_only_these_can_be(self) -> None:
        case = CASES["late-drops/late-by-the-watermark-of-the-batch-before"]
        old = SparkVersion(3, 3, 4)
        observation = predict(case, old).observation
        assert {by for by, _ in late(batches_of(account(case, old, observation))).values()} == {"engine"}
        # Of a version that is not known, neither is the watermark by which rows are late.
        assert late(batches_of(account(case, None, observation))) == {}

    @pytest.mark.parametrize("dropped", [0, 7])
    def test_the_model_counts_only_up_to_where_it_predicts_otherwise(self, dropped: int) -> None:
        case, prediction = CASES[GUIDE], predict(CASES[GUIDE], VERSION)
        batches = batches_of(account(case, VERSION, with_last_dropped(prediction.observation, dropped), prediction))
        assert [one.model is not None for one in batches] == [True] * (len(batches) - 1) + [False]
        assert batches[-1].kept is None

    def test_an_operator_drops_only_rows_that_it_read(self) -> None:
        dropped = 0
        for id in sample([id for id in CASES if id.startswith(("chained-aggregations/", "join-delays/"))], 60):
            try:
                prediction = predict(CASES[id], VERSION)
            except Unpredictable:
                continue
            for batch in (batch for step in prediction.steps for batch in step.batches):
                read = {stream: len(rows) for stream, rows in batch.read}
                for operator in batch.operators:
                    late_rows = {origin for one in operator.late for origin in one.origins}
                    assert late_rows <= set(operator.read), id
                    assert all(place < read[stream] for stream, place in operator.read), id
                    dropped += len(late_rows)
        assert dropped > number(3, 40)


READ = [{"from": "events"}, {"withWatermark": ["t", "10 minutes"]}]
COUNTED = [*READ, {"groupBy": ["window(t, '10 minutes')"], "agg": ["count(*) AS n"]}]
FIRST = [["12:01", 1], ["12:31", 2]]
"""Watermark 12:21."""


class TestTreatmentsByTheEngine:
    """What follows from an engine's count of dropped rows, without the model."""

    def test_an_aggregation_counts_late_groups_and_a_deduplication_late_rows(self) -> None:
        # Two rows of one window are one late group: SPARK-40925 left `numRowsDroppedByWatermark` behind the partial aggregation.
        rows = [["12:02", 3], ["12:03", 4], ["12:32", 5]]
        grouped, by_row = case_of(COUNTED, FIRST, rows), case_of([*READ, {"dropDuplicates": ["t", "id"]}], FIRST, rows)
        for case, dropped in ((grouped, [0, 1]), (by_row, [0, 2])):
            assert [batch.seen.dropped for batch in batches_of(answered(case)) if batch.rows] == dropped
        assert (
            treated(answered(grouped)) == treated(answered(by_row)) == [["taken", "taken"], ["late", "late", "taken"]]
        )

    def test_a_row_at_the_watermark_is_behind_it_and_later_by_a_microsecond_is_not(self) -> None:
        steps = answered(case_of(READ, FIRST, [["12:21", 3], ["12:21:00.000001", 4], [None, 5]]))
        assert [(row.behind, row.treatment) for row in batches_of(steps)[-1].rows] == [
            (True, "taken"),  # nothing drops it: the query keeps no state
            (False, "taken"),
            (False, "null"),
        ]

    @pytest.mark.parametrize("counted", [None, 1, 3])
    def test_a_count_that_the_late_rows_do_not_make_up_says_nothing(self, counted: int | None) -> None:
        case = case_of([*READ, {"dropDuplicates": ["t", "id"]}], FIRST, [["12:02", 3], ["12:03", 4], ["12:32", 5]])
        *first, last = predict(case, VERSION).observation.steps
        data, no_data = last.batches
        wrong = last.model_copy(update={"batches": (data.model_copy(update={"dropped": counted}), no_data)})
        engine = predict(case, VERSION).observation.model_copy(update={"steps": (*first, wrong)})
        assert treated(account(case, VERSION, engine))[-1] == ["behind", "behind", "taken"]

    def test_a_count_of_nothing_says_that_no_row_is_late(self) -> None:
        case = case_of(COUNTED, [["12:01", 1], ["12:19", 2]], [["12:08", 3]])
        # The watermark is 12:09, and the window of the last row ends at 12:10.
        assert treated(answered(case))[-1] == ["taken"]
        assert batches_of(answered(case))[-1].rows[0].behind

    @pytest.mark.parametrize(
        "query",
        [
            [*READ, {"where": "id != 4"}, *COUNTED[2:]],
            [*COUNTED, {"groupBy": ["window(window, '1 hour')"], "agg": ["sum(n) AS m"]}],
            [*READ, {"dropDuplicates": ["t", "id"]}, COUNTED[2]],
            [*READ, {"groupBy": ["session_window(t, '1 minute')", "id"], "agg": ["count(*) AS n"]}],
        ],
        ids=[
            "a filter may have dropped it before",
            "which of two operators dropped it",
            "the second sees what the first lets through",
            "late rows of sessions are not counted",
        ],
    )
    def test_what_the_count_alone_does_not_tell(self, query) -> None:
        case = case_of(query, FIRST, [["12:02", 3], ["12:03", 4], ["12:32", 5]])
        assert treated(answered(case))[-1] == ["behind", "behind", "taken"]

    def test_late_is_decided_by_the_watermark_of_the_batch_before_since_3_4(self) -> None:
        case = case_of(
            COUNTED, {"backlog": [{"events": FIRST}, {"events": [["12:02", 3]]}, {"events": [["12:03", 4]]}]}
        )
        for version, by, dropped in (
            ("3.3.4", ["00:00", "12:21", "12:21"], [0, 1, 1]),
            ("4.3.0", ["00:00", "00:00", "12:21"], [0, 0, 1]),
        ):
            batches = batches_of(answered(case, version=SparkVersion.parse(version)))[:3]
            assert [None if batch.late_ms is None else show(batch.late_ms * 1000) for batch in batches] == by
            assert [batch.seen.dropped for batch in batches] == dropped
            assert [batch.rows[-1].treatment for batch in batches] == [
                "late" if one else "taken" for one in [0, *dropped[1:]]
            ]

    def test_the_first_watermark_of_a_stream_marks_its_event_time_else_its_first_time_does(self) -> None:
        streams = {"events": "a TIMESTAMP, T TIMESTAMP", "others": "a TIMESTAMP, t TIMESTAMP"}
        added = {"events": [["12:01", "12:02"]], "others": [["12:03", "12:04"]]}
        case = case_of([*READ, {"union": [{"from": "others"}]}], {"add": added}, streams=streams)
        rows = batches_of(answered(case))[0].rows
        assert [None if row.time_us is None else show(row.time_us) for row in rows] == ["12:02", "12:03"]

    def test_a_stream_without_a_time_has_rows_without_a_treatment(self) -> None:
        case = case_of([{"from": "events"}], [[1], [2]], streams="id INT")
        assert [(row.treatment, row.time_us, row.behind) for row in batches_of(answered(case))[0].rows] == [
            ("timeless", None, False)
        ] * 2


class TestRows:
    def test_each_entry_of_a_backlog_is_a_micro_batch_and_the_last_takes_what_is_left(self) -> None:
        case = case_of(READ, {"backlog": [{"events": [["12:01", n]]} for n in (1, 2, 3)]})
        texts = [[row.text for row in batch.rows] for batch in batches_of(answered(case))]
        assert texts == [["12:01, 1"], ["12:01, 2"], ["12:01, 3"]]
        whole = seen.observed(seen.step(1, seen.batch(0), seen.batch(1)))
        batches = batches_of(account(case, VERSION, whole))
        assert [[row.text for row in batch.rows] for batch in batches] == [["12:01, 1"], ["12:01, 2", "12:01, 3"]]
        assert [batch.streams for batch in batches] == [("events",), ("events",)]

    def test_a_replay_is_given_what_the_first_attempt_was_given(self) -> None:
        case = case_of(READ, FIRST, {"idle": {}})
        replayed = seen.observed(
            seen.step(1, seen.batch(0)), seen.step(2, seen.batch(0), seen.batch(1, kind="no-data"))
        )
        first, again, nothing = batches_of(account(case, VERSION, replayed))
        assert first.rows == again.rows != ()
        assert nothing.rows == nothing.streams == ()
        assert [batch.step for batch in (first, again, nothing)] == [1, 2, 2]

    def test_the_first_micro_batch_after_a_restart_says_how(self) -> None:
        steps = answered(case_of(COUNTED, FIRST, {"restart": "kill"}, [["12:40", 3]], [["12:50", 3]]))
        assert [step.restarted for step in steps] == [None, "kill", None, None]
        assert [[batch.restarted for batch in step.batches][:1] for step in steps] == [[None], [], ["kill"], [None]]

    def test_of_an_answer_without_its_case_the_rows_are_not_known(self) -> None:
        (step,) = account_without_case(seen.observed(seen.step(3, seen.batch(5, seen.window("12:00", "12:10", 7)))))
        (batch,) = step.batches
        assert (batch.step, batch.seen.id, batch.late_ms) == (3, 5, None)
        assert (batch.rows, batch.streams, batch.emitted) == ((), (), ())
        assert step.row(batch.seen.rows[0]) == "12:00, 12:10, 7"


class TestFacts:
    def test_a_step_says_the_watermark_the_sum_of_dropped_rows_and_the_state_at_its_end(self) -> None:
        batches = (seen.batch(0, dropped=2, state=(3, 4)), seen.batch(1, dropped=1, state=(5, 6), watermark=None))
        (step,) = account_without_case(seen.observed(seen.step(1, *batches, watermark=seen.ms(12, 5))))
        assert step.facts == {"watermark": "12:05", "dropped": "3", "state": "5, 6"}
        assert [batch.facts for batch in step.batches] == [
            {"kind": "data", "ran with": "00:00", "dropped": "2", "state": "3, 4"},
            {"kind": "data", "dropped": "1", "state": "5, 6"},
        ]

    def test_what_a_version_does_not_count_is_left_out(self) -> None:
        batches = (seen.batch(0, dropped=2, state=()), seen.batch(1, dropped=None, state=()))
        (step,) = account_without_case(seen.observed(seen.step(1, *batches)))
        assert step.facts == {"watermark": "00:00", "state": "none"}
        (nothing,) = account_without_case(seen.observed(seen.step(1)))
        assert nothing.facts == {"watermark": "00:00"}

    @pytest.mark.parametrize(
        ("message", "said"),
        [
            ("\n  it failed \nand the plan", "it failed"),
            ("", ""),
            ("x" * LONGEST_MESSAGE, "x" * LONGEST_MESSAGE),
            ("x" * (LONGEST_MESSAGE + 1), "x" * LONGEST_MESSAGE + "…"),
        ],
    )
    def test_a_step_that_failed_says_its_error_alone(self, message: str, said: str) -> None:
        failed = seen.failed(1, "A", "B", "C", "D", "E", stage="start", message=message)
        (step,) = account_without_case(seen.observed(failed))
        assert step.facts == {"error": f"A < B < C < D at start: {said}"}

    def test_an_error_without_a_class_is_an_error(self) -> None:
        (step,) = account_without_case(seen.observed(seen.failed(1)))
        assert step.facts == {"error": "an error at run: it failed"}


def minutes(start: int, end: int) -> Span:
    return Span((12 * 60 + start) * 60_000_000, (12 * 60 + end) * 60_000_000)


class TestEmittedWindows:
    WINDOW = "struct<start:timestamp,end:timestamp>"

    @pytest.mark.parametrize(
        ("columns", "row", "emitted"),
        [
            (("start timestamp", "end timestamp", "n int"), ("12:00", "12:10", 7), [(minutes(0, 10), "7")]),
            (("n int", "w_END timestamp", "w_start timestamp"), (7, "12:10", "12:00"), [(minutes(0, 10), "7")]),
            (("n int", f"w {WINDOW}", "m int"), (7, ["12:00", "12:10"], 8), [(minutes(0, 10), "7 8")]),
            ((f"v {WINDOW}", f"w {WINDOW}"), (["12:00", "12:10"], None), [(minutes(0, 10), "null")]),
            ((f"w {WINDOW}",), (None,), []),
            ((f"w {WINDOW}",), ([None, "12:10"],), []),
            (("start timestamp", "end timestamp"), ("12:00", None), []),
            (("start timestamp", "end timestamp"), ("12:10", "12:10"), [(minutes(10, 10), "")]),
            (
                ("start timestamp", "end timestamp"),
                ("12:11", "12:10"),
                [],
            ),  # an end before its start is of other things
            (("start timestamp", "end timestamp"), ("12:00",), []),
            (("start timestamp", "end timestamp"), ("12:00", "noon"), []),
            (("start int", "end int"), (1, 2), []),
            (("start timestamp", "w_end timestamp"), ("12:00", "12:10"), []),
            (("started timestamp", "ended timestamp"), ("12:00", "12:10"), []),
        ],
    )
    def test_a_window_is_a_struct_or_two_instants_called_start_and_end(self, columns, row, emitted) -> None:
        def sent(value):
            if isinstance(value, list):
                return [sent(part) for part in value]
            return seen.at(value) if isinstance(value, str) and ":" in value else value

        named = tuple(Column(name=name, type=type_) for name, type_ in (column.split() for column in columns))
        answer = seen.observed(seen.step(1, seen.batch(0, tuple(map(sent, row)))), columns=named)
        (batch,) = batches_of(account(seen.case(None), VERSION, answer))
        assert [(window.span, window.rest) for window in batch.emitted] == emitted


class TestWindows:
    def test_a_window_behind_a_join_is_there_when_a_pair_has_matched(self) -> None:
        case = CASES[BEHIND_A_JOIN]
        assert "window" in str(case.query)
        for one in told(BEHIND_A_JOIN):
            assert one.kept is not None
            assert len(one.kept) <= sum(one.seen.state)

    def test_a_window_is_kept_until_a_watermark_at_its_end_evicts_it(self) -> None:
        case = case_of(COUNTED, FIRST, outputMode="update")
        data, no_data = batches_of(answered(case, with_model=True))
        assert (data.kept, data.evicted) == ({minutes(0, 10), minutes(30, 40)}, frozenset())
        assert (no_data.kept, no_data.evicted) == ({minutes(30, 40)}, {minutes(0, 10)})
        assert {(batch.kept, batch.evicted) for batch in batches_of(answered(case))} == {(None, None)}

    @pytest.mark.parametrize(("time", "holds"), [(0, True), (9, True), (10, False), (None, False)])
    def test_a_window_holds_its_start_and_not_its_end(self, time: int | None, holds: bool) -> None:
        assert Span(0, 10).holds(time) is holds
