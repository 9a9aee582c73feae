"""Models that are wrong on purpose: the suite sees each of them."""

import pytest

from conformance.model.catalogue import catalogued, rules_of
from conformance.model.rules import differing
from conformance.model.wrong_models import WRONG_MODELS
from conformance.oracle.mutation_score import killed, kills
from conformance.suite import discovery

CASES = {case.id: case for case in discovery.load().cases}


def test_there_are_at_least_25() -> None:
    assert len({wrong.name for wrong in WRONG_MODELS}) == len(WRONG_MODELS) >= 25


@pytest.mark.parametrize("wrong", WRONG_MODELS, ids=lambda wrong: wrong.name)
def test_its_killer_kills_it(wrong) -> None:
    assert kills(CASES[wrong.killed_by], wrong)


def test_who_lacks_a_killer_is_not_told_to_see() -> None:
    assert killed(CASES) == WRONG_MODELS
    lacking = {id: case for id, case in CASES.items() if id != WRONG_MODELS[0].killed_by}
    assert WRONG_MODELS[0] not in killed(lacking)
    blind = CASES | {WRONG_MODELS[0].killed_by: CASES["unsupported/append-sql-distinct-without-watermark"]}
    assert WRONG_MODELS[0] not in killed(blind)


@pytest.mark.parametrize("wrong", WRONG_MODELS, ids=lambda wrong: wrong.name)
def test_it_is_wrong_in_what_it_says_and_nothing_else(wrong) -> None:
    right = rules_of(wrong.version)
    altered = set(wrong.rules) | ({"refusals"} if wrong.accepts else set())
    assert set(differing(right, wrong.of(right))) == altered


def test_every_rule_is_misread_by_one() -> None:
    misread = {rule for wrong in WRONG_MODELS for rule in wrong.rules}
    # Where this holds, the model does not predict what comes of it.
    assert catalogued() - misread == {"silent_distinct_vanishes"}
