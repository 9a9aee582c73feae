"""Deduplication."""

from pyspark.sql.functions import sum as total
from pyspark.sql.functions import window


def by_key_and_time(spark, orders):
    return orders.withWatermark("ts", "10 minutes").dropDuplicates(["who", "ts"]).select("who", "ts", "price")


def within_watermark(spark, orders):
    once = orders.withWatermark("ts", "10 minutes").dropDuplicatesWithinWatermark(["who"])
    return once.select("who", "order_id")


def then_windows(spark, orders):
    once = orders.withWatermark("ts", "10 minutes").dropDuplicates(["who", "ts"])
    return once.groupBy(window("ts", "10 minutes"), "shop").agg(total("price").alias("revenue"))


def scanned_once(spark, scans):
    """A key that is computed from text; a scanner sends some twice."""
    keyed = scans.withWatermark("scanned", "10 minutes").selectExpr("scanned", "cents * qty AS paid")
    return keyed.dropDuplicates(["paid", "scanned"])
