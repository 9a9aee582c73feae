"""The class archive of a real JVM: the second engine writes it, the third maps it, and answers stay the same."""

import contextlib
from pathlib import Path

import psutil
import pytest

from conformance.suite import discovery
from harness.engine.driver_engine import BATCHES_BEFORE_FINISH
from harness.engine.request import request_for
from harness.environments.class_archive import ClassArchive
from harness.progress import ignore_progress
from harness.runtimes.local import LocalRuntime
from tests.support import effort

CASE = Path(__file__).parents[2] / "cases" / "window-eviction" / "window-stays-while-its-end-is-ahead.yaml"


@pytest.mark.skipif(not effort.FULL, reason="three engines; CONFORMANCE_TESTS=full runs it")
def test_later_engines_map_what_an_earlier_one_has_loaded(tmp_path, target, monkeypatch):
    archive = ClassArchive(tmp_path / "archives", "0123")
    monkeypatch.setattr(ClassArchive, "of", lambda *_: archive)
    (case,) = discovery.load([CASE]).cases
    seen, mapped = [], []
    for number in range(3):
        assert (archive.file() is not None) == (number == 2)
        engine = LocalRuntime(tmp_path).start(target, on_progress=ignore_progress)
        for _ in range(BATCHES_BEFORE_FINISH):
            answer = engine.observe(request_for(case, engine.new_directory(case.id)), step_timeout=600)
            seen.append(answer.behaviour_digest)
        mapped.append(str(archive.file()) in paths_of_children())
        engine.close()
    assert mapped == [False, False, True]
    assert len(set(seen)) == 1


def paths_of_children():
    paths = set()
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has ended
            paths |= {area.path for area in child.memory_maps(grouped=True)}
    return paths
