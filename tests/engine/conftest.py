"""One real engine for the tests that share it."""

import pytest

from harness.local import LocalRuntime
from harness.say import silently
from harness.targets import Targets


@pytest.fixture(scope="session")
def target():
    return Targets.load().select(["3.5"])[0]


@pytest.fixture(scope="session")
def engine(target, tmp_path_factory):
    engine = LocalRuntime(tmp_path_factory.mktemp("engine")).start(target, say=silently)
    yield engine
    engine.close()
