"""Days, hours and text with times in it: all depend on the time zone of the session."""

from pyspark.sql.functions import avg as average
from pyspark.sql.functions import col, expr, to_timestamp, window


def by_day(spark, readings):
    """A calendar day of the session, across the change to summer time."""
    by = readings.withWatermark("at", "2 hours").groupBy(window("at", "1 day"), expr("date(at)").alias("day"))
    return by.agg(average("celsius").alias("celsius"))


def from_text(spark, readings):
    """The event time is text without a zone."""
    timed = readings.withColumn("t", to_timestamp("local", "yyyy-MM-dd HH:mm:ss")).withWatermark("t", "2 hours")
    return timed.groupBy(window("t", "1 hour"), "sensor").agg(average(col("celsius").cast("decimal(6,2)")).alias("c"))


def without_zone(spark, readings):
    """Times without a zone in the state."""
    by = readings.withWatermark("at", "2 hours").groupBy(window("at", "6 hours"), "sensor")
    return by.agg(expr("max(CAST(local AS TIMESTAMP_NTZ))").alias("latest"), expr("min(CAST(local AS TIMESTAMP))"))


def stamped(spark, readings):
    """With the time at which it ran."""
    return readings.select("sensor", "celsius", expr("current_timestamp()").alias("read"))
