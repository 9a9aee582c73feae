"""An answer is the same however it is had: with Spark's own settings or with those that save time, one case at a time or several."""

from pathlib import Path

import pytest

from conformance.suite import discovery
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
OF_EACH = 2


@pytest.fixture(scope="module")
def sample(target):
    """Some of each family, those that kill their engine among them, and all that keep their state in RocksDB."""
    chosen = []
    for family in effort.sample(FAMILIES, 3):
        cases = [case for case in discovery.load([SUITE / family]).cases if case.applies_to(target.version)]
        chosen += cases[:: max(1, len(cases) // OF_EACH)]
        chosen += [case for case in cases if "rocksdb" in case.id and case not in chosen][:1]
    return tuple(chosen)


def test_the_same_answers(tmp_path, target, sample):
    (tmp_path / "plain").mkdir()
    (tmp_path / "fast").mkdir()
    plain = Remembering().asked(LocalRuntime(tmp_path / "plain", plain=True), target, sample, side_by_side=1)
    fast = Remembering().asked(LocalRuntime(tmp_path / "fast"), target, sample, side_by_side=4)
    assert len(plain) == len(sample) > effort.number(6, 14)
    assert fast == plain
