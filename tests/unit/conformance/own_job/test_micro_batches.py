"""How samples are divided: everything arrives once, in the order of the file or of event time, with what a watermark must cope with."""

from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.core.data import Json
from conformance.core.spark_types import parse_schema
from conformance.core.values import canonical
from conformance.own_job.many_rows import NO_INSTANT, instant_of
from conformance.own_job.sample import ArrivalOrder, Sample
from conformance.own_job.sample_arrivals import FAR_AHEAD, arrivals

SCHEMA = parse_schema("t TIMESTAMP, n INT")
EPOCH = 1_772_366_400


def sample(stream: str, *seconds: int | None, event_time: int | None = 0, arrival: ArrivalOrder = "file") -> Sample:
    rows = tuple((None if s is None else EPOCH + s, n) for n, s in enumerate(seconds))
    return Sample(stream, SCHEMA, rows, event_time, arrival=arrival)


def names(*samples: Sample, batches: int = 4, **options: bool) -> list[str]:
    return [arrival.name for arrival in arrivals(samples, batches, **options)]


@pytest.mark.parametrize(
    ("arrival", "divided"),
    [("file", [[0, 1], [2, 3], [], [4, 5], [6, 7]]), ("time", [[1, 2], [0, 5], [], [3, 4], [6, 7]])],
)
def test_one_stream_has_a_late_row_a_restart_and_an_end(arrival: ArrivalOrder, divided: list[list[int]]) -> None:
    found = list(arrivals([sample("orders", 30, 0, 10, 40, 50, 20, 60, 70, arrival=arrival)], 4, again=True))
    assert [arrival.name for arrival in found] == [
        "micro-batch 1 of the sample",
        "micro-batch 2 of the sample",
        "the query restarts",
        "micro-batch 3 of the sample",
        "micro-batch 4 of the sample",
        "a row much later: windows close",
        "the latest row arrives again, and the earliest, late",
    ]
    assert [[row[1] for row in arrival.rows.get("orders", ())] for arrival in found] == [*divided, [7], [7, 1]]


def test_rows_that_arrive_by_chance_do_so_alike_with_the_same_seed() -> None:
    def divided(seed: int, stream: str = "orders") -> list[list[int]]:
        rows = (
            sample(stream, *range(0, 120, 10), arrival=f"random:{seed}"),
            sample("few", 0, 50, arrival=f"random:{seed}"),
        )
        return [[row[1] for row in each.rows.get(stream, ())] for each in arrivals(rows, 4) if each.rows]

    assert divided(7) == divided(7)
    assert divided(7) != divided(8)
    assert divided(7) != divided(7, "clicks")
    *whole, _ = divided(7)
    assert sorted(number for batch in whole for number in batch) == [*range(12)]
    assert all(whole)


def test_beside_another_stream_late_rows_stay_late_and_rows_of_the_same_time_arrive_together() -> None:
    orders, clicks = sample("orders", 0, 10, 20, 30, 5, 40, 50, 60), sample("clicks", 1, 2, 3, None)
    found = [arrival.rows for arrival in arrivals([orders, clicks], 2) if arrival.rows]
    assert [[row[1] for row in rows.get("orders", ())] for rows in found] == [[0, 1], [2, 3, 4, 5, 6, 7], [7]]
    assert [[row[1] for row in rows.get("clicks", ())] for rows in found] == [[0, 1, 2, 3], [], [2]]


def test_beside_another_stream_a_row_from_the_future_does_not_hold_back_the_rows_after_it() -> None:
    right, wrong = range(0, 80, 10), (0, 10, 9_000, 30, 40, 50, 60, 70)
    found = [arrival.rows for arrival in arrivals([sample("orders", *right), sample("clicks", *wrong)], 4)]
    assert [[row[1] for row in rows.get("clicks", ())] for rows in found] == [[0, 1], [], [], [2, 3, 4, 5], [6, 7], [2]]


def test_each_of_several_streams_is_silent_once_if_asked_for() -> None:
    both = sample("orders", *range(0, 80, 10)), sample("clicks", *range(5, 85, 10))
    assert names(*both, silent=True)[2:5] == ["the query restarts", "only orders sends", "only clicks sends"]
    assert names(*both)[2:4] == ["the query restarts", "micro-batch 3 of the sample"]


seconds = st.lists(st.one_of(st.none(), st.integers(0, 500)), min_size=1, max_size=30)


@given(seconds, seconds, st.integers(2, 6), st.booleans())
def test_every_row_arrives_on_time_then_one_much_later_then_copies(
    orders: list[int | None], clicks: list[int | None], batches: int, silent: bool
) -> None:
    samples = [sample("orders", *orders), sample("clicks", *clicks)]
    plain = list(arrivals(samples, batches, silent=silent))
    found = list(arrivals(samples, batches, silent=silent, again=True))
    assert found[:-1] == plain
    assert sum(not arrival.rows for arrival in found) == 1
    ahead = plain[-1].rows if plain[-1].name.startswith("a row much later") else {}
    for one in samples:
        arrived = Counter(row for arrival in plain for row in arrival.rows.get(one.stream, ()))
        assert arrived == Counter([*one.rows, *ahead.get(one.stream, ())])
        last, first = found[-1].rows[one.stream]
        if instants := sorted(instant for instant in one.instants if instant != NO_INSTANT):
            assert instant_of(first, one.schema, one.event_time) == instants[0]
            assert canonical(last[0], SCHEMA.fields[0].type) == instants[-1] + FAR_AHEAD // timedelta(microseconds=1)
        else:
            assert (first, last) == (one.rows[0], one.rows[-1])


@given(seconds, st.integers(2, 6))
def test_rows_arrive_in_the_order_of_the_file(orders: list[int | None], batches: int) -> None:
    regular = (each for each in arrivals([sample("orders", *orders)], batches) if "of the sample" in each.name)
    assert [row[1] for arrival in regular for row in arrival.rows["orders"]] == [*range(len(orders))]


@given(seconds, st.integers(2, 6))
def test_sorted_by_time_no_micro_batch_is_older_than_one_before(orders: list[int | None], batches: int) -> None:
    one = sample("orders", *orders, arrival="time")
    regular = [arrival for arrival in arrivals([one], batches) if "of the sample" in arrival.name]
    newest = None
    for arrival in regular:
        instants = [
            *filter(NO_INSTANT.__ne__, (instant_of(row, one.schema, one.event_time) for row in arrival.rows["orders"]))
        ]
        assert newest is None or not instants or min(instants) >= newest
        newest = max([*instants, *([newest] if newest is not None else [])], default=None)


@pytest.mark.parametrize(
    ("type", "value", "unparsed", "emptied"),
    [
        ("STRING", "ada", ["n/a"], "ada"),
        ("STRING", "ada;7", ["n/a;7", "ada;n/a"], "ada;7"),
        (
            "STRING",
            '{"at": "2026-03-01", "n": 1.5, "in": {"shop": "south"}, "ok": true}',
            [
                '{"at": "n/a", "n": 1.5, "in": {"shop": "south"}, "ok": true}',
                '{"at": "2026-03-01", "n": 1.5, "in": {"shop": "n/a"}, "ok": true}',
            ],
            '{"at": "2026-03-01", "n": 0, "in": {"shop": "south"}, "ok": true}',
        ),
        ("INT", 2, [], 0),
        ("TIMESTAMP", "2026-03-01T10:00:00Z", [], "2026-03-01T10:00:00Z"),
        ("ARRAY<STRING>", ["a", "b"], [["n/a", "b"]], []),
        ("MAP<STRING, STRING>", {"a": "b"}, [], {}),
        ("STRUCT<at: STRING, n: INT>", {"at": "x", "n": 3}, [{"at": "n/a", "n": 3}], {"at": "x", "n": 0}),
        ("STRING", None, [], None),
    ],
)
def test_rows_come_in_which_one_text_after_the_other_does_not_parse_then_zeros_and_nothing_to_look_up(
    type: str, value: Json, unparsed: list[Json], emptied: Json
) -> None:
    schema = parse_schema(f"n INT, x {type}")
    *_, last = arrivals([Sample("orders", schema, ((5, value),), None)], 2, unfit=True)
    assert last.rows == {"orders": (*((5, other) for other in unparsed), (0, emptied))}
    # A filter may take the latest row.
    *_, last = arrivals([Sample("orders", schema, ((5, value), (6, value)), None)], 2, unfit=True)
    assert last.rows == {
        "orders": tuple(row for n in (6, 5) for row in (*((n, other) for other in unparsed), (0, emptied)))
    }
