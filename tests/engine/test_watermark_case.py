"""A case that Python code builds, on a real Spark: the function runs as it is, and what differs is an assertion error."""

from __future__ import annotations

import importlib

import pytest

from conformance import NotAsExpected, watermark_case
from tests.support.effort import full_run_only

JOB = """
def build(spark, orders):
    return orders.withWatermark("order_time", "10 minutes").groupBy("order_time").count()
"""


@full_run_only
def test_a_function_of_ones_own(tmp_path, monkeypatch):
    (tmp_path / "acme_counts.py").write_text(JOB)
    monkeypatch.syspath_prepend(tmp_path)
    build = importlib.import_module("acme_counts").build
    case = watermark_case(build, orders="order_time TIMESTAMP, user STRING, price DOUBLE")
    case = case.add(orders=[("12:01", "ada", 1.5)]).expect(rows=[], watermark="11:51")
    # https://spark.apache.org/docs/3.5.9/structured-streaming-programming-guide.html#handling-late-data-and-watermarking:
    # append mode emits a group once the watermark has passed it, and later rows of it are dropped.
    wrong = case.add(orders=[("12:30", "bob", 2.5)]).expect(rows=[("12:01", 2)], watermark="12:20")
    with pytest.raises(NotAsExpected) as caught:
        wrong.run(spark="3.5")
    batches = caught.value.result.observation.steps[1].batches
    assert [row[1] for batch in batches for row in batch.rows] == [1]
    assert "step 2 (acme_counts.build.yaml)" in str(caught.value)
