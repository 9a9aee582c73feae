"""The order in which an engine gets its cases."""

from conformance.runner.cases import cells_of
from conformance.suite.selection import estimated_batches
from harness.engine.engine import EngineNeeds
from harness.engine.request import kills_its_engine
from harness.scheduling.scheduler import queues
from tests.support.miniature.target import SPARK_359
from tests.support.whole_suite import whole_suite


def test_long_cases_first():
    cases = whole_suite().cases
    ordinary = [case for case in cases if not (kills_its_engine(case) or case.in_real_time or case.table_formats)]
    (batches,) = queues(cells_of(ordinary, [SPARK_359])).values()
    ordered = [batch.first.case for batch in batches]
    assert sorted(case.id for case in ordered) == sorted(case.id for case in ordinary)
    lengths = [estimated_batches(case) for case in ordered]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > lengths[-1]


def test_cases_that_kill_their_engine_run_in_one_of_their_own():
    cases = [case for case in whole_suite().cases if not (case.in_real_time or case.table_formats)]
    by_engine = queues(cells_of(cases, [SPARK_359]))
    others, killing = ([batch.first.case for batch in batches] for batches in by_engine.values())
    assert len(others) + len(killing) == len(cases)
    assert [kills_its_engine(case) for case in killing] == [True] * len(killing)
    assert not any(kills_its_engine(case) for case in others)
    assert len(queues(cells_of(others, [SPARK_359]))) == 1


def test_cases_that_read_tables_have_an_engine_for_each_format():
    """The package of a format changes the session of an engine."""
    plain, *others = [case for case in whole_suite().cases if not (kills_its_engine(case) or case.in_real_time)][:3]
    of_tables = [
        case.model_copy(update={"tables": dict.fromkeys(case.streams, format)})
        for case, format in zip(others, ("delta", "iceberg"), strict=True)
    ]
    keys = queues(cells_of([plain, *of_tables], [SPARK_359]))
    assert sorted(key.needs.tables for key in keys) == [(), ("delta",), ("iceberg",)]
    assert [EngineNeeds.of(case, SPARK_359).tables for case in of_tables] == [("delta",), ("iceberg",)]
    assert not EngineNeeds.of(plain, SPARK_359).cover(EngineNeeds.of(of_tables[0], SPARK_359))
    assert not EngineNeeds.of(of_tables[0], SPARK_359).cover(EngineNeeds.of(plain, SPARK_359))
