"""Rows have the columns of the query of their step: a restart may replace it."""

from conformance.core.observation import Column, Observation
from conformance.judging.comparison import divergence
from conformance.judging.finding import NotOfTheType
from conformance.judging.step_comparison import OutputSchema
from conformance.judging.verdict import judge
from conformance.suite.record_expectations import observed_expectation
from tests.support.observations import COLUMNS, NEWEST, batch, case, expect, observed, step, window

LABELS = (Column(name="label", type="string"),)
BEFORE = window("12:00", "12:10", 1)


def two_queries(first: tuple[object, ...] = BEFORE) -> Observation:
    """Step 1 emits windows, step 2 a label."""
    return observed(step(1, batch(0, first), columns=COLUMNS), step(2, batch(1, ("n=1",))), columns=LABELS)


def test_each_step_is_judged_by_the_columns_of_its_query() -> None:
    of_windows, of_labels = expect(rows=[["12:00", "12:10", 1]]), expect(rows=[{"label": "n=1"}])
    assert judge(case(of_windows, of_labels), NEWEST, two_queries()).status == "conforms"
    (finding,) = judge(case(of_labels, of_labels), NEWEST, two_queries()).findings
    assert isinstance(finding, NotOfTheType)
    assert finding.place.step == 1
    assert finding.observed == ("start: timestamp", "end: timestamp", "total: bigint")


def test_two_answers_are_compared_by_the_columns_of_each_step() -> None:
    columns = (Column(name="x", type="decimal(10,2)"),)
    one, same, other = (
        observed(step(1, batch(0, (text,)), columns=columns), step(2), columns=LABELS)
        for text in ("1.5", "1.50", "1.51")
    )
    assert divergence(one, same) is None
    assert divergence(one, other) is not None


def test_recorded_rows_are_written_in_the_columns_of_their_step() -> None:
    seen = two_queries()
    first = observed_expectation(seen.steps[0], OutputSchema.of(seen.columns_of(seen.steps[0])), case(None))
    assert [list(row) for row in first["rows"]] == [["12:00", "12:10", 1]]


def test_columns_are_named_only_where_they_are_not_those_of_the_last_query() -> None:
    steps = step(1, columns=COLUMNS), step(2, columns=LABELS)
    kept = Observation.of("x", LABELS, steps)
    assert [one.columns for one in kept.steps] == [COLUMNS, ()]
    assert [kept.columns_of(one) for one in kept.steps] == [COLUMNS, LABELS]
