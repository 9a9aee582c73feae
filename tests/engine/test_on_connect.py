"""The suite through Spark Connect: a server that the tests start gives what one process on this machine gives."""

import json
import re
import shlex
import threading
import time
from pathlib import Path

import pytest

from harness.engine.engine import EngineDied
from harness.environments import provision
from harness.environments.provision import prepare
from harness.errors import HarnessError
from harness.progress import ignore_progress
from harness.runtimes.cluster import StorageUrl
from harness.runtimes.connect import ConnectRuntime, Endpoint
from harness.runtimes.own_code import with_requirements
from harness.targets.targets import Targets
from reports.results.reading import Results
from tests.engine.here import digests, first_of_each_family
from tests.engine.maven import jar
from tests.engine.own_job import COUNTED, COUNTING, check_own_job, own_job
from tests.engine.refused import REFUSED, check_refused
from tests.engine.remembering import Remembering
from tests.engine.served import TOKEN, Served
from tests.engine.test_however_written import PROGRAM
from tests.engine.test_programs import CLICKS, FUNCTION, ORDERS, SAMPLES
from tests.engine.typed import conformance, disturbed, resumed
from tests.support import effort
from tests.support.effort import full_run_only, number
from tests.support.whole_suite import whole_suite

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "connect.md"
CASE = ROOT / "cases" / "late-drops" / "window-still-open.yaml"


@pytest.fixture(scope="module")
def newest():
    return Targets.load().select(["newest"], obstacle=provision.obstacle)[0]


@pytest.fixture(scope="module")
def server(newest, tmp_path_factory):
    client = with_requirements(newest, newest.connect)
    served = Served(prepare(client, on_progress=ignore_progress), tmp_path_factory.mktemp("server"))
    yield served
    served.close()


@pytest.fixture(scope="module")
def here(newest):
    return digests(newest)


@pytest.fixture(scope="module")
def sample(newest, here, tmp_path_factory):
    runtime = ConnectRuntime(tmp_path_factory.mktemp("none"), Endpoint.parse("sc://localhost"))
    return first_of_each_family(here, lambda case: runtime.unsupported(case, newest) is None, few=5)


def run(tmp_path, target, server, cases, *, storage=None):
    runtime = ConnectRuntime(tmp_path, Endpoint.parse(server.url), storage=storage)
    return Remembering().asked(runtime, target, cases, side_by_side=2)


def test_the_same_answers_as_on_this_machine(tmp_path, newest, server, here, sample):
    few = effort.sample(sample, 3)
    seen = run(tmp_path, newest, server, few)
    assert len(seen) == len(few) >= number(3, 12)
    assert seen == {case.id: here[case.id] for case in few}


@full_run_only
def test_a_job_runs_through_connect_with_one_version_and_here_with_the_other(tmp_path, server):
    """As the page says, with a job that only counts; its checkpoint moves from this machine to the server."""
    (command,) = re.findall(r"^(conformance check .* --connect \S+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    (tmp_path / "j.py").write_text(COUNTING)
    (tmp_path / "a.csv").write_text(COUNTED)
    command = command.replace("sc://localhost:15002", shlex.quote(server.url))
    done = conformance(tmp_path, *shlex.split(command)[1:], "--batches", "2", "--no-repeat-rows", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["rows"] == "same"
    targets = Results.read(tmp_path / "check" / "results.jsonl").header.targets
    assert [target.runtime for target in targets] == ["local", "connect"]
    assert TOKEN not in done.stdout + done.stderr + (tmp_path / "check" / "results.jsonl").read_text()


@full_run_only
@pytest.mark.parametrize(("before", "after", "side"), [("3.5", "newest", "to"), ("newest", "4.2", "from")])
def test_a_program_gets_the_verdict_through_connect_that_it_gets_here(tmp_path, server, before, after, side):
    for name, text in {"job.py": PROGRAM, "same.py": FUNCTION, "orders.csv": ORDERS, "clicks.csv": CLICKS}.items():
        (tmp_path / name).write_text(text)
    command = ["check", "job.py", "--from", before, "--to", after, *SAMPLES, "--batches", "2", "--json"]
    command += ["--no-repeat-rows", "--no-silent-streams"]
    here = conformance(tmp_path, *command)
    through = conformance(tmp_path, *command, "--connect", server.url, "--connect-side", side)
    verdict, same = (json.loads(done.stdout) for done in (here, through))
    assert verdict["rows"] == "same"
    assert verdict["checkpoints"]
    assert verdict["features"]
    # Through Connect, the side that runs here tells the plan.
    assert (verdict.pop("planned_by") == same.pop("planned_by")) is (side == "to")
    assert {**same, "summary": same["summary"].replace("-connect", "")} == verdict
    assert through.returncode == here.returncode


@full_run_only
def test_the_same_answers_on_the_oldest_that_has_it(tmp_path, target):
    """3.5 has its server in a jar of its own; those of 3.5.8 and 3.5.9 are not in Maven Central. An error's cause comes through too."""
    served = Served(
        prepare(with_requirements(target, target.connect), on_progress=ignore_progress),
        tmp_path,
        [jar("org.apache.spark:spark-connect_2.12:3.5.7")],
    )
    try:
        here = digests(target)
        runtime = ConnectRuntime(tmp_path, Endpoint.parse(served.address))
        refused = [case for case in whole_suite().cases if case.id == "recovery/added-grouping-key-is-refused"]
        sample = (
            *first_of_each_family(here, lambda case: runtime.unsupported(case, target) is None, few=2)[:5],
            *refused,
        )
        watching = Remembering()
        seen = watching.asked(runtime, target, sample, side_by_side=2)
        assert seen == {case.id: here[case.id] for case in sample}
        (error,) = (step.error for step in watching.seen[refused[0].id].steps if step.error)
        assert "StateSchemaNotCompatible: Provided" in error.message
    finally:
        served.close()


@full_run_only
def test_the_same_answers_where_only_the_server_sees_the_files(tmp_path, newest, server, here, sample):
    """One stream and several, backlogs among them; nothing of a case stays but its directory."""
    storage = StorageUrl((tmp_path / "storage").as_uri()).unique_directory()
    runtime = ConnectRuntime(tmp_path, Endpoint.parse(server.url), storage=storage)
    sample = tuple(case for case in sample if runtime.unsupported(case, newest) is None)
    sample = (
        *[case for case in sample if len(case.streams) > 1][:2],
        *[case for case in sample if len(case.streams) == 1][: number(1, 3)],
    )
    seen = run(tmp_path, newest, server, sample, storage=storage)
    assert len(seen) == len(sample) >= number(2, 5)
    assert seen == {case.id: here[case.id] for case in sample}
    left = [path for path in (tmp_path / "storage").rglob("*") if path.is_file() and path.stat().st_size]
    assert {path.name.rpartition(".")[2] for path in left} <= {"crc"}


def test_a_storage_the_server_cannot_write_to_is_said(tmp_path, newest, server):
    storage = StorageUrl("file:///proc/tests")
    with pytest.raises(EngineDied, match="cannot write to file:///proc/tests: ") as raised:
        ConnectRuntime(tmp_path, Endpoint.parse(server.url), storage=storage).start(newest, on_progress=ignore_progress)
    assert "Traceback" not in str(raised.value)


class Interrupting(Remembering):
    """Kills the server and starts it again after the first cell; takes cells without an answer too."""

    def __init__(self, server):
        super().__init__()
        self._server = server
        self._restarting = threading.Thread(target=self._restart)
        self.runs = []

    def cell_done(self, run):
        self.runs.append(run)
        if len(self.runs) == 1:
            self._restarting.start()

    def _restart(self):
        self._server.kill()
        self._server.start()

    def join(self):
        self._restarting.join()


@full_run_only
def test_a_server_that_is_restarted_has_nothing_judged_wrongly(tmp_path, newest, server, here, sample):
    watching = Interrupting(server)
    sample = sample[:8]
    watching.asked(ConnectRuntime(tmp_path, Endpoint.parse(server.url)), newest, sample, side_by_side=1)
    watching.join()
    assert {run.case.id for run in watching.runs} == {case.id for case in sample}
    for one in watching.runs:
        if one.failure is None:
            assert one.observations[0].behaviour_digest == here[one.case.id]
        else:
            assert f"{server.address} stopped answering at step" in one.failure
            assert TOKEN not in one.failure
    assert sum(one.failure is None for one in watching.runs) > len(sample) // 2
    # And it goes on as if nothing had been.
    again = run(tmp_path, newest, server, sample[:2])
    assert again == {case.id: here[case.id] for case in sample[:2]}


@full_run_only
def test_a_token_that_expires_during_a_run_is_named_and_the_run_goes_on_with_a_new_one(tmp_path, server, sample):
    """A server that is restarted with another token refuses the one that it took until then."""
    files = [str(case.path) for case in sample[:6]]
    words = ["run", *files, "--spark", "newest", "--side-by-side", "1", "-o", "r.jsonl"]

    def expire():
        server.kill()
        server.start("another")

    try:
        code, said = disturbed(tmp_path, expire, *words, CONFORMANCE_CONNECT=server.url)
        assert code == 3
        assert f"{server.address} did not open a session: Invalid authentication token" in said
        cells = Results.read(tmp_path / "r.jsonl").cells
        assert all(server.address in str(cell.notes) for cell in cells if cell.status == "broken")
        said += resumed(tmp_path, "r.jsonl", *words, CONFORMANCE_CONNECT=f"{server.address}/;token=another")
        assert TOKEN not in said
    finally:
        server.kill()
        server.start()


@full_run_only
def test_a_run_whose_server_was_lost_is_resumed_when_it_is_back(tmp_path, server, sample):
    files = [str(case.path) for case in sample[:4]]
    words = ["run", *files, "--spark", "newest", "--connect", server.url, "--side-by-side", "1", "-o", "r.jsonl"]
    try:
        code, said = disturbed(tmp_path, server.kill, *words)
        assert code == 3, said
    finally:
        server.start()
    assert f"cannot connect to the Connect server {server.address}: " in said
    assert TOKEN not in said + resumed(tmp_path, "r.jsonl", *words)


def test_a_wrong_token_is_said_and_not_shown(tmp_path, newest, server):
    runtime = ConnectRuntime(tmp_path, Endpoint.parse(f"{server.address}/;token=wrong-sesame"))
    with pytest.raises(HarnessError, match="did not open a session") as raised:
        runtime.start(newest, on_progress=ignore_progress)
    assert server.address in str(raised.value)
    assert "sesame" not in str(raised.value)


def test_a_server_without_tls_is_named_at_once_where_the_client_uses_it(tmp_path, newest, server):
    """The client of 4.x uses TLS with a token, unless the host is ``localhost``."""
    url = server.url.replace("localhost", "127.0.0.1")
    begun = time.monotonic()
    with pytest.raises(HarnessError, match=r"sc://127\.0\.0\.1:\d+ has no TLS") as raised:
        ConnectRuntime(tmp_path, Endpoint.parse(url)).start(newest, on_progress=ignore_progress)
    assert time.monotonic() - begun < 10
    assert TOKEN not in str(raised.value)


def test_another_version_is_not_judged(tmp_path, newest, server, monkeypatch):
    """The client is the server's own, which saves installing another; asked for is a release that is not there."""
    other = Targets.load().select(["4.2"])[0]
    own = prepare(with_requirements(newest, newest.connect), on_progress=ignore_progress)
    monkeypatch.setattr("harness.runtimes.connect.prepare", lambda *_, **__: own)
    runtime = ConnectRuntime(tmp_path, Endpoint.parse(server.url))
    with pytest.raises(HarnessError, match=rf"runs Spark {newest.version}, not {other.version}"):
        runtime.start(other, on_progress=ignore_progress)


def test_the_command_of_the_page(tmp_path, server):
    """As it stands, with one case and our server. What opens the server is on the command line, and nowhere else."""
    (command,) = re.findall(r"^\$ (conformance .*--connect .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    words = shlex.split(command.replace("sc://localhost:15002", server.url))[2:]
    words.remove("--all")
    done = conformance(tmp_path, "run", str(CASE), *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 conform" in done.stdout
    results = tmp_path / "connect.jsonl"
    for shown in (done.stdout, done.stderr, results.read_text()):
        assert TOKEN not in shown
    (cell,) = Results.read(results).cells
    assert cell.status == "conforms"


@pytest.mark.parametrize("side", effort.sample(["to", "from"], 1))
def test_a_checkpoint_moves_between_a_classic_session_and_connect(tmp_path, newest, server, side):
    """By five keys, whose order is the same either way since 4.3 only (SPARK-57489)."""
    case = ROOT / "cases" / "deduplication" / "within-watermark-by-five-keys-outlives-a-restart.yaml"
    version = str(newest.version)
    done = conformance(
        tmp_path,
        *("upgrade", str(case), "--from", version, "--to", version, "--connect", server.url, "--connect-side", side),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "● 1 of 1 checkpoint resumed" in done.stdout
    (cell,) = Results.read(tmp_path / "upgrades.jsonl").upgrades
    names = [f"spark-{version}", f"spark-{version}-connect"]
    assert [cell.origin, cell.target] == (names if side == "to" else names[::-1])
    for shown in (done.stdout, done.stderr, (tmp_path / "upgrades.jsonl").read_text()):
        assert TOKEN not in shown


@full_run_only
def test_the_servers_workers_get_the_functions_of_a_job_of_ones_own(tmp_path, newest, server):
    code, cases = own_job(tmp_path)
    check_own_job(ConnectRuntime(tmp_path, Endpoint.parse(server.url), own_code=code), newest, cases)


def test_spark_itself_says_here_too_what_only_permission_runs(tmp_path, newest, server):
    engine = ConnectRuntime(tmp_path, Endpoint.parse(server.url)).start(newest, on_progress=ignore_progress)
    try:
        for operation, why in REFUSED:
            check_refused(engine, tmp_path, operation, why)
    finally:
        engine.close()
