"""The model and the cases agree, on every version, and most cases are predicted."""

import pytest

from conformance.model.errors import Unpredictable
from conformance.oracle.cross_check import cross_check, uses_state_functions
from conformance.oracle.prediction import predict
from conformance.suite import discovery
from harness.targets.catalogue import Targets

CASES = discovery.load().cases
VERSIONS = [target.version for target in Targets.load().entries]


@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_model_and_expectations_agree(version) -> None:
    agreed = cross_check(CASES, [version])
    assert "\n".join(one.verdict.describe() for one in agreed.disagreements) == ""
    assert agreed.share >= 0.95
    for construct, ids in agreed.not_predicted.items():
        assert construct
        assert ids


def test_a_construct_the_model_does_not_know_is_named() -> None:
    case = next(case for case in CASES if uses_state_functions(case))
    with pytest.raises(Unpredictable) as unknown:
        predict(case, VERSIONS[-1])
    assert unknown.value.construct == "applyInPandasWithState"
