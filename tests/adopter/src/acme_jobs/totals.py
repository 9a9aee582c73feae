"""Totals by user and ten minutes: a UDF, and SQL text."""

from pathlib import Path

from pyspark.sql import functions as F

from acme_jobs.names import shout


def build(spark, orders):
    timed = orders.withWatermark("order_time", "10 minutes")
    loud = timed.select("order_time", F.udf(shout)("who").alias("who"), "amount")
    loud.createOrReplaceTempView("orders_with_loud_names")
    return spark.sql(Path(__file__).with_name("totals.sql").read_text(encoding="utf-8"))
