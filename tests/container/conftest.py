"""A real daemon, and images of real Sparks on it."""

import os
import socket
import time
from dataclasses import dataclass

import docker
import pytest

from harness.runtimes.containers.daemon import NoDaemon, connect
from harness.runtimes.containers.images import built
from harness.targets.targets import Targets
from tests.engine.typed import ROOT, start

SMOKE = ROOT / "cases" / "late-drops" / "window-still-open.yaml"


@pytest.fixture(scope="session")
def daemon():
    """Docker's own client. Without a daemon these tests say nothing, and are skipped as such; CI insists on one."""
    try:
        return connect().client
    except NoDaemon as error:
        if os.environ.get("CONFORMANCE_REQUIRE_DAEMON"):
            raise
        pytest.skip(str(error))


def image_of(daemon, version):
    (target,) = Targets.load().select([version])
    try:
        return daemon.images.get(built(target)).tags[0]
    except docker.errors.ImageNotFound:
        if os.environ.get("CONFORMANCE_REQUIRE_DAEMON"):
            raise
        pytest.skip(f"no image of Spark {version} here: conformance targets build {version}")


@pytest.fixture(scope="session")
def spark_35(daemon):
    return image_of(daemon, "3.5")


@pytest.fixture(scope="session")
def spark_43(daemon):
    return image_of(daemon, "4.3")


@dataclass
class Finished:
    code: int
    out: str
    said: str


class Command:
    """``conformance`` in a folder of its own, run to its end or let go on."""

    def __init__(self, folder):
        self.folder = folder
        self.running = []

    def start(self, *arguments, **environ):
        process = start(self.folder, *arguments, **{"COLUMNS": "200", **environ})
        self.running.append(process)
        return process

    def __call__(self, *arguments, **environ):
        process = self.start(*arguments, **environ)
        out, said = process.communicate(timeout=1800)
        return Finished(process.returncode, out, said)


@pytest.fixture
def conformance(tmp_path):
    command = Command(tmp_path)
    yield command
    for process in command.running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def of(daemon, *processes):
    """Containers and volumes made for these processes, by name; other runs may go on beside a test."""
    found = []
    for process in processes:
        filters = {"label": f"watermark-conformance.process={process}"}
        found += [container["Id"] for container in daemon.api.containers(all=True, filters=filters)]
        found += [volume["Name"] for volume in daemon.api.volumes(filters=filters)["Volumes"] or ()]
    return found


@pytest.fixture
def nothing_left(daemon, conformance, tmp_path):
    """After the test no container and no volume of its runs is there, and no file of another user's."""
    yield
    assert of(daemon, *(process.pid for process in conformance.running)) == []
    foreign = [path for path in tmp_path.rglob("*") if path.lstat().st_uid != os.getuid()]
    assert foreign == []


def running_container(daemon, command_process, seconds=600):
    """The container of the run that a process of ours drives, once its engine answers."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = daemon.containers.list(filters={"label": f"watermark-conformance.process={command_process.pid}"})
        if found:
            return found[0]
        assert command_process.poll() is None, command_process.communicate()[1]
        time.sleep(0.1)
    raise AssertionError(f"no container of process {command_process.pid} on {socket.gethostname()}")
