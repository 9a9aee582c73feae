"""The suite through Spark Connect: a server that the tests start gives what one process on this machine gives."""

import os
import re
import shlex
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from conformance import suite
from harness.connect import ConnectRuntime, Endpoint, EndpointFailed, OtherVersion
from harness.provision import prepare
from harness.say import silently
from harness.scheduler import Lane, Limits, Scheduler
from harness.targets import Targets
from reports.gate import published
from reports.results import Results
from tests.engine.served import TOKEN, Served
from tests.engine.test_however_run import Remembering

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "test-your-own-spark.md"
CASE = ROOT / "cases" / "late-drops" / "window-still-open.yaml"


@pytest.fixture(scope="module")
def newest():
    return Targets.load().select(["newest"])[0]


@pytest.fixture(scope="module")
def server(newest, tmp_path_factory):
    client = replace(newest, packages=(*newest.packages, *newest.connect))
    served = Served(prepare(client, say=silently), tmp_path_factory.mktemp("server"))
    yield served
    served.close()


@pytest.fixture(scope="module")
def here(newest):
    """Case id → the digest of what this version was seen to do in one process."""
    return {
        cell.case: cell.behaviour for cell in Results.read_all(list(published())).cells if cell.target == newest.name
    }


@pytest.fixture(scope="module")
def sample(here, tmp_path_factory):
    """The first case of each family that can be run; none that reads the clock."""
    runtime = ConnectRuntime(tmp_path_factory.mktemp("none"), Endpoint.parse("sc://localhost"))
    cases = [case for case in suite.load().cases if here.get(case.id) and runtime.lacks(case) is None]
    families = {case.family: case for case in reversed(cases) if "processing-time" not in case.id}
    return tuple(families.values())


def run(tmp_path, target, server, cases, watching, *, side_by_side=2):
    limits = Limits(jobs=1, step_timeout=120.0, side_by_side=side_by_side)
    Scheduler(ConnectRuntime(tmp_path, Endpoint.parse(server.url)), limits, watching).run([Lane(target, cases)])
    return {id: observation.behaviour_digest for id, observation in watching.seen.items()}


def test_the_same_answers_as_on_this_machine(tmp_path, newest, server, here, sample):
    seen = run(tmp_path, newest, server, sample, Remembering())
    assert len(seen) == len(sample) >= 12
    assert seen == {case.id: here[case.id] for case in sample}


class Interrupting:
    """Kills the server and starts it again after the first cell."""

    def __init__(self, server):
        self._server = server
        self._restarting = threading.Thread(target=self._restart)
        self.runs = []

    def engine_says(self, target, line): ...
    def engine_ready(self, target, identity, place): ...
    def cell_started(self, case, target): ...

    def cell_done(self, run):
        self.runs.append(run)
        if len(self.runs) == 1:
            self._restarting.start()

    def _restart(self):
        self._server.kill()
        self._server.start()

    def join(self):
        self._restarting.join()


def test_a_server_that_is_restarted_has_nothing_judged_wrongly(tmp_path, newest, server, here, sample):
    watching = Interrupting(server)
    sample = sample[:8]
    limits = Limits(jobs=1, step_timeout=120.0, side_by_side=1)
    runtime = ConnectRuntime(tmp_path, Endpoint.parse(server.url))
    Scheduler(runtime, limits, watching).run([Lane(newest, sample)])
    watching.join()
    assert {run.case.id for run in watching.runs} == {case.id for case in sample}
    for one in watching.runs:
        if one.failure is None:
            assert one.observations[0].behaviour_digest == here[one.case.id]
        else:
            assert f"{server.address} answered no more at step" in one.failure
            assert TOKEN not in one.failure
    assert sum(one.failure is None for one in watching.runs) > len(sample) // 2
    # And it goes on as if nothing had been.
    again = run(tmp_path, newest, server, sample[:2], Remembering())
    assert again == {case.id: here[case.id] for case in sample[:2]}


def test_a_wrong_token_is_said_and_not_shown(tmp_path, newest, server):
    runtime = ConnectRuntime(tmp_path, Endpoint.parse(f"{server.address}/;token=wrong-4711"))
    with pytest.raises(EndpointFailed) as raised:
        runtime.start(newest, say=silently)
    assert server.address in str(raised.value)
    assert "4711" not in str(raised.value)


def test_another_version_is_not_judged(tmp_path, newest, server):
    """The client is the server's own; asked for is a release that is not there."""
    other = Targets.load().select(["4.2"])[0]
    runtime = ConnectRuntime(tmp_path, Endpoint.parse(server.url))
    with pytest.raises(OtherVersion, match=rf"is Spark {newest.version}, and {other.version} was asked for"):
        runtime.start(other, say=silently)


def test_the_command_of_the_page(tmp_path, server):
    """As it stands, with one case and our server. What opens the server is on the command line, and nowhere else."""
    (command,) = re.findall(r"^\$ (conformance .*--connect .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    words = shlex.split(command.replace("sc://localhost:15002", server.url))[2:]
    done = subprocess.run(
        [sys.executable, "-m", "conformance.cli.main", "run", str(CASE), *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 conform" in done.stdout
    results = tmp_path / "connect.jsonl"
    for shown in (done.stdout, done.stderr, results.read_text()):
        assert TOKEN not in shown
    (cell,) = Results.read(results).cells
    assert cell.status == "conforms"
