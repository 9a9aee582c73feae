"""Nothing lost and nothing twice, over every interruption in the suite: what a case says against the same case without it."""

import pytest

from conformance.core.case import Add, Alter, Restart
from conformance.core.observation import Observation
from conformance.core.versions import releases
from conformance.judging.verdict import not_applicable
from conformance.model.errors import Unpredictable
from conformance.oracle.prediction import predict
from tests.support.effort import FULL
from tests.support.observations import batch, failed, observed, step, window
from tests.support.uninterrupted import emitted, same_rows, uninterrupted
from tests.support.whole_suite import whole_suite

CASES = {case.id: case for case in whole_suite().cases}
INTERRUPTED = {id: whole for id, case in CASES.items() if (whole := uninterrupted(case)) is not None}
NEWEST = (*{one.line: one for one in releases()}.values(),)
"""Of each line."""
NOT_PREDICTED = {
    "recovery/an-expired-snapshot-of-an-iceberg-table-fails-the-query",
    "recovery/dividing-state-is-refused.not-committed",
    "recovery/dividing-state-is-refused.other-store",
    "recovery/dividing-state-is-refused.same-number",
    *(
        f"recovery/first-commit-of-a-table-counts-only-without-a-checkpoint.{begins}"
        for begins in ("latest", "snapshot", "time", "version")
    ),
    "recovery/metadata-gone-passes-where-a-conf-lets-it",
    "recovery/records-aged-out-before-a-replay-are-lost-if-tolerated",
    "recovery/records-aged-out-before-a-replay-fail-the-query",
    "recovery/rows-deleted-from-a-delta-table-after-they-were-read-fail-the-query",
    "recovery/rows-vacuumed-from-a-delta-table-before-a-replay-fail-the-query",
    "recovery/state-may-be-divided-into-other-partitions.1",
    "recovery/state-may-be-divided-into-other-partitions.3",
}
"""The model has no topics and tables whose rows are gone, no partitions of state and no conf that lets a
checkpoint without metadata pass; nor sinks that skip, tables that change, and how many commits a micro-batch reads."""
FIRST, SECOND = window("12:00", "12:10", 1), window("12:10", "12:20", 1)


def observations(case, version):
    return [predict(one, version).observation for one in (case, INTERRUPTED[case.id])]


def lines_of(case):
    """The oldest and the newest line that have the case; in a full run all lines."""
    lines = [version for version in NEWEST if not_applicable(case, version) is None]
    return lines if FULL else [lines[0], lines[-1]]


def test_nothing_lost_and_nothing_twice():
    assert len(INTERRUPTED) > 80
    for case in map(CASES.__getitem__, INTERRUPTED):
        compared = 0
        for version in lines_of(case):
            try:
                over, without = observations(case, version)
            except Unpredictable:
                continue
            shown = f"{case.id} on {version}: {emitted(over)} over it, {emitted(without)} without"
            assert same_rows(case, over, without), shown
            compared += 1
        of_a_sink = case.written is not None or any(of_a_table(step.action) for step in case.steps)
        assert compared or case.id.startswith("arbitrary-state/") or of_a_sink or case.id in NOT_PREDICTED, case.id


def of_a_table(action):
    """Whether the columns of a table change, or its rows are written again."""
    return isinstance(action, Alter) or (isinstance(action, Restart) and bool(action.alter or action.rewritten))


def test_rows_that_arrive_in_an_interruption_arrive_all_the_same():
    killed = CASES["recovery/killed-while-it-runs-counts-no-row-twice"]
    whole = INTERRUPTED[killed.id]
    assert [one.number for one in whole.steps] == list(range(1, len(whole.steps) + 1))
    assert not any(isinstance(one.action, Restart) for one in whole.steps)
    (kill,) = [one for one in killed.steps if isinstance(one.action, Restart)]
    assert Add(streams=kill.action.add) in [one.action for one in whole.steps]


def test_a_case_that_changes_its_query_has_no_other_run():
    assert uninterrupted(CASES["recovery/shorter-delay-after-restart-jumps-ahead"]) is None


@pytest.mark.parametrize(
    ("over", "same"),
    [
        (observed(step(1, batch(0, FIRST)), step(2, batch(0, FIRST), batch(1, SECOND))), True),
        (observed(step(1, batch(0, FIRST)), step(2, batch(1, SECOND))), True),
        (observed(step(1, batch(0, FIRST)), step(2, batch(1, SECOND), batch(2, FIRST))), False),
        (observed(step(1, batch(0, FIRST)), step(2, batch(1))), False),
        (observed(step(1, batch(0, FIRST)), step(2, batch(1), batch(2, SECOND))), False),
        (observed(step(1, batch(0, FIRST)), failed(2, "IOException")), True),
        (observed(step(1, batch(0)), failed(2, "IOException")), False),
    ],
    ids=["again", "once", "twice", "lost", "later", "as far as it went", "lost before it failed"],
)
def test_what_counts_as_the_same(over: Observation, same):
    case = CASES["recovery/commit-gone-is-replayed"]
    assert same_rows(case, over, observed(step(1, batch(0, FIRST)), step(2, batch(1, SECOND)))) is same
