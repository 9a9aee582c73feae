"""What a container may do, asked of the container itself while an engine runs in it."""

import os

import pytest

from conformance.suite import discovery
from harness.engine.engine import DriverFailed
from harness.engine.protocol import StepRequest
from harness.engine.request import request_for
from harness.progress import ignore_progress
from harness.runtimes.containers import daemon as leftovers
from harness.runtimes.containers.images import Images
from harness.runtimes.containers.runtime import WORK, Confinement, ContainerRuntime
from harness.targets.targets import Targets
from tests.container.conftest import SMOKE
from tests.support.effort import full_run_only


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def runtime(daemon, spark_43, spark_35, kept):
    images = Images({"4.3.0": spark_43, "3.5.9": spark_35})
    runtime = ContainerRuntime(images, Confinement(memory="2g", cpus=1.5), keep=kept)
    yield runtime
    runtime.close()
    runtime.close()
    assert list(leftovers.find_leftovers(runtime._client, runtime._owner)) == []


def start(runtime, version):
    (target,) = Targets.load().select([version])
    return runtime.start(target, on_progress=ignore_progress)


@pytest.fixture(scope="module")
def engine(runtime):
    return start(runtime, "3.5.9")


@pytest.fixture(scope="module")
def container(daemon, engine):
    return daemon.containers.get(engine._connection.transport._container.id)


def inside(container, *command):
    code, output = container.exec_run(list(command))
    return code, output.decode()


def test_it_has_no_network(container):
    assert container.attrs["HostConfig"]["NetworkMode"] == "none"
    code, said = inside(container, "cat", "/proc/net/dev")
    assert code == 0
    assert [line.split(":")[0].strip() for line in said.splitlines() if ":" in line] == ["lo"]


def test_it_has_no_capability_and_gets_none(container):
    _, said = inside(container, "cat", "/proc/1/status")
    status = dict(line.split(":\t", 1) for line in said.splitlines() if ":\t" in line)
    assert {int(status[kind], 16) for kind in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert status["NoNewPrivs"].strip() == "1"


def test_it_is_not_root_and_its_user_has_a_name(container):
    assert inside(container, "id", "-un") == (0, "spark\n")
    assert inside(container, "id", "-u") == (0, "185\n")


@pytest.mark.parametrize("place", ["/", "/opt", "/usr/lib", "/var/tmp"])
def test_its_files_are_read_only(container, place):
    code, _ = inside(container, "touch", f"{place}/x")
    assert code != 0
    assert container.attrs["HostConfig"]["ReadonlyRootfs"] is True


@pytest.mark.parametrize("place", ["/tmp", f"{WORK}/spark-3.5.9-1"])
def test_it_writes_where_spark_writes(container, place):
    assert inside(container, "touch", f"{place}/x") == (0, "")


def test_it_has_limits(container):
    limits = container.attrs["HostConfig"]
    assert limits["Memory"] == 2 << 30
    assert limits["NanoCpus"] == 1_500_000_000
    assert limits["PidsLimit"] == 2048


def test_nothing_of_this_machine_is_in_it(container):
    assert [mount["Type"] for mount in container.attrs["Mounts"]] == ["volume"]
    assert not container.attrs["HostConfig"]["Binds"] or all(
        not bind.startswith("/") for bind in container.attrs["HostConfig"]["Binds"]
    )


def test_it_says_what_it_is(engine, spark_35):
    assert engine.identity.spark == "3.5.9"
    assert "Debian" in engine.identity.os
    assert engine.place.image == spark_35
    assert "sha256:" in engine.place.image_digest


def test_code_is_copied_where_it_is_allowed(conformance, spark_35, tmp_path):
    (tmp_path / "job_of_mine.py").write_text("def doubled(spark, frame):\n    return frame.selectExpr('n * 2 AS n')\n")
    (tmp_path / "x.yaml").write_text(
        "title: x\nstreams: {a: n INT}\nquery: [{from: a}, {call: 'job_of_mine:doubled'}]\n"
        "steps: [{add: {a: [[4]]}, expect: {rows: [[8]]}}]\n"
    )
    arguments = ["run", "x.yaml", "--spark", "3.5.9", "--allow-code", "--runtime", "container"]
    run = conformance(*arguments, "--image", f"3.5.9={spark_35}")
    assert run.code == 0, run.out + run.said


def not_done(engine):
    """What was asked of a case that is not done, which keeps its directory."""
    (case,) = discovery.load([SMOKE]).cases
    asked = request_for(case, engine.new_directory(case.id))
    nonsense = StepRequest(action="add", batches=({"no-such-stream": (({},),)},))
    with pytest.raises(DriverFailed):
        engine.observe(asked.model_copy(update={"steps": (*asked.steps, nonsense)}), step_timeout=600)
    return asked


@full_run_only
def test_another_container_can_go_on_where_one_stopped(runtime, engine, container, daemon):
    """Another version with another user: the same path, and files it may change."""
    asked = not_done(engine)
    other = start(runtime, "4.3.0")
    second = daemon.containers.get(other._connection.transport._container.id)
    checkpoint = f"{asked.directory}/checkpoint"
    code, listed = inside(second, "find", checkpoint, "-type", "f")
    assert code == 0
    assert f"{checkpoint}/offsets/0" in listed.split()
    for folder in ("offsets", "commits", "state/0/0", ""):
        code, output = second.exec_run(["touch", f"{checkpoint}/{folder}/another"], user="nobody")
        assert code == 0, output
        assert inside(second, "rm", f"{checkpoint}/{folder}/another") == (0, "")
    assert inside(second, "rm", "-r", checkpoint) == (0, "")


def test_files_come_back_as_ones_own(runtime, engine, kept):
    """The last test of this file: it closes the runtime."""
    asked = not_done(engine)
    runtime.close()
    here = kept / asked.directory.removeprefix(f"{WORK}/")
    assert (here / "checkpoint" / "metadata").is_file()
    assert {path.lstat().st_uid for path in kept.rglob("*")} == {os.getuid()}
