"""What became of a sample's rows, by what the engines of both versions counted."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from conformance.core.observation import EventTime, Observation
from conformance.core.spark_types import parse_schema
from conformance.own_job.sample import Sample
from conformance.own_job.sample_arrivals import FAR_AHEAD_COMES
from conformance.own_job.sample_rows import NOT_CLOSED, RowsOfVersions, SampleRows
from tests.support.observations import batch, case, expect, ms, observed, step
from tests.unit.conformance.own_job.test_statements import verdict

SAMPLE = Sample("events", parse_schema("t TIMESTAMP, n INT"), tuple((f"12:0{n}", n) for n in range(6)), 0)
PLAN = (
    "+- EventTimeWatermark minute#12: timestamp, 10 minutes\n"
    "   +- Project [placed#0, cast(date_format(placed#0, yyyy-MM-dd'T'hh:mm, Some(UTC)) as timestamp) AS minute#12]"
)
YEAR_LATER = ms(12) + timedelta(days=366) // timedelta(milliseconds=1)


def run(
    dropped: int = 0, operator: str = "stateStoreSave", first: int = ms(12), ahead: int = YEAR_LATER
) -> Observation:
    progress = {"stateOperators": [{"operatorName": operator, "numRowsDroppedByWatermark": dropped}]}
    times = EventTime(min=first, max=ms(12), avg=ms(12))
    own = batch(0, ("a",), watermark=ms(11), next_watermark=ms(11), state=(4,), progress=progress, event_time=times)
    return observed(step(1, own), step(2, batch(1, ("b",), ("c",), watermark=ms(11), next_watermark=ahead)))


def rows(seen: Observation, **keys: Any) -> SampleRows:
    of = case(expect(), expect(), names={2: FAR_AHEAD_COMES})
    return SampleRows.of(replace(verdict(), **{"case": of, "plan": PLAN, **keys}), seen, [SAMPLE])


def lines(*seen: Observation) -> list[str]:
    both = RowsOfVersions(tuple(zip(("3.5.9", "4.3.0"), map(rows, seen), strict=False)))
    return [f"{found.glyph} {line}" for found in both.statements() for line in (found.text, *found.details)]


def test_rows_that_are_not_lost_are_counted_once_for_both_versions() -> None:
    text = "● both versions: 6 rows of the sample in; 4 in state at its end; 1 out, 2 more after a row much later"
    assert lines(run(), run()) == [f"{text}; none late, none without an event time"]
    assert RowsOfVersions((("3.5.9", rows(run())),)).record() == []


@pytest.mark.parametrize(
    ("operator", "what"),
    [
        ("stateStoreSave", "the aggregation dropped 9 late groups"),
        ("dedupe", "the deduplication dropped 9 late rows"),
        ("symmetricHashJoin", "the join dropped 9 late rows"),
        ("sessionWindowStateStoreSaveExec", "the session windows dropped 9 late groups"),
        ("applyInPandasWithState", "the operator applyInPandasWithState dropped 9 late rows"),
    ],
)
def test_late_rows_are_said_with_the_operator_that_dropped_them_and_its_watermark(operator: str, what: str) -> None:
    known = rows(run(dropped=9, operator=operator))
    assert known.lost
    assert known.late == (f"{what}, with watermarks up to 11:00",)
    found = lines(run(), run(dropped=9, operator=operator))
    assert [line.partition(":")[0] for line in found if "of the sample" in line] == ["● 3.5.9", "▲ 4.3.0"]


def test_versions_that_name_the_operator_of_session_windows_otherwise_agree() -> None:
    found = lines(run(9, "defaultName"), run(9, "sessionWindowStateStoreSaveExec"))
    assert [line for line in found if "of the sample" in line and "both versions" not in line] == []


@pytest.mark.parametrize(
    ("seen", "advice"),
    [
        (run(dropped=9), ["A longer delay of the watermark keeps late rows (conformance explain says which, and why)"]),
        (run(first=0), ["Read the event time as it is written, or filter the rows without one"]),
        (
            run(dropped=9, first=0),
            [
                "Read the event time as it is written, or filter the rows without one",
                "a longer delay of the watermark keeps late rows (conformance explain says which, and why)",
            ],
        ),
        (run(dropped=9, first=1_772_366_400_000_000), ["Read the event time in its unit"]),
    ],
)
def test_the_advice_about_lost_rows_is_by_the_reason(seen: Observation, advice: list[str]) -> None:
    accepted = "--accept-lost if they may be lost"
    assert RowsOfVersions((("3.5.9", rows(seen)),)).advice.split("; ") == [*advice, accepted]


def arriving(*times: tuple[int, int]) -> Observation:
    """Micro-batches with these oldest and newest event times, in minutes after 12:00, and a delay of ten minutes; all drop a row."""
    progress = {"stateOperators": [{"operatorName": "dedupe", "numRowsDroppedByWatermark": 1}]}
    marks = [0, *(max(ms(12, newest - 10) for _, newest in times[: at + 1]) for at in range(len(times)))]
    of_times = [EventTime(min=ms(12, a), max=ms(12, b), avg=ms(12, a)) for a, b in times]
    batches = [
        batch(at, watermark=marks[at], next_watermark=marks[at + 1], progress=progress, event_time=time)
        for at, time in enumerate(of_times)
    ]
    return observed(step(1, *batches))


@pytest.mark.parametrize(
    ("times", "ahead"),
    [
        ([(0, 5), (6, 2880), (11, 15)], "1970-01-03 12:00"),
        ([(0, 2880), (6, 10), (11, 15)], "1970-01-03 12:00"),
        ([(0, 5), (6, 2880), (11, 2895)], None),
        ([(0, 5), (6, 10), (-60, -60), (11, 15)], None),
    ],
)
def test_of_one_row_far_in_the_future_a_longer_delay_is_no_advice(
    times: list[tuple[int, int]], ahead: str | None
) -> None:
    known = rows(arriving(*times))
    assert known.ahead == ahead
    what, *_ = RowsOfVersions((("3.5.9", known),)).advice.split("; ")
    late = "A longer delay of the watermark keeps late rows (conformance explain says which, and why)"
    filtered = f"Filter rows so far ahead as that of {ahead}: those after it are late, with a longer delay too"
    assert what == (filtered if ahead else late)


def test_an_event_time_that_is_null_is_said_with_the_expression_that_gave_it() -> None:
    known = rows(run(first=0))
    assert known.without_event_time == "cast(date_format(placed, yyyy-MM-dd'T'hh:mm, Some(UTC)) as timestamp)"
    assert rows(run(first=0), plan="EventTimeWatermark t#3: timestamp, 1 minutes").without_event_time == "t"
    assert (known.lost, known.other_years) == (False, ())
    windows = rows(
        run(first=0),
        plan=f"{PLAN}\nnamed_struct(start, knownnullable(precisetimestampconversion(t#3, LongType, TimestampType)))",
    )
    joined = rows(run(first=0), plan=f"Join Inner, (who#1 = who#2)\n{PLAN}")
    assert windows.lost, "a window has no place for a row without a time; a deduplication emits it"
    assert joined.lost


def test_a_year_that_no_event_has_is_said() -> None:
    (_, line) = lines(run(first=1_772_366_400_000_000), run(first=1_772_366_400_000_000))
    assert line == "▲ both versions: event times in the year 58134: is their unit another, milliseconds?"


def test_if_no_row_closed_the_windows_that_is_the_first_line() -> None:
    assert lines(run(ahead=ms(11)))[0] == f"▲ 3.5.9: {NOT_CLOSED}"
    without_watermark = observed(step(1, batch(0, event_time=None)))
    assert rows(without_watermark).closed


def test_of_digests_the_number_of_rows_is_read() -> None:
    seen = observed(step(1, batch(0, ("70 rows", "digest 5"))))
    assert rows(seen, digests=True).out == 70
