"""The suite detects every wrong model."""

from conformance.model.catalogue import catalogue, rules_of
from conformance.model.rules import differing
from conformance.model.wrong_models import WRONG_MODELS
from conformance.oracle.cross_check import detected
from tests.support.whole_suite import whole_suite

CASES = {case.id: case for case in whole_suite().cases}


def test_there_are_at_least_25() -> None:
    assert len({wrong.name for wrong in WRONG_MODELS}) == len(WRONG_MODELS) >= 25


def test_its_case_detects_it_and_without_that_it_is_not_detected() -> None:
    assert detected(CASES) == WRONG_MODELS
    lacking = {id: case for id, case in CASES.items() if id != WRONG_MODELS[0].detected_by}
    assert WRONG_MODELS[0] not in detected(lacking)
    blind = CASES | {WRONG_MODELS[0].detected_by: CASES["unsupported/append-sql-distinct-without-watermark"]}
    assert WRONG_MODELS[0] not in detected(blind)


def test_it_differs_only_in_the_rules_it_names() -> None:
    for wrong in WRONG_MODELS:
        right = rules_of(wrong.version)
        altered = set(wrong.rules) | ({"refusals"} if wrong.accepts else set())
        assert set(differing(right, wrong.of(right))) == altered, wrong.name


def test_every_rule_is_misread_by_one() -> None:
    misread = {rule for wrong in WRONG_MODELS for rule in wrong.rules}
    # If one of these is true, the model does not predict the result.
    assert set(catalogue()) - misread == {"comparisons_with_rand_are_decided", "silent_distinct_vanishes"}
