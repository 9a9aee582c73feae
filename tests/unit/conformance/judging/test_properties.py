"""What holds of every multiset of rows."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.judging.finding import RowsDiffer
from conformance.judging.verdict import judge
from tests.support.observations import NEWEST, batch, case, expect, observed, step

TIMES = st.integers(0, 23).flatmap(lambda hour: st.integers(0, 59).map(lambda minute: f"{hour:02}:{minute:02}"))
ROWS = st.lists(st.tuples(TIMES, TIMES, st.integers(-3, 3) | st.none()), max_size=8)


def emitted(row: tuple[Any, ...]) -> tuple[Any, ...]:
    start, end, total = row
    return (f"1970-01-01T{start}:00.000000Z", f"1970-01-01T{end}:00.000000Z", total)


@settings(deadline=None)  # a busy machine must not fail the test
@given(ROWS.flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows), st.integers(0, len(rows)))))
def test_any_order_over_any_batches_conforms(drawn: tuple[list[Any], list[Any], int]) -> None:
    rows, shuffled, cut = drawn
    first = batch(0, *map(emitted, shuffled[:cut]))
    second = batch(1, *map(emitted, shuffled[cut:]))
    assert judge(case(expect(rows=rows)), NEWEST, observed(step(1, first, second))).status == "conforms"


@settings(deadline=None)  # a busy machine must not fail the test
@given(ROWS, ROWS)
def test_the_difference_is_exact(wanted: list[Any], seen: list[Any]) -> None:
    verdict = judge(case(expect(rows=wanted)), NEWEST, observed(step(1, batch(0, *map(emitted, seen)))))
    key = repr
    if sorted(wanted, key=key) == sorted(seen, key=key):
        assert verdict.status == "conforms"
        return
    (finding,) = verdict.findings
    assert isinstance(finding, RowsDiffer)
    assert sorted(finding.expected, key=key) == sorted(wanted, key=key)
    assert sorted(finding.observed, key=key) == sorted(seen, key=key)
    assert not set(finding.missing) & {row.cells for row in finding.extra}
    assert finding.describe()
