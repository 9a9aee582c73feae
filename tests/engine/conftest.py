"""Real engines, and what they run on, for the tests that share them."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from harness.environments.provision import prepare
from harness.progress import ignore_progress
from harness.runtimes.local import LocalRuntime
from harness.targets.targets import Targets
from tests.engine.hdfs import Hdfs
from tests.engine.here import digests
from tests.engine.standalone import Standalone
from tests.support.once import made_once

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def target():
    return Targets.load().select(["3.5"])[0]


@pytest.fixture(scope="session")
def here(target):
    return digests(target)


@pytest.fixture(scope="session")
def engine(target, tmp_path_factory):
    engine = LocalRuntime(tmp_path_factory.mktemp("engine")).start(target, on_progress=ignore_progress)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def cluster(target, tmp_path_factory):
    standalone = Standalone(prepare(target, on_progress=ignore_progress), tmp_path_factory.mktemp("cluster"))
    yield standalone
    standalone.close()


@pytest.fixture(scope="module")
def hdfs(target, tmp_path_factory):
    hdfs = Hdfs(prepare(target, on_progress=ignore_progress), tmp_path_factory.mktemp("hdfs"))
    yield hdfs
    hdfs.close()


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The folder with our source distribution and the wheel made of it."""

    def make(place):
        command = [sys.executable, "-m", "build", "--installer", "uv", "--outdir", place, ROOT]
        subprocess.run(command, check=True, capture_output=True, text=True)

    return made_once(tmp_path_factory, "built", make)


@pytest.fixture(scope="session")
def installed(built, tmp_path_factory):
    """The folder of programs of an empty environment with nothing but our wheel."""
    (wheel,) = built.glob("*.whl")

    def make(place):
        run = {"check": True, "capture_output": True, "text": True}
        uv = [sys.executable, "-m", "uv"]
        subprocess.run([*uv, "venv", "--seed", "--python", sys.executable, place / "empty"], **run)
        # With byte code, as pip installs it.
        command = [*uv, "pip", "install", "--compile-bytecode", "--python", place / "empty" / "bin" / "python", wheel]
        subprocess.run(command, **run)

    return made_once(tmp_path_factory, "wheel", make) / "empty" / "bin"


@pytest.fixture
def unpacked(target, tmp_path):
    """The environment's pyspark, laid out as in Spark's own archives."""
    home, package = tmp_path / "my-spark", prepare(target, on_progress=ignore_progress).spark_home
    (home / "python" / "lib").mkdir(parents=True)
    for folder in ("bin", "jars"):
        (home / folder).symlink_to(package / folder)
    (home / "python" / "pyspark").symlink_to(package)
    with zipfile.ZipFile(home / "python" / "lib" / "py4j-0.10.9-src.zip", "w") as bridge:
        for file in (package.parent / "py4j").rglob("*.py"):
            bridge.write(file, file.relative_to(package.parent))
    return home
