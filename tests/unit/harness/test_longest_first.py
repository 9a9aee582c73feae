"""The order in which an engine gets its cases."""

from conformance import suite
from harness.legs import kills_its_engine
from harness.longest_first import length, longest_first


def test_long_cases_first_and_those_that_kill_their_engine_last():
    cases = suite.load().cases
    ordered = longest_first(cases)
    assert sorted(case.id for case in ordered) == sorted(case.id for case in cases)
    killing = [kills_its_engine(case) for case in ordered]
    assert killing == sorted(killing)
    assert any(killing)
    lengths = [length(case) for case in ordered if not kills_its_engine(case)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > lengths[-1]
