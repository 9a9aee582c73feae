"""What the container runtime asks a daemon for; the daemon is a small one that notes it down."""

import io
import tarfile
from types import SimpleNamespace

import pytest
from docker.errors import APIError, ImageNotFound

from conformance.core.operations import read_pipeline
from harness.progress import ignore_progress
from harness.runtimes.containers import runtime as module
from harness.runtimes.containers.images import Images
from harness.runtimes.containers.runtime import Confinement, ContainerRuntime
from harness.runtimes.own_code import OwnCode
from tests.support.miniature.target import SPARK_359
from tests.support.observations import case

IMAGE = "spark:of-mine"


class Refused(APIError):
    """The engine cannot be attached to: as far as a daemon without containers goes."""


class Daemon:
    """Has one image, makes containers and never runs one."""

    def __init__(self):
        self.created = []
        self.removed = []
        self.closed = 0
        self.api = self
        self.client = SimpleNamespace(
            api=self,
            images=SimpleNamespace(get=self._image),
            volumes=SimpleNamespace(create=lambda *_, **__: None),
            info=dict,
            close=self._close,
        )

    def _image(self, reference):
        if reference != IMAGE:
            raise ImageNotFound(reference)
        return SimpleNamespace(id="sha256:1", attrs={"Config": {"User": "spark"}})

    def create(self, image, **arguments):
        self.created.append((image, arguments))
        return Container(self, f"container-{len(self.created)}")

    def containers(self, **_):
        return []

    def volumes(self, **_):
        return {"Volumes": []}

    def remove_container(self, container, **_):
        self.removed.append(container)

    def remove_volume(self, *_, **__):
        pass

    def attach_socket(self, *_, **__):
        raise Refused("no streams here")

    def _close(self):
        self.closed += 1


class Container:
    def __init__(self, daemon, name):
        self.client = daemon
        self.id = name

    def get_archive(self, path):
        passwd = b"root:x:0:0:root:/root:/bin/sh\nspark:x:185:0::/opt/spark:/bin/sh\n"
        into = io.BytesIO()
        with tarfile.open(fileobj=into, mode="w") as archive:
            entry = tarfile.TarInfo("passwd")
            entry.size = len(passwd)
            archive.addfile(entry, io.BytesIO(passwd))
        return [into.getvalue()], {}

    def put_archive(self, *_):
        pass


@pytest.fixture
def daemons(monkeypatch):
    """Every client that was opened."""
    opened = []

    def connect():
        opened.append(Daemon())
        return opened[-1]

    monkeypatch.setattr(module, "connect", connect)
    return opened


def start(runtime):
    with pytest.raises(Refused):
        runtime.start(SPARK_359, on_progress=ignore_progress)


def test_all_engines_share_one_client_and_it_is_closed(daemons, monkeypatch):
    monkeypatch.setenv("TESTCONTAINERS_HUB_IMAGE_NAME_PREFIX", "elsewhere/")
    runtime = ContainerRuntime(Images({"all": IMAGE}), Confinement())
    start(runtime)
    start(runtime)
    (daemon,) = daemons
    # The first looks into the image, once for both; the others are the engines, made of what was asked for to the letter.
    assert [image for image, _ in daemon.created] == [IMAGE] * 3
    assert [arguments["entrypoint"] for _, arguments in daemon.created] == [["true"], ["python3"], ["python3"]]
    assert daemon.removed == ["container-1", "container-2", "container-3"]
    runtime.close()
    assert daemon.closed == 1


def test_no_container_holds_a_main_method(daemons):
    call = {"call": {"main": "acme.Main"}, "with": ["events"]}
    runtime = ContainerRuntime(Images({"all": IMAGE}), Confinement())
    main = case(None, query=read_pipeline([call]))
    assert "a debugger holds its main method" in runtime.unsupported(main, SPARK_359)


def test_an_engine_is_confined(daemons):
    runtime = ContainerRuntime(Images({"all": IMAGE}), Confinement())
    start(runtime)
    _, asked = daemons[0].created[-1]
    confined = Confinement().arguments(module.missing_limits(daemons[0]))
    assert {name: asked[name] for name in confined} == confined
    assert asked["user"] == "185:0"
    assert asked["stdin_open"] is True


def test_the_users_code_is_copied_and_python_workers_find_it(daemons, tmp_path, monkeypatch):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "job.py").write_text("x = 1")
    (tmp_path / "src" / "totals.sql").write_text("SELECT 1")
    put = []
    monkeypatch.setattr(Container, "put_archive", lambda _self, _path, archive: put.append(archive))
    runtime = ContainerRuntime(Images({"all": IMAGE}), Confinement(), own_code=OwnCode.at([tmp_path / "src", tmp_path]))
    start(runtime)
    command = daemons[0].created[-1][1]["command"]
    work = command[command.index("--shared") + 1]
    assert f"spark.executorEnv.PYTHONPATH={work}/code/0:{work}/code/1" in command
    assert not any(word.startswith("spark.conformance.hadoopDefaults") for word in command)
    with tarfile.open(fileobj=io.BytesIO(put[0])) as archive:
        names = set(archive.getnames())
    folder = work.rpartition("/")[2]
    assert {f"{folder}/code/0/job.py", f"{folder}/code/0/totals.sql", f"{folder}/code/1/src/job.py"} <= names
