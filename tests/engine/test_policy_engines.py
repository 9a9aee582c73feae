"""The models of watermark policies against the engines' own classes: on random traces, and on every case."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.policies.case import mismatches
from conformance.policies.question import disagreements
from harness.policy_engines.catalogue import ENGINES
from harness.policy_engines.running import started
from tests.support.effort import number
from tests.support.policy_traces import questions
from tests.support.whole_suite import whole_suite

EXAMPLES = {engine: number(20, 1000) for engine in ENGINES} | {"kafka-streams-3.9.1": number(10, 300)}
OWN = [pytest.param(engine, policy, id=f"{engine.name}: {policy}") for engine in ENGINES.values() for policy in engine.policies]


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
        print(f"{name}: {policy}: {traces}")


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
