"""The runtime on this machine."""

from pathlib import Path

import pytest

from harness.environments.environment import Environment
from harness.runtimes import local, program
from harness.runtimes.local import LocalRuntime
from harness.targets.catalogue import Targets

(TARGET,) = Targets.load().select(["3.5.9"])


@pytest.fixture
def environment(tmp_path, monkeypatch):
    found = Environment(
        target="spark-3.5.9",
        python=Path("/usr/bin/python3"),
        python_version="3.11",
        pyspark="3.5.9",
        spark_home=tmp_path,
        java_home=tmp_path,
        java_version="17",
        root=tmp_path,
    )
    monkeypatch.setattr(local, "prepared", lambda _: found)
    monkeypatch.setattr(local, "prepare", lambda *_, **__: found)
    return found


def test_answers_of_an_engine_with_more_variables_are_not_cached(environment, tmp_path):
    assert LocalRuntime(tmp_path).fingerprint(TARGET) is not None
    assert LocalRuntime(tmp_path, variables={"A": "1"}).fingerprint(TARGET) is None


def test_an_engine_gets_these_variables_and_no_secrets(environment, tmp_path, monkeypatch):
    class Started(Exception):
        pass

    def started(*_, env, **__):
        raise Started(env)

    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    monkeypatch.setattr(program, "SubprocessTransport", started)
    with pytest.raises(Started) as end:
        LocalRuntime(tmp_path, variables={"A": "1"}).start(TARGET, on_progress=lambda _: None)
    (env,) = end.value.args
    assert env["A"] == "1"
    assert "GITHUB_TOKEN" not in env
