"""The order in which an engine gets its cases."""

from conformance.runner.cases import cells_of
from conformance.suite.selection import estimated_batches
from harness.engine.request import kills_its_engine
from harness.scheduling.scheduler import queues
from tests.support.miniature.target import SPARK_359
from tests.support.whole_suite import whole_suite


def test_long_cases_first():
    cases = whole_suite().cases
    ordinary = [case for case in cases if not (kills_its_engine(case) or case.in_real_time)]
    (batches,) = queues(cells_of(ordinary, [SPARK_359])).values()
    ordered = [batch.first.case for batch in batches]
    assert sorted(case.id for case in ordered) == sorted(case.id for case in ordinary)
    lengths = [estimated_batches(case) for case in ordered]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > lengths[-1]


def test_cases_that_kill_their_engine_run_in_one_of_their_own():
    cases = [case for case in whole_suite().cases if not case.in_real_time]
    by_engine = queues(cells_of(cases, [SPARK_359]))
    others, killing = ([batch.first.case for batch in batches] for batches in by_engine.values())
    assert len(others) + len(killing) == len(cases)
    assert [kills_its_engine(case) for case in killing] == [True] * len(killing)
    assert not any(kills_its_engine(case) for case in others)
    assert len(queues(cells_of(others, [SPARK_359]))) == 1
