"""The models of watermark policies against the engines' own classes: on random traces, and on every case."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, given, settings

from conformance.policies.case import mismatches
from tests.engine.policy_engines.questions import PolicyQuestion
from tests.engine.policy_engines.running import ENGINES, started
from tests.engine.policy_engines.traces import disagreements, questions
from tests.support.effort import number
from tests.support.whole_suite import whole_suite

EXAMPLES = {engine: number(20, 1000) for engine in ENGINES} | {"kafka-streams-3.9.1": number(10, 300)}
OWN = [
    pytest.param(engine, policy, id=f"{engine.name}: {policy}")
    for engine in ENGINES.values()
    for policy in engine.policies
]


def compared(case, answer):
    """How many expectations of a case an answer decides."""
    steps = zip(case.steps, answer.steps, strict=False)
    return sum(len(step.expect.model_fields_set & seen.keys()) for step, seen in steps if step.expect is not None)


@pytest.fixture(scope="module")
def running():
    """Engine → the running one, each started once."""
    asked = Counter()
    with ExitStack() as stack:
        engines = {}

        def find(engine):
            if engine.name not in engines:
                engines[engine.name] = stack.enter_context(started(engine))
            return engines[engine.name], asked

        yield find
    for (name, policy), traces in sorted(asked.items()):
        print(f"{name}: {policy}: {traces}", flush=True)


@pytest.mark.parametrize("extreme", [False, True], ids=["small", "extreme"])
@pytest.mark.parametrize(("engine", "policy"), OWN)
def test_the_model_says_what_the_engine_says(engine, policy, extreme, running):
    real, asked = running(engine)
    seen = Counter()

    @settings(max_examples=EXAMPLES[engine.name], suppress_health_check=list(HealthCheck))
    @given(question=questions(engine, policy, extreme=extreme))
    def agree(question):
        answer = real.answer(question)
        seen.update(traces=1, entries=len(question.trace.entries))
        assert disagreements(question, answer) == ()

    agree()
    asked[engine.name, f"{policy} {'extreme' if extreme else 'small'}"] = dict(seen)


def test_every_case_on_a_policy_holds_on_its_engine(running):
    found = {}
    for case in whole_suite().policy_cases:
        for engine in ENGINES.values():
            if engine.has(case.policy, case.given):
                question = PolicyQuestion(case.policy, case.given, case.trace, case.throttle)
                answer = running(engine)[0].answer(question)
                assert mismatches(case, answer.steps, answer.failure) == (), case.id
                assert disagreements(question, answer) == (), case.id
                found[case.id] = compared(case, answer)
    policies = {case.id for case in whole_suite().policy_cases if case.policy not in ("spark", "quantile")}
    assert found.keys() == policies
    assert [id for id, expectations in found.items() if not expectations] == [
        "policies/beam-drops-behind-the-last-millisecond"
    ], "lateness in Beam is the runner's"
