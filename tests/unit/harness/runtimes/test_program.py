"""How a program of ours is started in an engine's environment."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.runtimes import program
from harness.runtimes.cluster import StorageUrl


def test_every_user_of_the_machine_can_read_arguments_so_secrets_are_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(program, "SubprocessTransport", lambda command, cwd, env: started.append((command, env)))
    environment = SimpleNamespace(python=Path("/python"), environ=lambda elsewhere: {"PATH": "/bin"})
    settings = {"spark.driver.memory": "2g", "spark.hadoop.fs.s3a.secret.key": "SECRET"}
    storage = StorageUrl("s3a://user:SECRET@bucket/x")
    program.start("driver", environment, tmp_path, settings, None, storage=storage)  # type: ignore[arg-type]
    ((command, environ),) = started
    assert command == ["/python", "-m", "driver", str(tmp_path), "spark.driver.memory=2g"]
    assert json.loads(environ["CONFORMANCE_SETTINGS"]) == {"spark.hadoop.fs.s3a.secret.key": "SECRET"}
    assert environ["CONFORMANCE_STORAGE"] == "s3a://user:SECRET@bucket/x"
    program.start("driver", environment, tmp_path, {}, None)  # type: ignore[arg-type]
    assert environ["TMPDIR"] == str(tmp_path / "tmp")
    assert environ["SPARK_SUBMIT_OPTS"].endswith(f'"-Djava.io.tmpdir={tmp_path / "tmp"}"')
    assert not {"CONFORMANCE_SETTINGS", "CONFORMANCE_STORAGE"} & started[1][1].keys()
