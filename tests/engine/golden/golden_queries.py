"""The queries of Spark's tests that resume its golden checkpoints, as functions of a user. It is imported by the engine's Python.

A memory source of Scala's primitive types has columns that are NOT NULL, and the state keeps that: so have these.
"""

from pyspark.sql import functions as F

SOON = "rightId = leftId AND rightTime >= leftTime AND rightTime <= leftTime + interval 5 seconds"


def required(frame):
    """The frame, with numbers that are NOT NULL."""
    numbers = {name: F.coalesce(name, F.lit(0).cast(kind)) for name, kind in frame.dtypes if kind in ("int", "bigint")}
    return frame.select(*(numbers.get(name, F.col(name)).alias(name) for name in frame.columns))


def counts(spark, values):
    return required(values).groupBy("value").agg(F.count("*"))


def windows(spark, values):
    at = required(values).withColumn("eventTime", F.expr("timestamp_seconds(value)"))
    counted = at.withWatermark("eventTime", "10 seconds").groupBy(F.window("eventTime", "5 seconds").alias("window"))
    return counted.agg(F.count("*").alias("count")).selectExpr("CAST(window.start AS BIGINT)", "count")


def union(spark, first, second):
    def late(values, delay):
        return (
            required(values)
            .withColumn("eventTime", F.expr("timestamp_seconds(value)"))
            .withWatermark("eventTime", delay)
        )

    return late(first, "10 seconds").union(late(second, "15 seconds")).selectExpr("CAST(eventTime AS INT)")


def _joined(left, right, condition=SOON, how="inner", *more):
    left = required(left).selectExpr(
        "a AS leftId", "timestamp_seconds(b) AS leftTime", *(f"{each} AS left{each}" for each in more)
    )
    right = required(right).where("a % 2 = 0")
    right = right.selectExpr(
        "a AS rightId", "timestamp_seconds(b) AS rightTime", *(f"{each} AS right{each}" for each in more)
    )
    both = left.withWatermark("leftTime", "5 seconds").join(
        right.withWatermark("rightTime", "5 seconds"), F.expr(condition), how
    )
    sides = (
        [f"{side}Id", f"CAST({side}Time AS INT)", *(f"{side}{each}" for each in more)] for side in ("left", "right")
    )
    return both.selectExpr(*(column for side in sides for column in side))


def inner(spark, left, right):
    return _joined(left, right)


def outer(spark, left, right):
    return _joined(left, right, SOON, "leftOuter")


def inner_with_another_key(spark, left, right):
    return _joined(left, right, f"leftName = rightName AND {SOON}", "inner", "Name")


def inner_with_another_value(spark, left, right):
    return _joined(left, right, SOON, "inner", "Name")


def _keyed(values):
    return required(values).selectExpr("value AS key1", "value * 2 AS key2", "value * 3 AS value")


def counted_keys_repartitioned(spark, values):
    return _keyed(values).repartition("key1").groupBy("key1", "key2").agg(F.count("*"))


def counted_keys_in_one_partition(spark, values):
    spark.conf.set("spark.sql.shuffle.partitions", 1)
    return counted_keys_repartitioned(spark, values)


def distinct_a(spark, rows):
    return required(rows).withColumnRenamed("a", "_1").dropDuplicates(["_1"])


def sessions(spark, rows):
    at = required(rows).withColumn("eventTime", F.col("c").cast("timestamp")).withWatermark("eventTime", "30 seconds")
    events = at.selectExpr("explode(split(a, ' ')) AS sessionId", "b AS userId", "eventTime").repartition("userId")
    session = F.session_window("eventTime", "10 seconds").alias("session")
    counted = events.groupBy(session, "sessionId", "userId").agg(F.count("*").alias("numEvents"))
    start, end = "CAST(session.start AS LONG)", "CAST(session.end AS LONG)"
    return counted.selectExpr("sessionId", "userId", f"{start} AS s", f"{end} AS e", "numEvents")
