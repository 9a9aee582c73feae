"""The protocol with an engine, without one: a small script in place of a JVM."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from conformance.policies.replay import PolicyAnswer, PolicyQuestion
from conformance.policies.trace import Boundary, ClockReading, Event, IdlePoll, Trace
from harness.environments.jars import Jar, NoJar
from harness.environments.java import NoSuchJava
from harness.policy_engines.running import PolicyEngine, PolicyEngineFailed, obstacle, started
from tests.support import environments as fakes

CLASSES = b"classes"
ENGINE = PolicyEngine(
    "small-1",
    "Small 1",
    "Flink.java",
    ("stream-time",),
    "everything",
    (Jar("org.example:small:1", hashlib.sha256(CLASSES).hexdigest()),),
)
QUESTION = PolicyQuestion(
    "stream-time", {"grace": 3}, Trace((ClockReading(7), Event(5, "a"), IdlePoll(), Boundary()), ("a", "b"), window=10)
)
ECHO = """
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"steps": [{"closed": [1, 2], "late": entry} for entry in asked["entries"]]}), flush=True)
"""


@pytest.fixture
def machine(bare: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """The variables of a machine with a JDK, whose engine is the Python in ``engine.py``, and with the jar."""
    home = fakes.java(tmp_path / "jdk", "17.0.1", "java.base", "jdk.compiler")
    java = home / "bin" / "java"
    runs = f'case "$1" in -Xmx*) exec {sys.executable} {tmp_path / "engine.py"};; esac\n'
    java.write_text(java.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\n{runs}"))
    (tmp_path / "cache" / "jars").mkdir(parents=True)
    (tmp_path / "cache" / "jars" / "small-1.jar").write_bytes(CLASSES)
    program(tmp_path, ECHO)
    return bare | {"JAVA_HOME": str(home), "SECRET": "x"}


def program(folder: Path, text: str) -> None:
    (folder / "engine.py").write_text(f"import json, os, sys\n{text}", encoding="utf-8")


def test_one_process_answers_many_questions(machine: dict[str, str]) -> None:
    with started(ENGINE, environ=machine) as engine:
        answers = [engine.answer(QUESTION) for _ in range(3)]
    entries = [{"clock": 7}, {"event": 5, "input": "a"}, {"idle": None}, {"batch": True}]
    assert answers == [PolicyAnswer(tuple({"closed": (1, 2), "late": entry} for entry in entries))] * 3
    assert engine.java.version == "17.0.1"


def test_a_question_is_complete() -> None:
    assert QUESTION.record() | {"entries": []} == {
        "policy": "stream-time",
        "parameters": {"grace": 3},
        "throttle": None,
        "inputs": ["a", "b"],
        "clockUnit": "ms",
        "clock": 7,
        "window": 10,
        "entries": [],
    }


def test_what_a_trace_does_to_the_engine_is_an_answer(machine: dict[str, str], tmp_path: Path) -> None:
    program(tmp_path, "sys.stdin.readline()\nprint(json.dumps({'steps': [{}], 'failure': 'it is over'}), flush=True)")
    with started(ENGINE, environ=machine) as engine:
        assert engine.answer(QUESTION) == PolicyAnswer(({},), "it is over")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("print('no class', file=sys.stderr)\nsys.exit(4)", r"ended with exit code 4. It printed:\nno class"),
        ("sys.stdin.readline()\nprint('not JSON', flush=True)", "wrote what is no answer: not JSON"),
        ("sys.stdin.readline()\nprint('{\"steps\": []}', flush=True)", "wrote what is no answer"),
        ("sys.stdin.readline()\nprint('[]', flush=True)", "wrote what is no answer"),
    ],
)
def test_what_is_no_answer(machine: dict[str, str], tmp_path: Path, text: str, why: str) -> None:
    program(tmp_path, text)
    with started(ENGINE, environ=machine) as engine, pytest.raises(PolicyEngineFailed, match=why) as caught:
        engine.answer(QUESTION)
    assert str(caught.value).startswith(ENGINE.title)


def test_the_engine_sees_no_other_variables(machine: dict[str, str], tmp_path: Path) -> None:
    program(
        tmp_path,
        "sys.stdin.readline()\nprint(json.dumps({'steps': [{}], 'failure': str('SECRET' in os.environ)}), flush=True)",
    )
    with started(ENGINE, environ=machine) as engine:
        assert engine.answer(QUESTION).failure == "False"


def test_no_process_is_left(machine: dict[str, str]) -> None:
    with started(ENGINE, environ=machine) as engine:
        process = engine._process
    assert process.poll() is not None


def test_a_java_without_a_compiler_does_not_serve(machine: dict[str, str], tmp_path: Path) -> None:
    jre = fakes.java(tmp_path / "jre", "17.0.1", "java.base")
    found = obstacle(machine | {"JAVA_HOME": str(jre)})
    assert isinstance(found, NoSuchJava)
    assert "is Java 17.0.1 without the module jdk.compiler" in str(found)


def test_a_jar_that_cannot_be_had(machine: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache" / "jars" / "small-1.jar").unlink()
    monkeypatch.setattr("harness.environments.jars.CENTRAL", (tmp_path / "nowhere").as_uri())
    with pytest.raises(NoJar), started(ENGINE, environ=machine):
        pass
