"""A checkpoint that plain PySpark 3.5.9 wrote, resumed on 4.3 by ``conformance checkpoint resume``."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from harness.targets.catalogue import Targets
from tests.engine.typed import conformance
from tools.checkpoints import write_checkpoints

JOB = """
from pyspark.sql import functions as F


def build(spark, clicks, orders):
    clicks = clicks.withWatermark("clicks_time", "10 minutes")
    orders = orders.withWatermark("orders_time", "20 minutes")
    near = "clicks_id = orders_id AND orders_time BETWEEN clicks_time AND clicks_time + INTERVAL 5 MINUTES"
    return clicks.join(orders, F.expr(near), "leftOuter")
"""
"""The query of `tools.checkpoint_queries`."""
UNCHECKED = "spark.sql.streaming.stateStore.stateSchemaCheck=false"


@pytest.fixture
def resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "jobs.py").write_text(JOB)
    monkeypatch.chdir(tmp_path)
    streams = [
        option
        for name in ("clicks", "orders")
        for option in ("--schema", f"{name}={name}_id STRING, {name}_time TIMESTAMP")
    ]

    def run(checkpoint: Path, *options: str):
        done = conformance(
            tmp_path,
            "checkpoint",
            "resume",
            str(checkpoint),
            "--call",
            "jobs:build",
            "--to",
            "4.3",
            *streams,
            "--json",
            *options,
        )
        return done.returncode, json.loads(done.stdout)

    return run


def digests(folder: Path) -> dict[Path, str]:
    return {
        path: f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path.stat().st_mtime_ns}"
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_it_is_refused_resumes_with_the_workaround_and_stays_as_it_is(tmp_path: Path, resume) -> None:
    (target,) = Targets.load().select(["3.5.9"])
    write_checkpoints(target, ["outer_join-hdfs"], tmp_path)
    checkpoint = tmp_path / "outer_join-hdfs" / "checkpoint"
    before = digests(checkpoint)
    code, refused = resume(checkpoint)
    assert (code, refused["resumes"], refused["error"]["class"]) == (
        1,
        False,
        "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
    )
    assert any(UNCHECKED in (known["workaround"] or "") for known in refused["known"])
    code, resumed = resume(checkpoint, "--conf", UNCHECKED)
    assert (code, resumed["resumes"]) == (0, True)
    # With the watermark of the checkpoint, and its rows.
    assert resumed["micro_batches"][0]["watermark_ms"] == 1_704_110_940_000
    assert sum(resumed["micro_batches"][0]["state"]) > 0
    assert digests(checkpoint) == before
