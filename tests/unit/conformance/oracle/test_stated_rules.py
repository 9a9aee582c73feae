"""Specification, reference model and suite are three views of one thing.

Each rule of the model belongs to a statement, and the cases of that statement notice when the model misreads the rule.
"""

from conformance.core.versions import VersionRange, releases
from conformance.model.catalogue import WrongModel, catalogue, rules_of
from conformance.model.wrong_models import WRONG_MODELS
from conformance.oracle.cross_check import detects
from tests.support.whole_suite import whole_suite

(BEHAVIOURS,) = (one.behaviours for one in whole_suite().catalogues.values())
STATED = [(id, rule) for id, entry in BEHAVIOURS.items() for rule in entry.get("rules", ())]


def misreadings(rule: str) -> list[WrongModel]:
    """The deliberate errors about a rule, then each of its values on the versions that have another."""
    found = [wrong for wrong in WRONG_MODELS if rule in wrong.rules]
    for value in catalogue()[rule].values:
        if any(getattr(rules_of(version), rule) != value.value for version in releases()):
            found.append(WrongModel(f"{rule} of {value.spark}", {rule: value.value}, ""))
    return found


def test_every_rule_of_the_model_is_stated_and_no_other():
    assert set(catalogue()) == {rule for _, rule in STATED}


def test_the_cases_of_a_statement_notice_that_its_rule_is_misread():
    for behaviour, rule in STATED:
        wrong = misreadings(rule)
        assert wrong, rule
        named = {one.detected_by for one in wrong}
        cases = [case for case in whole_suite().cases if behaviour in case.behaviour]
        cases.sort(key=lambda case: case.id not in named)
        assert any(detects(case, one) for case in cases for one in wrong), f"{behaviour} does not state {rule}"


def test_a_statement_whose_cases_do_not_notice_is_found():
    """`delay-negative` is about a refusal: none of its cases notices how long a key is kept."""
    wrong = misreadings("within_expires_us")
    cases = [case for case in whole_suite().cases if "delay-negative" in case.behaviour]
    assert cases
    assert not any(detects(case, one) for case in cases for one in wrong)


def test_the_versions_of_a_rule_are_versions_of_a_statement():
    """A value of a rule applies to some release that a statement of the rule is about."""
    for name, rule in catalogue().items():
        about = [BEHAVIOURS[id].get("versions", "all") for id, stated in STATED if stated == name]
        ranges = [None if text == "all" else VersionRange.parse(text) for text in about]
        for value in rule.values:
            held = [version for version in releases() if value.spark is None or version in value.spark]
            assert any(range is None or any(version in range for version in held) for range in ranges), name
