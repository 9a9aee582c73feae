"""An answer is the same however it is had: with Spark's own settings or with those that save time, one case at a time or several."""

from pathlib import Path

import pytest

from conformance.suite import discovery
from conformance.suite.selection import estimated_batches
from harness.runtimes.local import LocalRuntime
from tests.engine.remembering import Remembering
from tests.support import effort

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
OF_EACH = effort.number(1, 2)
TRIVIAL = 6
"""Estimated micro-batches of a case that one step is refused in, or little more."""


@pytest.fixture(scope="module")
def sample(target):
    """The shortest of two families, and one that keeps its state in RocksDB: with Spark's own settings, 200 tasks plan and run
    each micro-batch. In a full run some of each family, those that kill their engine among them, and one in RocksDB."""
    chosen = []
    for family in effort.sample(FAMILIES, 2):
        cases = [case for case in discovery.load([SUITE / family]).cases if case.applies_to(target.version)]
        if not effort.FULL:
            cases = sorted((case for case in cases if estimated_batches(case) > TRIVIAL), key=estimated_batches)
        chosen += cases[:: max(1, len(cases) // OF_EACH)]
        if effort.FULL or not any("rocksdb" in case.id for case in chosen):
            chosen += [case for case in cases if "rocksdb" in case.id and case not in chosen][:1]
    return tuple(chosen)


def test_the_same_answers(tmp_path, target, sample):
    (tmp_path / "plain").mkdir()
    (tmp_path / "fast").mkdir()
    plain = Remembering().asked(LocalRuntime(tmp_path / "plain", plain=True), target, sample, side_by_side=1)
    fast = Remembering().asked(LocalRuntime(tmp_path / "fast"), target, sample, side_by_side=4)
    assert len(plain) == len(sample) > effort.number(2, 14)
    assert fast == plain
