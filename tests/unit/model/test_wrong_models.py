"""Models that are wrong on purpose: the suite sees each of them."""

import sys
from pathlib import Path

import pytest

from conformance import suite
from conformance.model.catalogue import catalogued, rules_of
from conformance.model.rules import differing
from conformance.model.wrong import WRONG_MODELS

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from mutation import kills

CASES = {case.id: case for case in suite.load().cases}


def test_there_are_at_least_25() -> None:
    assert len({wrong.name for wrong in WRONG_MODELS}) == len(WRONG_MODELS) >= 25


@pytest.mark.parametrize("wrong", WRONG_MODELS, ids=lambda wrong: wrong.name)
def test_its_killer_kills_it(wrong) -> None:
    assert kills(CASES[wrong.killed_by], wrong)


@pytest.mark.parametrize("wrong", WRONG_MODELS, ids=lambda wrong: wrong.name)
def test_it_is_wrong_in_what_it_says_and_nothing_else(wrong) -> None:
    right = rules_of(wrong.version)
    altered = set(wrong.rules) | ({"refusals"} if wrong.accepts else set())
    assert set(differing(right, wrong.of(right))) == altered


def test_every_rule_is_misread_by_one() -> None:
    misread = {rule for wrong in WRONG_MODELS for rule in wrong.rules}
    # Where these hold, the model does not predict what comes of them.
    assert catalogued() - misread == {
        "false_filters_cut_the_plan",
        "join_schemas_remember_silence",
        "silent_distinct_vanishes",
    }
