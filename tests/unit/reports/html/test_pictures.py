"""Every picture of the published results, held against the numbers in the results."""

from collections.abc import Iterator
from functools import cache

import pytest

from conformance.account.account import BatchAccount, account, batches_of
from conformance.core.case import Case
from conformance.core.versions import SparkVersion
from conformance.model.errors import Unpredictable
from conformance.oracle.prediction import predict
from reports.html.timeline import WindowBar, timeline, window_bars
from tests.support.published import published_report

NEWEST = SparkVersion(4, 3, 0)
ONE_OF_TWO_WINDOWS = "late-drops/row-late-in-one-sliding-window-only"


@cache
def pictured() -> dict[str, tuple[Case, tuple[BatchAccount, ...]]]:
    """Every case with the account of what the newest version did."""
    report = published_report()
    found = {}
    for id, case in report.cases.items():
        cell = report.matrix.cells.get((id, f"spark-{NEWEST}"))
        if cell is None or cell.observation is None:
            continue
        try:
            predicted = predict(case, NEWEST)
        except Unpredictable:
            predicted = None
        found[id] = case, batches_of(account(case, NEWEST, cell.observation, predicted))
    return found


def state_rows(one: BatchAccount) -> int:
    return sum(one.seen.state)


def is_in_state(bar: WindowBar, at: int) -> bool:
    """Whether a picture says that a window is in state after a micro-batch; one whose end is not known, until it is last emitted."""
    last = max(bar.emitted, default=bar.first) if bar.end == "unknown" else bar.last
    return bar.first <= at < last or (at == last and bar.end == "open")


def wrong_windows(case: Case, batches: tuple[BatchAccount, ...]) -> Iterator[str]:
    bars = window_bars(case.output_mode, batches)
    for at, one in enumerate(batches):
        drawn = sum(is_in_state(bar, at) for bar in bars)
        if drawn > state_rows(one):
            yield f"{case.id}: {drawn} windows after micro-batch {one.seen.id}, which keeps {state_rows(one)} rows"
        marks = sum(len(bar.emitted.get(at, ())) for bar in bars)
        if marks > len(one.seen.rows):
            yield f"{case.id}: {marks} windows emitted by micro-batch {one.seen.id}, which emits {len(one.seen.rows)} rows"


def test_both_watermarks_are_drawn_where_a_row_between_them_is_kept() -> None:
    case, batches = pictured()["late-drops/late-by-the-watermark-of-the-batch-before"]
    drawn = timeline(case, batches)
    assert drawn is not None
    assert drawn.late not in ("", drawn.watermark)
    case, batches = pictured()["output-modes/append-emits-each-window-once"]
    calm = timeline(case, [batch for batch in batches if not any(row.behind for row in batch.rows)])
    assert calm is not None
    assert calm.late == ""


def test_no_picture_has_more_windows_than_there_are_rows_of_state_and_emitted_rows() -> None:
    assert len(pictured()) > 800
    assert [problem for case, batches in pictured().values() for problem in wrong_windows(case, batches)] == []


def test_every_window_drawn_is_in_state_or_in_an_emitted_row() -> None:
    drawn = 0
    for id, (case, batches) in pictured().items():
        known = {window.span for one in batches for window in one.emitted}
        known |= {span for one in batches for span in (one.kept or frozenset()) | (one.evicted or frozenset())}
        spans = {bar.span for bar in window_bars(case.output_mode, batches)}
        assert spans <= known, id
        drawn += len(spans)
    assert drawn > 600


def test_no_row_is_drawn_late_where_the_engine_dropped_none() -> None:
    late = 0
    for id, (_, batches) in pictured().items():
        for one in batches:
            dropped = [row for row in one.rows if row.treatment == "late"]
            late += len(dropped)
            if dropped and one.seen.dropped is not None:
                assert one.seen.dropped > 0, (id, one.seen.id)
    assert late > 100


def test_as_many_rows_are_drawn_late_as_were_dropped_where_the_engine_counts_rows() -> None:
    counted = 0
    for id, (_, batches) in pictured().items():
        for one in batches:
            operators = one.model.operators if one.model is not None else ()
            # An aggregation counts groups, and an operator above another may drop what that one made.
            if len(operators) != 1 or operators[0].operator.startswith(("stateStoreSave", "sessionWindow")):
                continue
            known = [row for row in one.rows if row.time_us is not None]
            if len(known) == len(one.rows) and set(one.streams) == {row.stream for row in known}:
                assert sum(row.treatment == "late" for row in known) == one.seen.dropped, (id, one.seen.id)
                counted += 1
    assert counted > 200


def test_a_row_that_counts_in_one_of_its_windows_is_not_drawn_as_dropped() -> None:
    # The model and Spark count 12:08 in 12:05 – 12:15, though it is too late for 12:00 – 12:10.
    case, batches = pictured()[ONE_OF_TWO_WINDOWS]
    picture = timeline(case, batches)
    assert picture is not None
    treated = {mark.tooltip.partition(" – ")[0]: mark.treatment for mark in picture.rows}
    (treatment,) = [treatment for row, treatment in treated.items() if "12:08" in row]
    assert treatment in ("taken", "model-taken")


@pytest.mark.parametrize(
    "id",
    [
        "chained-aggregations/inclusive-interval-delays-one-millisecond-more",
        "event-time-column/redefined-watermark-with-allow-multiple-off",
    ],
)
def test_no_window_is_drawn_for_a_row_that_did_not_reach_the_aggregation(id: str) -> None:
    case, batches = pictured()[id]
    assert list(wrong_windows(case, batches)) == []
    known = {span for one in batches for span in (one.kept or frozenset()) | (one.evicted or frozenset())}
    drawn = {bar.span for bar in window_bars(case.output_mode, batches)}
    assert drawn == known | {window.span for one in batches for window in one.emitted}
