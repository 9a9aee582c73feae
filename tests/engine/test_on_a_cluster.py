"""The suite on a cluster: a master and two workers give what one process gives."""

import os
import re
import shlex
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from conformance import suite
from harness.cluster import Cluster
from harness.legs import kills_its_engine
from harness.local import LocalRuntime
from harness.provision import prepare
from harness.say import silently
from harness.scheduler import Lane, Limits, Scheduler
from reports.gate import published
from reports.results import Results
from tests.engine.standalone import Standalone
from tests.engine.test_however_run import Remembering

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "test-your-own-spark.md"
CASE = ROOT / "cases" / "late-drops" / "window-still-open.yaml"
KILLING = "recovery/killed-at-rest-goes-on-with-watermark-and-state"


@pytest.fixture(scope="module")
def cluster(target, tmp_path_factory):
    standalone = Standalone(prepare(target, say=silently), tmp_path_factory.mktemp("cluster"))
    yield standalone
    standalone.close()


@pytest.fixture(scope="module")
def here(target):
    """Case id → the digest of what this version was seen to do in one process."""
    return {
        cell.case: cell.behaviour for cell in Results.read_all(list(published())).cells if cell.target == target.name
    }


@pytest.fixture(scope="module")
def sample(here):
    """The first case of each family, as far as an engine was seen to answer it; none that reads the clock."""
    cases = [case for case in suite.load().cases if here.get(case.id) and not kills_its_engine(case)]
    families = {case.family: case for case in reversed(cases) if "processing-time" not in case.id}
    return tuple(families.values())


class Listening(Remembering):
    def __init__(self, after_the_first=lambda: None):
        super().__init__()
        self._after_the_first = after_the_first
        self.place = None

    def engine_ready(self, target, identity, place):
        self.place = place

    def cell_done(self, run):
        super().cell_done(run)
        if len(self.seen) == 1:
            self._after_the_first()


def run(tmp_path, target, cluster, cases, listening):
    limits = Limits(jobs=1, step_timeout=120.0, side_by_side=8)
    Scheduler(LocalRuntime(tmp_path, cluster=Cluster.parse(cluster.master)), limits, listening).run(
        [Lane(target, cases)]
    )
    return {id: observation.behaviour_digest for id, observation in listening.seen.items()}


def test_the_same_answers_as_in_one_process(tmp_path, target, cluster, here, sample):
    """Also where a case kills its driver: the next one finds executors again."""
    (killing,) = (case for case in suite.load().cases if case.id == KILLING)
    cases = (*sample, killing)
    listening = Listening()
    seen = run(tmp_path, target, cluster, cases, listening)
    assert listening.place.master == cluster.master
    assert len(seen) == len(cases) >= 12
    assert seen == {case.id: here[case.id] for case in cases}


def test_a_worker_that_dies_changes_no_answer(tmp_path, target, cluster, here, sample):
    killing = threading.Thread(target=cluster.kill, args=(0,))
    seen = run(tmp_path, target, cluster, sample, Listening(killing.start))
    killing.join()
    assert seen == {case.id: here[case.id] for case in sample}


@pytest.fixture
def unpacked(target, tmp_path):
    """The environment's pyspark, laid out as in Spark's own archives."""
    home, package = tmp_path / "my-spark", prepare(target, say=silently).spark_home
    (home / "python" / "lib").mkdir(parents=True)
    for folder in ("bin", "jars"):
        (home / folder).symlink_to(package / folder)
    (home / "python" / "pyspark").symlink_to(package)
    with zipfile.ZipFile(home / "python" / "lib" / "py4j-0.10.9-src.zip", "w") as bridge:
        for file in (package.parent / "py4j").rglob("*.py"):
            bridge.write(file, file.relative_to(package.parent))
    return home


def test_the_commands_of_the_page(tmp_path, cluster, unpacked):
    """As they stand, with one case, the places of this machine, and no YARN."""
    places = {"/opt/my-spark": unpacked, "/mnt/shared": tmp_path, "spark://host:7077": cluster.master}
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    commands = re.findall(r"^\$ (conformance .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(commands) >= 6
    for command in commands:
        if "--master yarn" in command or "--connect" in command:  # test_on_connect has a server
            continue
        for there, here in places.items():
            command = command.replace(there, str(here))
        words = shlex.split(command)[1:]
        if words[0] == "run":
            words.insert(1, str(CASE))
        done = subprocess.run(
            [sys.executable, "-m", "conformance.cli.main", *words],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, command + done.stdout + done.stderr
    assert "between 3.5.9 and ours" in (tmp_path / "report" / "index.html").read_text()
