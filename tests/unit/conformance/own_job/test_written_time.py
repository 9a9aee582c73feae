"""Event times in text, numbers and JSON text: read, and written later in the same way."""

import pytest

from conformance.core.errors import WrongUsage
from conformance.own_job.written_time import written_time

TEN = 1_772_359_200_000_000
"""2026-03-01 10:00 UTC"""


@pytest.mark.parametrize(
    ("value", "said", "micros", "later"),
    [
        ("2026-03-01 10:00:00", None, TEN, "2027-03-02 10:00:00"),
        ("2026-03-01T10:00", None, TEN, "2027-03-02T10:00"),
        (1_772_359_200_000, None, TEN, 1_803_981_600_000),
        ('{"shop": "a", "at": "2026-03-01 10:00:00"}', None, TEN, '{"shop": "a", "at": "2027-03-02 10:00:00"}'),
        (
            '{"a":{"at":"2026-03-01T11:00:00.5+01:00"}}',
            None,
            TEN + 500_000,
            '{"a":{"at":"2027-03-02T11:00:00.5+01:00"}}',
        ),
        ('{"id":7,"ts":1772359200}', None, TEN, '{"id":7,"ts":1803981600}'),
        # The query may use any of several times, so each is later.
        ('{"n":1772359200,"t":"2026-03-01 10:00"}', None, TEN, '{"n":1803981600,"t":"2027-03-02 10:00"}'),
        ('{"n":1772359200,"t":"2026-03-01 10:00"}', "n as s", TEN, '{"n":1803981600,"t":"2026-03-01 10:00"}'),
        ('{"o":{"at":"01.03.2026 10:00"}}', "o.at as dd.MM.yyyy HH:mm", TEN, '{"o":{"at":"02.03.2027 10:00"}}'),
        ('{"at":"01.03.2026 10:00"}', "value.at as dd.MM.yyyy HH:mm", TEN, '{"at":"02.03.2027 10:00"}'),
        # Text with separators, as of CSV in a topic, and numbers in text.
        ("a,1772359200,DE,9.5", None, TEN, "a,1803981600,DE,9.5"),
        ("DE|2026-03-01 10:00|7", None, TEN, "DE|2027-03-02 10:00|7"),
        ("DE;01.03.2026 10:00", "value.1 as dd.MM.yyyy HH:mm", TEN, "DE;02.03.2027 10:00"),
        ('{"at":"1772359200000"}', None, TEN, '{"at":"1803981600000"}'),
        ({"o": {"at": "2026-03-01T10:00Z"}, "n": 1}, None, TEN, {"o": {"at": "2027-03-02T10:00Z"}, "n": 1}),
        ({"at": "01.03.2026 10:00"}, "value.at as dd.MM.yyyy HH:mm", TEN, {"at": "02.03.2027 10:00"}),
        ("20260301100000", "value as yyyyMMddHHmmss", TEN, "20270302100000"),
        ("2026-03-01T10-00", "value as yyyy-MM-dd'T'HH-mm", TEN, "2027-03-02T10-00"),
    ],
)
def test_a_time_is_read_and_written_later_in_the_same_way(
    value: object, said: str | None, micros: int, later: object
) -> None:
    time = written_time((5, value), ("id", "value"), said)
    assert time is not None
    assert time.micros((5, value)) == micros
    assert time.later((5, value), 366) == (5, later)
    # A row that cannot be read has no event time, and none is made.
    assert (time.micros((5, "x")), time.later((5, "x"), 366)) == (None, None)


@pytest.mark.parametrize(
    "value", ["x", 5, True, None, '{"n": 5}', '{"n"', "[1]", '{"at": null}', "a,5;b", "1,772,359,200", {"at": None}]
)
def test_what_is_not_written_like_a_time_is_none(value: object) -> None:
    assert written_time((value,), ("value",)) is None


def test_a_letter_of_a_pattern_that_is_not_known_is_said() -> None:
    with pytest.raises(
        WrongUsage, match=r"--event-time: GG of 'GG yyyy' is not known: known are yyyy, .*, and units s, ms, us, ns"
    ):
        written_time(("x",), ("value",), "value as GG yyyy")
