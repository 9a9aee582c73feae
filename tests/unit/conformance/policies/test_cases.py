"""The cases under ``cases/policies``: each agrees with its replay, and detects a changed parameter."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.policies.case import PolicyCase, check
from conformance.policies.engines import POLICIES
from conformance.suite.discovery import load, shipped

ROOT = Path(__file__).parents[4]
pytest_plugins = ["pytester"]
CASES = load([shipped() / "policies"]).policy_cases


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_it_agrees_with_its_replay(case: PolicyCase) -> None:
    assert list(map(str, check(case))) == []


def bumped(case: PolicyCase) -> Iterator[PolicyCase]:
    """The case with one parameter changed: one higher, the other release, or the other choice of inputs."""
    for name, parameter in POLICIES[case.policy].parameters.items():
        value = case.given.get(name, parameter.default)
        if parameter.words:
            (other,) = (word for word in parameter.words if word != value)
            kept = {key: one for key, one in case.given.items() if key != "idleTimeout"}
            yield case.model_copy(update={"given": {**kept, name: other}})
        elif parameter.kind == "share":
            yield case.model_copy(update={"given": {**case.given, name: 0.5}})
        elif value is not None:
            yield case.model_copy(update={"given": {**case.given, name: value + 1}})


HOLDS_FOR_ANY_PARAMETER = {"policies/lag-and-lull-without-an-event-has-no-watermark"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_it_detects_another_parameter(case: PolicyCase) -> None:
    assert any(check(one) for one in bumped(case)) is (case.id not in HOLDS_FOR_ANY_PARAMETER)


def test_every_policy_has_a_case() -> None:
    assert {case.policy for case in CASES} == set(POLICIES)


def test_the_message_of_a_mismatch(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "title: x\n"
        "policy: {with-fixed-lag: {lag: 3}}\n"
        "inputs: [a, b]\n"
        "window: 10\n"
        "trace:\n"
        "  - {event: 10, expect: {watermark: {a: 6, b: 0}, late: true, downstream: 7}}\n"
        "  - event: 11\n"
        "    expect:\n"
        "      emitted: 8\n"
        "      closed: [10]\n"
    )
    (case,) = load([tmp_path]).policy_cases
    assert [(one.line, str(one)) for one in check(case)] == [
        (6, "step 1: expected watermark {a: 6, b: 0}, but it is {a: 7, b: none}"),
        (6, "step 1: expected downstream 7, but it is none"),
        (6, "step 1: expected late true, but it is false"),
        (9, "step 2: expected emitted 8, but it is none"),
        (10, "step 2: expected closed [10], but it is []"),
    ]


def test_pytest_collects_them_for_the_model_alone(pytester: pytest.Pytester) -> None:
    done = pytester.runpytest_inprocess(shipped() / "policies", "--rootdir", ROOT, "-v", "--spark", "3.5.9")
    done.assert_outcomes(passed=len(CASES))
    output = done.stdout.str()
    assert "cases/policies/lowest-of-all-substreams.yaml::[model] PASSED" in output
    assert "[spark-" not in output


def test_pytest_shows_mismatches(pytester: pytest.Pytester) -> None:
    (pytester.path / "cases").mkdir()
    (pytester.path / "cases" / "wrong.yaml").write_text(
        "title: A watermark that is not\npolicy: {stream-time: {grace: 1}}\ntrace: [{event: 5, expect: {watermark: 5}}]\n"
    )
    done = pytester.runpytest_inprocess("cases", "--spark", "3.5.9")
    done.assert_outcomes(failed=1)
    assert "A watermark that is not\nstep 1: expected watermark 5, but it is 4\n" in done.stdout.str()
