"""The engines by name."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from conformance.core.errors import WrongUsage
from conformance.policies.engines import POLICIES
from harness.policy_engines.running import ENGINES, select


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["all"], list(ENGINES)),
        (["jet"], ["jet-0.5", "jet-0.6"]),
        (["kafka-streams", "jet-0.6"], ["jet-0.6", "kafka-streams-3.9.1"]),
        (["flink", "flink-1.20.5"], ["flink-1.20.5"]),
        ([], []),
    ],
)
def test_engines_by_name(names: list[str], found: list[str]) -> None:
    assert [engine.name for engine in select(names)] == found


@pytest.mark.parametrize(
    ("name", "hint"), [("flinc", "did you mean flink-1.20.5?"), ("zzz", "use all, or one of jet-0.5")]
)
def test_an_unknown_name(name: str, hint: str) -> None:
    with pytest.raises(WrongUsage, match=re.escape(hint)):
        select([name])


def test_an_engine_has_its_release_of_a_policy() -> None:
    old, new = select(["jet"])
    assert old.has("with-fixed-lag", {"lag": 1})
    assert not new.has("with-fixed-lag", {"lag": 1})
    assert new.has("with-fixed-lag", {"lag": 1, "release": "jet-0.6"})
    assert not old.has("with-fixed-lag", {"lag": 1, "release": "jet-0.6"})
    assert not old.has("limited-delay", {"maxDelay": 1})


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_what_an_engine_names_exists(engine) -> None:
    assert set(engine.policies) <= POLICIES.keys()
    program = (files("harness.policy_engines") / "java" / engine.program).read_text(encoding="utf-8")
    assert f"public final class {engine.program.removesuffix('.java')} " in program
    assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) for jar in engine.jars)


def test_every_policy_of_another_engine_than_spark_has_one() -> None:
    had = {policy for engine in ENGINES.values() for policy in engine.policies}
    assert had == POLICIES.keys() - {"spark", "quantile"}
