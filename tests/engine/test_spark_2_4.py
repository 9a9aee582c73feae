"""Spark 2.4, which is chosen by name: what differs there, what its settings and threads need, and its checkpoint on the next line."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.environments import provision
from harness.targets.targets import Targets
from tests.engine.typed import conformance

CASES = Path(__file__).parents[2] / "cases"
(TARGET,) = Targets.load().select(["2.4"])
OBSTACLE = provision.obstacle(TARGET)
pytestmark = pytest.mark.skipif(OBSTACLE is not None, reason=f"{TARGET}: {OBSTACLE}")


def test_cases_of_every_kind_are_as_expected(tmp_path: Path) -> None:
    chosen = [
        "late-drops/window-still-open",  # as on every version
        "join-delays/self-outer-join-no-null-row-for-a-matched-row",  # a bug of 2.4
        "recovery/shuffle-partitions-stay-after-restart",  # a setting of the session (SPARK-27253)
        "deduplication/sql-distinct-runs-in-complete-mode",  # an error of the JVM that pyspark converts
    ]
    done = conformance(tmp_path, "run", *(str(CASES / f"{case}.yaml") for case in chosen), "--spark", "2.4")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 violate" in done.stdout
    assert "known bug" in done.stdout


def test_its_checkpoint_on_the_next_line(tmp_path: Path) -> None:
    case = str(CASES / "late-drops" / "window-still-open.yaml")
    done = conformance(tmp_path, "upgrade", case, "--from", "2.4", "--to", "3.0")
    assert done.returncode == 0, done.stdout + done.stderr
