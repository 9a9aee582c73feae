"""Observations of the segments of a run, joined."""

from conformance.core.observation import Column
from harness.engine.request import join_segments
from tests.support.observations import COLUMNS, batch, observed, step

LABELS = (Column(name="label", type="string"),)


def test_both_halves_of_a_step_become_one():
    joined = join_segments([observed(step(1), step(2, batch(0))), observed(step(2, batch(1)), step(3))])
    assert [one.number for one in joined.steps] == [1, 2, 3]
    assert [one.id for one in joined.steps[1].batches] == [0, 1]


def test_steps_keep_the_columns_of_the_query_that_an_engine_ran():
    joined = join_segments([observed(step(1)), observed(step(2), columns=LABELS)])
    assert joined.columns == LABELS
    assert [joined.columns_of(one) for one in joined.steps] == [COLUMNS, LABELS]


def test_an_engine_that_built_no_query_does_not_hide_the_columns():
    joined = join_segments([observed(step(1)), observed(step(2), columns=())])
    assert [joined.columns_of(one) for one in joined.steps] == [COLUMNS, COLUMNS]
