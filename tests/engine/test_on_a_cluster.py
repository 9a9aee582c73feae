"""The suite on a cluster: a master and two workers give what one process gives."""

import json
import re
import shlex
import threading
from pathlib import Path

import pytest

from harness.engine.request import kills_its_engine
from harness.environments import provision
from harness.environments.provision import prepare
from harness.errors import HarnessError
from harness.progress import ignore_progress
from harness.runtimes.cluster import Cluster
from harness.runtimes.local import LocalRuntime
from harness.scheduling.cell_run import CellTask, Limits
from harness.scheduling.scheduler import Scheduler
from harness.targets.targets import Targets
from reports.results.reading import Results
from tests.engine.here import first_of_each_family
from tests.engine.own_job import COUNTED, COUNTING, check_own_job, own_job
from tests.engine.remembering import Remembering
from tests.engine.standalone import Standalone
from tests.engine.typed import conformance, disturbed, resumed
from tests.support.effort import full_run_only, number
from tests.support.whole_suite import whole_suite
from tools.checkpoints import write_checkpoints

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / "test-your-own-spark.md", ROOT / "docs" / "cluster.md"]
CASE = ROOT / "cases" / "late-drops" / "window-still-open.yaml"
OF_CLICKS = """
from pyspark.sql import functions as F

def f(spark, clicks):
    counted = clicks.withWatermark("clicks_time", "10 minutes").groupBy(F.window("clicks_time", "10 minutes"), "clicks_id")
    return counted.count()
"""
KILLING = "recovery/killed-at-rest-goes-on-with-watermark-and-state"


@pytest.fixture(scope="module")
def sample(here):
    return first_of_each_family(here, lambda case: not kills_its_engine(case))


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
    runtime = LocalRuntime(tmp_path, cluster=Cluster.parse(cluster.master))
    return listening.asked(runtime, target, cases, side_by_side=8)


def test_the_same_answers_as_in_one_process(tmp_path, target, cluster, here, sample):
    """Also where a case kills its driver: the next one finds executors again."""
    (killing,) = (case for case in whole_suite().cases if case.id == KILLING)
    cases = (*sample, killing)
    listening = Listening()
    seen = run(tmp_path, target, cluster, cases, listening)
    assert listening.place.master == cluster.master
    assert len(seen) == len(cases) >= number(4, 12)
    assert seen == {case.id: here[case.id] for case in cases}


@full_run_only
def test_a_worker_that_dies_changes_no_answer(tmp_path, target, cluster, here, sample):
    killing = threading.Thread(target=cluster.kill, args=(0,))
    seen = run(tmp_path, target, cluster, sample, Listening(killing.start))
    killing.join()
    assert seen == {case.id: here[case.id] for case in sample}


@full_run_only
@pytest.mark.parametrize("line", ["3.5", "newest"])
def test_a_cluster_without_workers_is_named(tmp_path, line, sample):
    """Before the first case, and while cases run, whose answers stay; once, and not as a machine that is busy."""
    (target,) = Targets.load().select([line], obstacle=provision.obstacle)
    alone = Standalone(prepare(target, on_progress=ignore_progress), tmp_path, workers=0)
    runtime = LocalRuntime(tmp_path, cluster=Cluster.parse(alone.master))
    try:
        with pytest.raises(HarnessError, match=f"{alone.master} gives no executor: it has no worker. Start a worker"):
            runtime.start(target, on_progress=ignore_progress)
        alone.add_worker()
        runs = []
        listening = Listening(threading.Thread(target=alone.kill, args=(0,)).start)
        listening.cell_done = lambda run: (runs.append(run), len(runs) == 1 and listening._after_the_first())
        Scheduler(runtime, Limits(jobs=1, step_timeout=600.0), listening).run(
            [CellTask(case, (target,)) for case in sample[:4]]
        )
        assert [run.failure is None for run in runs] == [True, False, False, False]
        assert all("gives no executor: it has no worker" in run.failure for run in runs[1:])
    finally:
        alone.close()


@full_run_only
@pytest.mark.parametrize("gone", ["worker", "master"])
def test_a_run_whose_cluster_was_lost_is_resumed_when_it_is_back(tmp_path, target, sample, gone):
    """A run that has executors goes on without a master, until a case kills its driver."""
    alone = Standalone(prepare(target, on_progress=ignore_progress), tmp_path, workers=1)
    (killing,) = (case for case in whole_suite().cases if case.id == KILLING)
    files = [str(case.path) for case in (*sample[:3], killing)]
    words = ["run", *files, "--spark", str(target.version), "--master", alone.master, "--storage", str(tmp_path)]
    words += ["--side-by-side", "1", "-o", "r.jsonl"]
    why, kill, start = {
        "worker": ("gives no executor: it has no worker", lambda: alone.kill(0), alone.add_worker),
        "master": ("takes no connection: |cannot connect to the master ", alone.kill_master, alone.start_master),
    }[gone]
    try:
        code, said = disturbed(tmp_path, kill, *words)
        assert code == 3, said
        assert re.search(why, said), said
        start()
        resumed(tmp_path, "r.jsonl", *words)
    finally:
        alone.close()


@full_run_only
def test_the_commands_of_the_pages(tmp_path, cluster, hdfs, unpacked):
    """As they stand, with one case, the places of this machine, and no YARN."""
    places = {
        "/opt/my-spark": unpacked,
        "/mnt/shared": tmp_path,
        "spark://host:7077": cluster.master,
        "hdfs://namenode:8020/tests": hdfs.url,
    }
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    commands = re.findall(r"^\$ (conformance .*)$", text, re.MULTILINE)
    assert len(commands) >= 6
    for command in commands:
        if "--master yarn" in command:
            continue
        for there, here in places.items():
            command = command.replace(there, str(here))
        words = shlex.split(command)[1:]
        if "--all" in words:
            words[words.index("--all")] = str(CASE)
        done = conformance(tmp_path, *words)
        assert done.returncode == 0, command + done.stdout + done.stderr
    (cell,) = Results.read(tmp_path / "hdfs.jsonl").cells
    assert cell.status == "conforms"
    assert "between 3.5.9 and ours" in (tmp_path / "report" / "index.html").read_text()


@full_run_only
def test_a_job_runs_on_the_cluster_with_one_version_and_here_with_the_other(tmp_path, cluster):
    """As the page says, with a job that only counts; its checkpoint moves from the cluster to this machine."""
    (command,) = re.findall(r"^(conformance check .*)$", PAGES[1].read_text(encoding="utf-8"), re.MULTILINE)
    (tmp_path / "j.py").write_text(COUNTING)
    (tmp_path / "a.csv").write_text(COUNTED)
    for there, here in {"/mnt/shared": str(tmp_path), "spark://host:7077": cluster.master}.items():
        command = command.replace(there, here)
    words = [*shlex.split(command)[1:], "--batches", "2", "--no-repeat-rows", "--json"]
    done = conformance(tmp_path, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["rows"] == "same"
    assert [target.master for target in Results.read(tmp_path / "check" / "results.jsonl").header.targets] == [
        cluster.master,
        None,
    ]


@full_run_only
def test_a_job_is_explained_and_its_checkpoint_resumed_on_the_cluster_as_here(tmp_path, target, cluster):
    (tmp_path / "j.py").write_text(COUNTING)
    (tmp_path / "a.csv").write_text(COUNTED)
    write_checkpoints(target, ["window_aggregation-hdfs"], tmp_path)
    explain = ["explain", "j:f", "--sample", "a=a.csv", "--spark", str(target.version), "--json"]
    call = [
        *("--call", "q:f", "--code", ".", "--schema", "clicks=clicks_id STRING, clicks_time TIMESTAMP"),
        *("--to", str(target.version), "--output-mode", "append", "--json"),
    ]
    (tmp_path / "q.py").write_text(OF_CLICKS)
    for words in (explain, ["checkpoint", "resume", "window_aggregation-hdfs/checkpoint", *call]):
        alone, clustered = (conformance(tmp_path, *words, *on) for on in ((), ("--master", cluster.master)))
        assert json.loads(alone.stdout) == json.loads(clustered.stdout), alone.stderr + clustered.stderr
        assert (alone.returncode, clustered.returncode) == (0, 0)
        assert cluster.master in clustered.stderr


@full_run_only
def test_executors_import_what_a_job_of_ones_own_imports(tmp_path, target, cluster):
    code, cases = own_job(tmp_path)
    check_own_job(LocalRuntime(tmp_path, cluster=Cluster.parse(cluster.master), own_code=code), target, cases)
