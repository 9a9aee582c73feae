"""The order in which an engine gets its cases."""

from conformance import suite
from harness.legs import kills_its_engine
from harness.longest_first import length, longest_first
from harness.scheduler import Lane
from tests.unit.miniature.target import SPARK_359


def test_long_cases_first():
    cases = suite.load().cases
    ordered = longest_first(cases)
    assert sorted(case.id for case in ordered) == sorted(case.id for case in cases)
    lengths = [length(case) for case in ordered]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > lengths[-1]


def test_cases_that_kill_their_engine_run_in_one_of_their_own():
    cases = suite.load().cases
    gentle, killing = Lane(SPARK_359, cases).parts()
    assert len(gentle.cases) + len(killing.cases) == len(cases)
    assert [kills_its_engine(case) for case in killing.cases] == [True] * len(killing.cases)
    assert not any(kills_its_engine(case) for case in gentle.cases)
    assert list(gentle.parts()) == [gentle]
