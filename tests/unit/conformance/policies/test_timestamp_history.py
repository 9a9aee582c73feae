"""Hazelcast Jet's TimestampHistory against the tables of its TimestampHistoryTest (0.5)."""

import pytest

from conformance.policies.engines import TimestampHistory
from conformance.policies.rules import InvalidParameter
from conformance.policies.trace import MIN

TABLES: dict[str, tuple[int, int, list[tuple[int, int, int]]]] = {
    "time advances by one": (
        6,
        3,
        [(n, n, MIN) for n in range(1, 7)]
        + [(7, 7, 2), (8, 8, 2), (9, 8, 4), (10, 10, 4), (11, 10, 6), (12, 10, 6), (13, 10, 8)],
    ),
    "time advances by five": (
        6,
        3,
        [(1, 1, MIN), (6, 2, MIN), (11, 3, 2), (16, 4, 2), (17, 4, 3), (18, 4, 3), (19, 4, 3), (20, 4, 3), (21, 4, 4)],
    ),
    "one sample": (3, 1, [(0, 0, MIN), (1, 1, MIN), (2, 2, MIN), (3, 3, 2)]),
    "nothing but the lowest value": (6, 3, [(n, MIN, MIN) for n in range(1, 30)]),
}
"""Name → delay, samples, and rows of (now, value entered, oldest value)."""


@pytest.mark.parametrize("name", TABLES)
def test_the_oldest_value(name: str) -> None:
    delay, samples, rows = TABLES[name]
    history = TimestampHistory(delay, samples)
    for now, value, oldest in rows:
        history, found = history.sample(now, value)
        assert found == oldest, now


def test_a_delay_shorter_than_its_samples_has_no_interval() -> None:
    with pytest.raises(InvalidParameter, match="maxDelay of TimestampHistory is 2: it must be at least its 3 samples"):
        TimestampHistory(2, 3)


@pytest.mark.parametrize("samples", [0, 10**12])
def test_samples_are_kept_and_so_not_too_many(samples: int) -> None:
    with pytest.raises(InvalidParameter, match=r"samples of TimestampHistory is .*: it must be from 1 to 10000"):
        TimestampHistory(10**18, samples)
