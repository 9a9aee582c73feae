"""Real engines, and what they run on, for the tests that share them."""

import pytest

from harness.environments.provision import prepare
from harness.progress import ignore_progress
from harness.runtimes.local import LocalRuntime
from harness.targets.catalogue import Targets
from tests.engine.hdfs import Hdfs
from tests.engine.here import digests
from tests.engine.standalone import Standalone


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
