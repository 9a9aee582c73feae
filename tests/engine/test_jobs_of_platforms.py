"""`conformance check` of what platforms start: notebooks, scripts of Glue, pipelines; the verdict is that on the function."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.engine.test_programs import CLICKS, FUNCTION, ORDERS, SAMPLES, check
from tests.engine.typed import conformance
from tests.support.effort import full_run_only


def _verdict(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if key != "case"}


NOTEBOOK = """# Databricks notebook source
# MAGIC %run ./functions

# COMMAND ----------

# MAGIC %sql
# MAGIC CREATE OR REPLACE TEMP VIEW ${minutes} AS SELECT '10 minutes' AS delay

# COMMAND ----------

dbutils.widgets.text("minutes", "delays")
"""
IN_A_NOTEBOOK = """
assert sqlContext.table(dbutils.widgets.get("minutes")).count() == sc.parallelize([1]).count()
orders = spark.readStream.schema("order_time TIMESTAMP, who STRING, amount BIGINT").json("s3a://in/orders/")
records = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "kafka:9092").option("subscribe", "clicks").load()
parsed = F.from_json(F.col("value").cast("string"), "click_time TIMESTAMP, who STRING, page STRING")
clicks = records.select(parsed.alias("click")).select("click.*")
dbutils.fs.put("/mnt/mine/note.txt", dbutils.secrets.get("kafka", "key"))
build(spark, orders, clicks).writeStream.option("checkpointLocation", "/mnt/mine/checkpoint").toTable("sums")
"""

OF_GLUE = """
import sys
from awsglue.context import GlueContext
from awsglue.job import Job
from awsglue.utils import getResolvedOptions
from pyspark.conf import SparkConf
from pyspark.context import SparkContext
from pyspark.sql import functions as F
from functions import build

args = getResolvedOptions(sys.argv, ["JOB_NAME", "into"])
context = GlueContext(SparkContext(conf=SparkConf().set("spark.sql.shuffle.partitions", "64")))
job = Job(context)
job.init(args["JOB_NAME"], args)
schema = "order_time TIMESTAMP, who STRING, amount BIGINT"
of_orders = {"streamARN": "arn:aws:kinesis:us-east-1:1:stream/orders", "classification": "json", "schema": schema}
orders = context.create_data_frame.from_options(connection_type="kinesis", connection_options=of_orders)
records = context.create_data_frame.from_options("kafka", {"connectionName": "hub", "topicName": "clicks"})
parsed = F.from_json(F.col("value").cast("string"), "click_time TIMESTAMP, who STRING, page STRING")
clicks = records.select(parsed.alias("click")).select("click.*")


def batch(frame, number):
    frame.write.parquet(args["into"])


of_batches = {"windowSize": "100 seconds", "checkpointLocation": args["into"] + "/checkpoint"}
context.forEachBatch(frame=build(context.spark_session, orders, clicks), batch_function=batch, options=of_batches)
job.commit()
"""


@full_run_only
def test_a_script_of_glue_gets_the_verdict_of_the_function(tmp_path: Path) -> None:
    files = {"same.py": FUNCTION, "functions.py": FUNCTION, "glue.py": OF_GLUE}
    for name, text in {**files, "orders.csv": ORDERS, "clicks.csv": CLICKS}.items():
        (tmp_path / name).write_text(text)
    lacking = check(tmp_path, "glue.py", *SAMPLES, "--", "--JOB_NAME", "daily")
    assert lacking.returncode == 2
    assert "end the command with -- --into VALUE; it is asked for at glue.py:11" in " ".join(lacking.stderr.split())
    function = json.loads(check(tmp_path, "same:build", *SAMPLES).stdout)
    script = check(
        tmp_path, "glue.py", *SAMPLES, "-o", "of-glue", "--", "--JOB_NAME", "daily", "--into", str(tmp_path / "s3")
    )
    verdict = _verdict(json.loads(script.stdout))
    of_the_sink = "the function of foreachBatch at glue.py:28 is not called"
    verdict["notTried"] = [what for what in verdict["notTried"] if not what.startswith(of_the_sink)]
    assert verdict == _verdict(function), script.stderr
    assert not (tmp_path / "s3").exists()


@full_run_only
def test_a_notebook_exported_or_of_jupyter_gets_the_verdict_of_the_function(tmp_path: Path) -> None:
    cells = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": []}
    for text in (
        "%run ./functions",
        "%%sql\nCREATE TEMP VIEW delays AS SELECT 1",
        'dbutils.widgets.text("minutes", "delays")' + IN_A_NOTEBOOK,
    ):
        cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": text}
        cells["cells"].append(cell)
    exported = NOTEBOOK + IN_A_NOTEBOOK
    files = {"same.py": FUNCTION, "functions.py": FUNCTION, "job.py": exported, "job.ipynb": json.dumps(cells)}
    for name, text in {**files, "orders.csv": ORDERS, "clicks.csv": CLICKS}.items():
        (tmp_path / name).write_text(text)
    lacking = check(tmp_path, "job.ipynb", *SAMPLES)
    assert lacking.returncode == 2
    assert "--set kafka/key=VALUE" in lacking.stderr
    assert "it is asked for at job.ipynb, cell 3:7" in lacking.stderr
    function = json.loads(check(tmp_path, "same:build", *SAMPLES).stdout)
    given = ("--set", "kafka/key=made up", "--set", "minutes=delays")
    for job in ("job.py", "job.ipynb"):
        notebook = check(tmp_path, job, *SAMPLES, *given, "--output", "of-" + job)
        assert _verdict(json.loads(notebook.stdout)) == _verdict(function), notebook.stderr
    again = conformance(tmp_path, "run", "of-job.ipynb", "--spark", "3.5", "--allow-code")
    assert again.returncode == 0, again.stdout + again.stderr
    assert not (tmp_path / "mnt").exists()


OF_A_PIPELINE = """
import dlt
from pyspark.sql import functions as F
from functions import build


@dlt.view
def clicks():
    records = spark.readStream.format("kafka").option("subscribe", "clicks").load()
    parsed = F.from_json(F.col("value").cast("string"), "click_time TIMESTAMP, who STRING, page STRING")
    return records.select(parsed.alias("click")).select("click.*")


@dlt.table
@dlt.expect("known", "who IS NOT NULL")
def sums():
    orders = spark.readStream.schema("order_time TIMESTAMP, who STRING, amount BIGINT").json("s3a://in/orders/")
    return build(spark, orders, dlt.read_stream("clicks"))


@dlt.table
def totals():
    return dlt.read("sums").groupBy().count()
"""


@full_run_only
def test_a_flow_of_a_pipeline_gets_the_verdict_of_the_function(tmp_path: Path) -> None:
    files = {"same.py": FUNCTION, "functions.py": FUNCTION, "flows.py": OF_A_PIPELINE}
    for name, text in {**files, "orders.csv": ORDERS, "clicks.csv": CLICKS}.items():
        (tmp_path / name).write_text(text)
    function = json.loads(check(tmp_path, "same:build", *SAMPLES).stdout)
    pipeline = check(tmp_path, "flows.py", *SAMPLES, "-o", "of-pipeline")
    verdict = _verdict(json.loads(re.sub(r',\s*"trigger availableNow"', "", pipeline.stdout)))
    of_flows = [what for what in verdict["notTried"] if "the flow sums " in what or what.endswith(": totals")]
    assert len(of_flows) == 4
    assert len(verdict["byRunner"]) == 2
    verdict["byRunner"] = []
    verdict["notTried"] = [what for what in verdict["notTried"] if what not in of_flows]
    assert verdict == _verdict(function), pipeline.stderr


PIPELINE = """
name: sums
storage: file:///storage
libraries: [{glob: {include: flows/**}}]
"""


@full_run_only
def test_the_folder_of_a_pipeline_gets_the_verdicts_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "flows").mkdir()
    streaming = "CREATE STREAMING TABLE paid AS SELECT * FROM STREAM orders WHERE amount > 0"
    files = {"spark-pipeline.yml": PIPELINE, "flows/functions.py": FUNCTION, "flows/flows.py": OF_A_PIPELINE}
    for name, text in {**files, "flows/paid.sql": streaming, "orders.csv": ORDERS, "clicks.csv": CLICKS}.items():
        (tmp_path / name).write_text(text)
    whole = json.loads(check(tmp_path, ".", *SAMPLES, "-o", "whole").stdout)
    alone = json.loads(check(tmp_path, "flows/flows.py", *SAMPLES, "-o", "alone").stdout)
    assert [Path(query["case"]).name for query in whole["queries"]] == ["flows.flows.yaml", "paid-paid.yaml"]
    assert _verdict(whole["queries"][0]) == _verdict(alone)


AUTO_LOADER = """# Databricks notebook source
from IPython.display import clear_output
from pyspark.sql.functions import window
spark.sql("USE CATALOG main")

# COMMAND ----------
files = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
raw = files.schema("at TIMESTAMP, who STRING, amount INT").load("/raw/paid")
raw.display()
sums = raw.withWatermark("at", "10 minutes").groupBy("who", window("at", "10 minutes")).sum("amount")
sums.writeStream.option("checkpointLocation", "/chk").trigger(availableNow=True).table("gold.sums")

# COMMAND ----------
# MAGIC %sql
# MAGIC SELECT * FROM gold.sums
"""
DLT = """# Databricks notebook source
import dlt
from pyspark.sql.functions import window

@dlt.table
@dlt.expect_or_drop("paid", "total > 4")
def sums():
    paid = dlt.read_stream("paid").withWatermark("at", "10 minutes")
    return paid.groupBy("who", window("at", "10 minutes")).agg({"amount": "sum"}).withColumnRenamed("sum(amount)", "total")
"""
DLT_IN_SQL = """-- Databricks notebook source
-- MAGIC %md the same in SQL
-- COMMAND ----------
CREATE OR REFRESH STREAMING TABLE sums (CONSTRAINT paid EXPECT (total > 4) ON VIOLATION DROP ROW) AS
SELECT who, window(at, '10 minutes') AS slot, sum(amount) AS total
FROM STREAM read_files('/Volumes/raw/paid', format => 'csv') WATERMARK at DELAY OF INTERVAL 10 MINUTES
GROUP BY who, window(at, '10 minutes')
"""
PAID = """at,who,amount
2026-03-01 10:00:00,ada,3
2026-03-01 10:04:00,bob,9
2026-03-01 10:31:00,ada,5
2026-03-01 10:45:00,bob,2
"""


@full_run_only
@pytest.mark.parametrize(
    ("name", "text", "out", "left"),
    [
        ("loader.py", AUTO_LOADER, 2, "loader.py, cell 3:15 reads what a query has not written in a trial"),
        ("flows.py", DLT, 1, "but those that drop rows do, as a filter does"),
        ("flows.sql", DLT_IN_SQL, 1, "but those that drop rows do, as a filter does"),
    ],
)
def test_notebooks_as_databricks_writes_them_are_tried(
    tmp_path: Path, name: str, text: str, out: int, left: str
) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "paid.csv").write_text(PAID)
    versions = ("--from", "4.1", "--to", "4.3") if name.endswith(".sql") else ("--from", "3.5", "--to", "4.3")
    done = conformance(
        tmp_path, "check", name, *versions, "--batches", "2", "--no-repeat-rows", "--sample", "paid=paid.csv"
    )
    said = " ".join(done.stdout.split())
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"4 rows of the sample in; 2 in state at its end; {out} out" in said
    assert left in said
    by_runner = "the flow sums by Spark's runner of pipelines on 4.3.0: same rows as a query has, "
    assert (by_runner in said) == name.startswith("flows")
    assert (by_runner.replace("4.3.0", "4.1.4") in said) == name.endswith(".sql")


BY_RUNNER = {
    "spark-pipeline.yml": "name: paid\nstorage: file:///storage\ndatabase: shop\nlibraries: [{glob: {include: flows/**}}]",
    "flows/raw.py": """
from pyspark import pipelines as dp

@dp.table
def raw():
    return spark.readStream.schema("at TIMESTAMP, who STRING, amount BIGINT").json("s3a://in/paid")
""",
    "flows/sums.sql": """
CREATE STREAMING TABLE sums AS SELECT who, window(at, '10 minutes') AS slot, sum(amount) AS total
FROM STREAM raw WATERMARK at DELAY OF INTERVAL 10 MINUTES GROUP BY who, window(at, '10 minutes')
""",
    "paid.csv": PAID,
}


LATE = """
from pyspark import pipelines as dp

@dp.table
def late():
    return spark.readStream.table("raw").withWatermark("at", "10 minutes").dropDuplicates(["at", "who"])
"""


@full_run_only
def test_sparks_own_runner_runs_a_pipeline_too_or_refuses_it(tmp_path: Path) -> None:
    """That of 4.1 gives a file no ``spark``."""
    (tmp_path / "flows").mkdir()
    for name, text in BY_RUNNER.items():
        (tmp_path / name).write_text(text)
    samples = [part for name in ("paid", "raw") for part in ("--sample", f"{name}=paid.csv")]
    done = conformance(tmp_path, "check", ".", "--from", "4.1", "--to", "4.3", "--accept-lost", *samples)
    said = " ".join(done.stdout.split())
    assert done.returncode == 0, done.stdout + done.stderr
    for flow, rows in (("raw", 5), ("sums", 4)):
        runner = f"the flow {flow} by Spark's runner of pipelines on"
        assert f"– {runner} 4.1.4: refused in run 1: the flow raw: name 'spark' is not defined" in said
        assert f"● {runner} 4.3.0: same rows as a query has, {rows}" in said
    with (tmp_path / "flows" / "late.py").open("w") as late:
        late.write(LATE)
    refused = conformance(tmp_path, "check", ".", "--from", "3.5", "--to", "4.3", "--accept-lost", *samples)
    said = " ".join(refused.stdout.split())
    # 3.5 does not know the clause WATERMARK.
    assert refused.returncode == 1, refused.stdout + refused.stderr
    assert "– the flow raw by Spark's runner of pipelines on 3.5.9: not tried: its pyspark has no such runner" in said
    what = "refused in run 1: the flow late: [TABLE_OR_VIEW_NOT_FOUND]"
    assert f"– the flow raw by Spark's runner of pipelines on 4.3.0: {what}" in said
