"""Which engines a run asks, and what stands in their columns where they cannot answer. No JVM runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conformance.policies.replay import PolicyAnswer, PolicyQuestion, answer_of, replay
from conformance.runner.cases import ChosenEngines, choose_engines, policy_columns
from conformance.suite.discovery import load
from harness.environments.jars import Jar, NoJar
from harness.environments.java import Java, NoSuchJava
from harness.policy_engines import running
from harness.policy_engines.running import ENGINES, JDK, PolicyEngine, PolicyEngineFailed, select

CASES = Path(__file__).parents[4] / "cases" / "policies"


class Modelled:
    """Answers as the model, ``answering`` times; then it ends."""

    def __init__(self, engine: PolicyEngine, answering: int) -> None:
        self.java = Java(Path("/jdk"), "17.0.1", frozenset())
        self._engine = engine
        self._left = answering

    def answer(self, question: PolicyQuestion) -> PolicyAnswer:
        if not self._left:
            raise PolicyEngineFailed(self._engine, "ended with exit code 1", "")
        self._left -= 1
        return answer_of(replay(question.trace, question.rules))


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Any:
    def running_for(answering: int) -> None:
        @contextmanager
        def started(engine: PolicyEngine) -> Iterator[Modelled]:
            yield Modelled(engine, answering)

        monkeypatch.setattr(running, "started", started)

    return running_for


@pytest.fixture
def no_jdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "obstacle", lambda: NoSuchJava(JDK, {}))


def test_without_engines_nothing_is_looked_for(no_jdk: None) -> None:
    assert choose_engines([]) == ChosenEngines()


def test_where_there_is_no_jdk_all_engines_have_empty_columns(no_jdk: None) -> None:
    chosen = choose_engines(["all"])
    assert len(chosen.engines) == len(ENGINES)
    (note,) = chosen.notes
    assert note.startswith("the columns of Hazelcast Jet 0.5, ")
    assert "Java 11, 17 or 21 with the module jdk.compiler is needed" in note
    for column in policy_columns(chosen, load([CASES]).policy_cases):
        assert not column.answers
        assert column.absent is not None
        assert "jdk.compiler is needed" in column.absent


def test_where_there_is_no_jdk_a_named_engine_is_an_error(no_jdk: None) -> None:
    with pytest.raises(NoSuchJava):
        choose_engines(["flink"])


def test_an_engine_is_asked_for_the_cases_on_its_policies(engines: Any) -> None:
    engines(1000)
    cases = load([CASES]).policy_cases
    found = {column.target.name: column for column in policy_columns(ChosenEngines(select(["all"])), cases)}
    assert list(found) == list(ENGINES)
    assert set(found["kafka-streams-3.9.1"].answers) == {case.id for case in cases if case.policy == "stream-time"}
    assert found["kafka-streams-3.9.1"].target.java == "17.0.1"
    asked = [id for column in found.values() for id in column.answers]
    assert sorted(asked) == sorted(case.id for case in cases if case.policy not in ("spark", "quantile"))


def test_what_an_engine_answered_before_it_ended_stands(engines: Any) -> None:
    engines(1)
    (column,) = policy_columns(ChosenEngines(select(["kafka-streams"])), load([CASES]).policy_cases)
    assert (len(column.answers), len(column.broken)) == (1, 1)
    assert set(column.broken.values()) == {"Kafka Streams 3.9.1 ended with exit code 1."}


def test_a_jar_that_cannot_be_had_empties_the_column(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(engine: PolicyEngine) -> Any:
        raise NoJar(Jar("a:b:1", "0"), Path("/cache/b-1.jar"), "no network")

    monkeypatch.setattr(running, "started", started)
    (column,) = policy_columns(ChosenEngines(select(["flink"])), load([CASES]).policy_cases)
    assert column.absent is not None
    assert "b-1.jar cannot be had: no network." in column.absent
