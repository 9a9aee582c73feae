"""A checkpoint written on this machine goes on in a container, and one written in a container on this machine, with the same answers."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from conformance.core.versions import SparkVersion
from conformance.suite import discovery
from harness.engine.request import Segment, join_segments, request_for
from harness.environments.provision import prepare
from harness.progress import ignore_progress
from harness.runtimes.containers.images import Images
from harness.runtimes.containers.runtime import Confinement, ContainerRuntime
from harness.runtimes.local import LocalRuntime
from harness.targets.targets import Targets
from tests.container.conftest import ROOT
from tests.support.effort import sample

CASES = sample(
    [
        "recovery/graceful-restart-keeps-the-watermark",
        "deduplication/forgotten-keys-are-counted-as-removed",
        "window-eviction/window-comes-out-once",
    ],
    1,
)
CUT = 2


@pytest.fixture(scope="module")
def target():
    (found,) = Targets.load().select(["3.5"])
    return found


@pytest.fixture
def shared(monkeypatch, target):
    """A folder that is at the same path here and in containers, and whose files any user may write."""
    prepare(target, on_progress=ignore_progress)  # before the mask goes, or every user could write the environment
    folder = Path(tempfile.mkdtemp(prefix="conformance-shared-", dir="/var/tmp"))
    folder.chmod(0o777)
    before = os.umask(0)
    monkeypatch.setattr("harness.runtimes.containers.runtime.WORK", str(folder))
    yield folder
    os.umask(before)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def engines(daemon, spark_35, shared, target):
    confinement = Confinement(volume={"type": "none", "o": "bind", "device": str(shared)})
    containers = ContainerRuntime(Images({str(target.version): spark_35}), confinement)
    both = {"here": LocalRuntime(shared).start(target, on_progress=ignore_progress)}
    try:
        both["container"] = containers.start(target, on_progress=ignore_progress)
        for folder in shared.iterdir():  # this machine's engines work in folders of their own
            if folder.stat().st_uid == os.getuid():
                folder.chmod(0o777)
        yield both
    finally:
        for engine in both.values():
            engine.close()
        containers.close()


def crossed(case, first, then):
    """The steps before the cut on one engine, the others on another."""
    directory = first.new_directory(case.id)
    before = request_for(case, directory, segment=Segment(1, CUT - 1)).model_copy(update={"save": f"{directory}.saved"})
    after = request_for(case, directory, segment=Segment(CUT, len(case.steps))).model_copy(
        update={"restore": f"{directory}.saved"}
    )
    return join_segments([first.observe(before, step_timeout=600), then.observe(after, step_timeout=600)])


def test_here_and_in_a_container_give_the_same_answers(engines):
    here, container = engines["here"], engines["container"]
    assert SparkVersion.parse(here.identity.spark) == SparkVersion.parse(container.identity.spark)
    for id in CASES:
        (case,) = discovery.load([ROOT / "cases" / f"{id}.yaml"]).cases
        stayed = crossed(case, here, here)
        assert stayed.steps[-1].error is None
        assert any(batch.rows for step in stayed.steps for batch in step.batches), id
        for first, then in ((here, container), (container, here)):
            assert crossed(case, first, then).behaviour_digest == stayed.behaviour_digest, (id, first.place, then.place)
