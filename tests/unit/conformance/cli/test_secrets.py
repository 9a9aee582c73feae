"""A secret among the options of a run is nowhere in what the run leaves, shows or starts."""

import os
import sys
from pathlib import Path

import pytest

from conformance.cli.engine_options import ClusterOptions, EngineOptions, runtime_options
from conformance.core.errors import WrongUsage
from conformance.suite.discovery import shipped
from harness.errors import HarnessError
from harness.runtimes.cluster import Cluster, settings_of
from tests.support.commands import answer_of

SECRET = "hunter2hunter2"


def outcome(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str]:
    monkeypatch.setattr(sys, "argv", ["conformance", *arguments])
    code, out, err = answer_of(capsys, *arguments)
    return code, out + err


def test_neither_results_nor_pages_nor_exports_nor_the_terminal_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    cases = str(shipped() / "policies")
    code, said = outcome(
        monkeypatch, capsys, "run", cases, "--spark", "model", "--conf", f"spark.hadoop.fs.s3a.secret.key={SECRET}",
        f"--conf=spark.ssl.keyPassword={SECRET} and more", "--storage", f"s3a://user:{SECRET}@bucket/x",
    )  # fmt: skip
    assert code == 0, said
    for command in ("report", "case export json", "case export junit", "maintain combine"):
        more_cases = ["--cases", cases] if "json" in command else []
        code, more = outcome(monkeypatch, capsys, *command.split(), "results.jsonl", *more_cases)
        assert code == 0, more
        said += more
    assert SECRET not in said
    assert "s3a://…@bucket/x" in Path("results.jsonl").read_text()
    assert [path for path in tmp_path.rglob("*") if path.is_file() and SECRET in path.read_text()] == []


def test_results_of_others_show_no_secret_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    cases = str(shipped() / "policies")
    assert outcome(monkeypatch, capsys, "run", cases, "--spark", "model")[0] == 0
    text = Path("results.jsonl").read_text()
    Path("results.jsonl").write_text(text.replace("--spark model", f"--storage s3a://u:{SECRET}@b/x", 1))
    code, said = outcome(monkeypatch, capsys, "case", "export", "json", "results.jsonl", "--cases", cases)
    assert (code, SECRET in said, "s3a://…@b/x" in said) == (0, False, True)


@pytest.mark.parametrize("name", ["CONFORMANCE_CONNECT", "CONFORMANCE_STORAGE"])
def test_what_is_started_later_does_not_get_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, f"sc://host/;token={SECRET}")
    runtime_options(EngineOptions())
    assert name not in os.environ


def test_the_storage_may_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONFORMANCE_STORAGE", f"s3a://user:{SECRET}@bucket/x")
    code, said = outcome(
        monkeypatch, capsys, "run", str(shipped() / "policies"), "--spark", "model", "--runtime", "container"
    )
    assert (code, "--storage" in said, SECRET in said) == (2, True, False)


def test_settings_may_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "spark.properties"
    file.write_text(f"# ours\n\nspark.executor.memory 2g\nspark.hadoop.fs.s3a.secret.key = {SECRET}\nspark.a: b c\n")
    options = runtime_options(EngineOptions(), ClusterOptions(conf=["spark.executor.memory=3g"], properties_file=file))
    assert options.conf.pop("spark.hadoop.fs.s3a.secret.key") == SECRET
    assert options.conf == {"spark.executor.memory": "3g", "spark.a": "b c"}
    file.write_text(f"spark.a b\n{SECRET}\n")
    with pytest.raises(WrongUsage, match=":2: not a Spark setting; write one like") as found:
        runtime_options(EngineOptions(), ClusterOptions(properties_file=file))
    assert SECRET not in str(found.value)
    with pytest.raises(WrongUsage, match="/dev/zero has more than 1,048,576 bytes"):
        runtime_options(EngineOptions(), ClusterOptions(properties_file=Path("/dev/zero")))
    with pytest.raises(WrongUsage, match=r"cannot read .*: No such file"):
        runtime_options(EngineOptions(), ClusterOptions(properties_file=tmp_path / "gone"))


def test_errors_of_options_have_none() -> None:
    with pytest.raises(WrongUsage, match="is not a Spark setting") as setting:
        settings_of([f"my.password={SECRET}"])
    with pytest.raises(WrongUsage, match="is not a master URL") as master:
        Cluster.parse(f"http://user:{SECRET}@host")
    with pytest.raises(HarnessError, match="cannot connect to the master") as unreachable:
        Cluster.parse(f"spark://user:{SECRET}@localhost:1").check()
    assert [SECRET in str(error.value) for error in (setting, master, unreachable)] == [False] * 3
