"""What `conformance check` says of jobs, held against what the two versions do: no reason, workaround or all-clear without its proof."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.targets.targets import Targets
from tests.engine.typed import conformance, contents
from tests.support.effort import full_run_only
from tools.checkpoints import write_checkpoints

JOBS = '''
from pyspark.sql import functions as F

def totals(orders):
    return orders.withWatermark("ts", "10 minutes").groupBy(F.window("ts", "10 minutes"), "shop")


def revenue(spark, orders):
    """From 4.0 on, ANSI mode makes a bigint of a double."""
    return totals(orders).agg(F.sum(F.expr("cents * qty")).alias("sum"))


def reads_another_stream(spark, orders):
    rate = spark.readStream.format("rate").load()
    return rate.withWatermark("timestamp", "10 minutes").groupBy(F.window("timestamp", "10 minutes")).count()


def joined(spark, clicks, orders):
    """That of ``tools.checkpoint_queries``."""
    orders = orders.withWatermark("orders_time", "20 minutes")
    near = "clicks_id = orders_id AND orders_time BETWEEN clicks_time AND clicks_time + INTERVAL 5 MINUTES"
    return clicks.withWatermark("clicks_time", "10 minutes").join(orders, F.expr(near), "leftOuter")


@F.udf("int")
def number(cents):
    """From 4.2 on, Arrow makes an integer of the float; without it, it is null."""
    return float(cents)


def cents(spark, orders):
    return totals(orders).agg(F.sum(number("cents")).alias("cents"))


def own_setting(spark, orders):
    spark.conf.set("spark.sql.execution.pythonUDF.arrow.enabled", "false")
    return totals(orders).agg(F.sum(F.udf(float, "int")("cents")).alias("cents"))


def starts_itself(spark, orders):
    counts = totals(orders).count()
    counts.writeStream.foreachBatch(lambda frame, id: frame.write.mode("append").json("MINE/elsewhere")).start()
    return counts.writeStream.format("parquet").option("checkpointLocation", "MINE/checkpoint").start("MINE/table")
'''
ORDERS = """ts,shop,cents,qty
2024-01-01 12:01:00,a,250,3
2024-01-01 12:04:00,b,1299,1
2024-01-01 12:12:00,a,100,2
2024-01-01 12:35:00,a,75,4
2024-01-01 12:55:00,b,10,1
"""


@pytest.fixture
def check(tmp_path: Path):
    """Runs the command on a function of ``JOBS``; returns its exit code and its JSON."""
    mine = tmp_path / "mine"
    for name in ("checkpoint/offsets/0", "table/part-0.parquet", "elsewhere/part-0.json"):
        (mine / name).parent.mkdir(parents=True, exist_ok=True)
        (mine / name).write_text("of the real job")
    (tmp_path / "jobs.py").write_text(JOBS.replace("MINE", str(mine)))
    (tmp_path / "orders.csv").write_text(ORDERS)
    schema = "orders=ts TIMESTAMP, shop STRING, cents STRING, qty INT"

    def run(function: str) -> tuple[int, dict[str, Any]]:
        sides = ("--from", "3.5", "--to", "4.3", "--sample", "orders=orders.csv", "--schema", schema, "--json")
        done = conformance(tmp_path, "check", f"jobs:{function}", "--code", ".", *sides)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    return run


def test_the_reason_of_a_refusal_is_what_differs_and_a_workaround_is_one_that_worked(check) -> None:
    """It named the key of a join, and a setting with which the bits of a double were read as a long."""
    code, found = check("revenue")
    assert (code, found["rows"]) == (1, "same")
    assert found["columns"] == ["column 3: sum double on 3.5.9, sum bigint on 4.3.0"]
    (refused,) = found["checkpoints"]
    assert refused["because"] == ["state of the aggregation, column sum: double in the checkpoint, bigint wanted"]
    assert refused["workaround"] == "spark.sql.ansi.enabled=false"
    tried = {each["setting"]: set(each["outcomes"]) for each in refused["tried"]}
    assert tried == {
        "spark.sql.ansi.enabled=false": {"resumed"},
        "spark.sql.streaming.stateStore.stateSchemaCheck=false": {"other rows"},
    }


def test_rows_that_only_the_default_of_a_setting_changes_have_that_setting_as_their_cause(check) -> None:
    """The suite knew no reason, and the setting in the code of a job was without effect."""
    code, found = check("cents")
    assert (code, found["answer"]) == (1, "differs")
    assert found["change"]["other_default"] == "spark.sql.execution.pythonUDF.arrow.enabled=false"
    assert "Caused by Arrow, through which" in found["summary"]
    code, found = check("own_setting")
    assert (code, found["answer"], found["change"]) == (0, "same", None)


@full_run_only
def test_a_job_that_does_not_read_its_sample_is_no_answer(check) -> None:
    code, found = check("reads_another_stream")
    # Its checkpoints are not even handed over.
    assert (code, found["rows"], found["checkpoints"]) == (3, "unknown", [])
    assert found["failures"]


def test_a_job_that_starts_its_query_touches_nothing(check, tmp_path: Path) -> None:
    before = contents(tmp_path / "mine")
    code, found = check("starts_itself")
    assert (code, found["checkpoints"]) == (2, [])
    assert all(
        "starts a query itself" in failure["why"] and "jobs.py:" in failure["why"] for failure in found["failures"]
    )
    assert contents(tmp_path / "mine") == before


@full_run_only
def test_a_checkpoint_of_the_users_own_is_resumed_with_what_it_pins(check, tmp_path: Path) -> None:
    write_checkpoints(Targets.load().select(["3.5.9"])[0], ["outer_join-rocksdb"], tmp_path)
    options = ["--from", "3.5", "--to", "4.3", "--code", ".", "--no-silent-streams", "--no-repeat-rows", "--json"]
    for stream in ("clicks", "orders"):
        rows = "".join(f"a,2024-01-01 1{hour}:00:00\n" for hour in range(5))
        (tmp_path / f"{stream}.csv").write_text(f"{stream}_id,{stream}_time\n{rows}")
        options += [
            "--sample",
            f"{stream}={stream}.csv",
            "--schema",
            f"{stream}={stream}_id STRING, {stream}_time TIMESTAMP",
        ]
    done = conformance(tmp_path, "check", "jobs:joined", *options, "--checkpoint", "outer_join-rocksdb/checkpoint")
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    helps = "spark.sql.streaming.stateStore.stateSchemaCheck=false"
    assert (done.returncode, found["answer"], found["checkpoint"]["outcome"]) == (1, "refused", "refused")
    assert found["checkpoint"]["tried"] == [{"setting": helps, "outcome": "resumed", "proven": True}]
    assert "RocksDB" in found["features"]
    assert f"Start it on 4.3.0 with {helps}: tried, " in found["summary"]
