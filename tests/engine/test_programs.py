"""`conformance check` of a program, unchanged: the verdict is that on the function, and nothing of the program's own is touched."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

FUNCTION = """
from pyspark.sql import functions as F


def build(spark, orders, clicks):
    orders = orders.withWatermark("order_time", "10 minutes").alias("o")
    clicks = clicks.withWatermark("click_time", "10 minutes").alias("c")
    soon = F.expr("o.who = c.who AND order_time BETWEEN click_time AND click_time + INTERVAL 5 MINUTES")
    bought = clicks.join(orders, soon)
    return bought.groupBy(F.window("order_time", "10 minutes"), "page").agg(F.sum("amount").alias("sum"))
"""
PROGRAM = """
import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from acme_names import shout
from same import build


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--into", required=True)
    into = parser.parse_args().into
    spark = SparkSession.builder.appName("clicked").config("spark.sql.shuffle.partitions", 64).getOrCreate()
    orders = spark.readStream.schema("order_time TIMESTAMP, who STRING, amount BIGINT").json("s3a://in/orders/")
    records = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "kafka:9092").option("subscribe", "clicks").load()
    parsed = F.from_json(F.col("value").cast("string"), "click_time TIMESTAMP, who STRING, page STRING")
    clicks = records.select(parsed.alias("click")).select("click.*")
    sums = build(spark, orders, clicks).writeStream.format("parquet").option("checkpointLocation", into + "/checkpoint")
    first = sums.trigger(processingTime="1 minute").start(into + "/table")

    def write(frame, batch):
        frame.write.mode("append").json(into + "/elsewhere")

    names = orders.select(F.udf(shout)("who").alias("name"))
    names.writeStream.queryName("names").foreachBatch(write).option("checkpointLocation", into + "/other").start()
    spark.streams.awaitAnyTermination()
    spark.stop()


if __name__ == "__main__":
    main()
"""
NAMES = """
def shout(text):
    return text.upper()
"""
ORDERS = """order_time,who,amount
2026-03-01 12:01:00,ada,7
2026-03-01 12:04:00,bob,3
2026-03-01 12:09:00,ada,5
2026-03-01 12:21:00,cy,4
2026-03-01 12:22:00,bob,9
2026-03-01 12:38:00,ada,2
"""
CLICKS = """click_time,who,page
2026-03-01 12:00:00,ada,home
2026-03-01 12:03:00,bob,sale
2026-03-01 12:07:00,ada,sale
2026-03-01 12:20:00,bob,home
2026-03-01 12:37:00,ada,home
2026-03-01 12:40:00,cy,sale
"""
SAMPLES = ("--sample", "orders=orders.csv", "--sample", "clicks=clicks.csv")


def test_a_program_gets_the_verdict_of_the_function_and_keeps_what_it_has(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    for name in ("checkpoint/offsets/0", "table/part-0.parquet", "elsewhere/part-0.json", "other/metadata"):
        (mine / name).parent.mkdir(parents=True, exist_ok=True)
        (mine / name).write_text("of the real job")
    here = tmp_path / "here"
    (here / "jobs").mkdir(parents=True)
    files = {"same.py": FUNCTION, "jobs/job.py": PROGRAM, "jobs/acme_names.py": NAMES, "orders.csv": ORDERS}
    for name, text in {**files, "clicks.csv": CLICKS}.items():
        (here / name).write_text(text)
    before = _digests(tmp_path)

    asked = _check(here, "jobs/job.py", "--", "--into", str(mine))
    assert asked.returncode == 2
    assert "--sample orders=orders.jsonl   # json: order_time timestamp, who string, amount bigint" in asked.stderr
    assert "--sample clicks=clicks.jsonl   # kafka: value (text), or the columns of a JSON object" in asked.stderr

    function = _check(here, "same:build", *SAMPLES, "--output", "of-function")
    program = _check(here, "jobs/job.py", *SAMPLES, "--output", "of-program", "--", "--into", str(mine))
    first, names = json.loads(program.stdout)["queries"]
    assert _verdict(first) == _verdict(json.loads(function.stdout))
    assert (function.returncode, program.returncode) == (1, 1)
    assert "refused" in [checkpoint["met"] for checkpoint in first["checkpoints"]]
    assert (names["rows"], [checkpoint["met"] for checkpoint in names["checkpoints"]]) == ("same", ["resumed"])
    page = (here / "of-program/query-2/verdict.html").read_text()
    line = PROGRAM[: PROGRAM.index("names.writeStream")].count("\n") + 1
    assert f"the function of foreachBatch at job.py:{line} is not called" in page
    written = {path for path in _digests(tmp_path) if path.parts[len(tmp_path.parts)] == "mine"}
    assert {path: _digests(tmp_path)[path] for path in before} == before
    assert written == {path for path in before if path.is_relative_to(mine)}


def _check(folder: Path, job: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("conformance")), "check", job, "--from", "3.5", "--to", "4.3"]
    quick = ["--batches", "2", "--no-silent-streams", "--json"]
    done = subprocess.run([*command, *quick, *options], cwd=folder, capture_output=True, text=True, check=False)
    assert done.stdout or done.returncode == 2, done.stderr
    return done


def _verdict(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if key != "case"}


def _digests(folder: Path) -> dict[Path, str]:
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}
