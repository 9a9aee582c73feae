"""How a program of ours is started in an engine's environment."""

import errno
import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.errors import HarnessError
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


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: str, target: str, **_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), source, None, target)

    # What `copytree` does of each file, whose errors it collects.
    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(HarnessError) as caught:
        program.stage(SimpleNamespace(key="spark-3.5.9"), tmp_path)  # type: ignore[arg-type]
    assert str(caught.value) == f"cannot write {tmp_path}: No space left on device"
