"""An answer is the same however it is had: with Spark's own settings or with those that save time, one case at a time or several."""

from pathlib import Path

import pytest

from conformance import suite
from harness.local import LocalRuntime
from harness.scheduler import Lane, Limits, Scheduler

SUITE = Path(__file__).parents[2] / "cases"
FAMILIES = (
    "late-drops",
    "window-eviction",
    "join-delays",
    "session-windows",
    "recovery",
    "deduplication",
    "chained-aggregations",
)
OF_EACH = 3


class Remembering:
    def __init__(self):
        self.seen = {}

    def engine_says(self, target, line): ...
    def engine_ready(self, target, identity, place): ...
    def cell_started(self, case, target): ...

    def cell_done(self, run):
        assert run.failure is None, run.failure
        self.seen[run.case.id] = run.observations[0]


@pytest.fixture(scope="module")
def sample(target):
    """Some of each family, those that kill their engine among them, and whatever keeps its state in RocksDB."""
    chosen = []
    for family in FAMILIES:
        cases = [case for case in suite.load([SUITE / family]).cases if case.applies_to(target.version)]
        chosen += cases[:: max(1, len(cases) // OF_EACH)]
        chosen += [case for case in cases if "rocksdb" in case.id and case not in chosen][:1]
    return tuple(chosen)


def answers(tmp_path, target, cases, *, plain, side_by_side):
    remembering = Remembering()
    limits = Limits(jobs=1, step_timeout=120.0, side_by_side=side_by_side)
    Scheduler(LocalRuntime(tmp_path, plain=plain), limits, remembering).run([Lane(target, cases)])
    return {id: observation.behaviour_digest for id, observation in remembering.seen.items()}


def test_the_same_answers(tmp_path, target, sample):
    (tmp_path / "plain").mkdir()
    (tmp_path / "fast").mkdir()
    plain = answers(tmp_path / "plain", target, sample, plain=True, side_by_side=1)
    fast = answers(tmp_path / "fast", target, sample, plain=False, side_by_side=4)
    assert len(plain) == len(sample) > 20
    assert fast == plain
