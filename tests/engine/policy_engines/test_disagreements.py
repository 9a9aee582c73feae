"""Where the model and an engine differ, as far as the engine decides."""

from __future__ import annotations

from conformance.policies.replay import replay
from conformance.policies.trace import Event, Trace
from tests.engine.policy_engines.questions import PolicyAnswer, PolicyQuestion, answer_of
from tests.engine.policy_engines.traces import Disagreement, disagreements
from tests.support.java_longs import MAX

QUESTION = PolicyQuestion("with-fixed-lag", {"lag": 3}, Trace((Event(10), Event(5))))
MODEL = answer_of(replay(QUESTION.trace, QUESTION.rules))


def test_the_model_agrees_with_itself() -> None:
    assert disagreements(QUESTION, MODEL) == ()


def test_only_what_the_engine_decides_is_compared() -> None:
    assert disagreements(QUESTION, PolicyAnswer(({"emitted": 7}, {}))) == ()
    found = disagreements(QUESTION, PolicyAnswer(({"emitted": 7}, {"late": False, "downstream": 8})))
    assert found == (Disagreement(2, "late", True, False), Disagreement(2, "downstream", 7, 8))
    assert str(found[0]) == "entry 2: late is True in the model and False in the engine"


def test_a_failure_of_one_of_them_is_a_difference() -> None:
    assert disagreements(QUESTION, PolicyAnswer(MODEL.steps[:1], "over")) == (Disagreement(2, "failure", None, "over"),)


def test_both_may_fail_at_the_same_entry() -> None:
    question = PolicyQuestion(
        "with-fixed-lag", {"lag": 0}, Trace((Event(10), Event(10))), ("emit-by-min-step", {"step": MAX})
    )
    assert disagreements(question, PolicyAnswer(({"emitted": 10},), "said otherwise")) == ()
    assert [one.key for one in disagreements(question, PolicyAnswer(({"emitted": 10}, {})))] == ["failure"]
