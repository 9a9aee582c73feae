"""Queries that are one operator over a stream, and a program that starts those that its arguments describe."""

import json
import sys

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, count, expr, session_window, window
from pyspark.sql.streaming.state import GroupStateTimeout


def timed(rows, time, delay, where):
    """The rows that ``where`` keeps, with the event time ``t``, whose expression may be wrong of some rows."""
    return rows.where(where).select(expr(time).alias("t"), "k", "n").withWatermark("t", delay)


def windows(spark, rows, **how):
    # Python has no datetime for a year beyond 9999.
    counted = timed(rows, **how).groupBy(window("t", "10 minutes"), "k").agg(count("*").alias("rows"))
    return counted.select(col("window.start").cast("string").alias("start"), "k", "rows")


def sessions(spark, rows, **how):
    counted = timed(rows, **how).groupBy(session_window("t", "5 minutes"), "k").agg(count("*").alias("rows"))
    return counted.select(col("session_window.start").cast("string").alias("start"), "k", "rows")


def windows_of_windows(spark, rows, **how):
    counted = timed(rows, **how).groupBy(window("t", "5 minutes"), "k").agg(count("*").alias("rows"))
    hourly = counted.groupBy(window("window", "20 minutes")).agg(expr("sum(rows)").alias("rows"))
    return hourly.select(col("window.start").cast("string").alias("start"), "rows")


def sql(spark, rows, **how):
    timed(rows, **how).createOrReplaceTempView("timed_rows")
    return spark.sql(
        "SELECT CAST(window.start AS STRING) AS start, max(n) AS latest FROM timed_rows GROUP BY window(t, '15 minutes', '5 minutes')"
    )


def once(spark, rows, **how):
    return timed(rows, **how).dropDuplicates(["k", "t"]).select("k", "n")


def once_within(spark, rows, **how):
    return timed(rows, **how).dropDuplicatesWithinWatermark(["n"]).select("k", "n")


def once_in_windows(spark, rows, **how):
    only = timed(rows, **how).dropDuplicates(["n", "t"])
    counted = only.groupBy(window("t", "10 minutes"), "k").agg(count("*").alias("rows"))
    return counted.select(col("window.start").cast("string").alias("start"), "k", "rows")


def running(spark, rows, **how):
    """How many rows each key has had, forgotten after an hour."""

    def add(key, frames, state):
        if state.hasTimedOut:
            state.remove()
            return
        seen = (state.get[0] if state.exists else 0) + sum(len(frame) for frame in frames)
        state.update((seen,))
        state.setTimeoutTimestamp(state.getCurrentWatermarkMs() + 3_600_000)
        yield pd.DataFrame({"k": [key[0]], "rows": [seen]})

    types = "k STRING, rows BIGINT", "rows BIGINT"
    return (
        timed(rows, **how)
        .groupBy("k")
        .applyInPandasWithState(add, *types, "append", GroupStateTimeout.EventTimeTimeout)
    )


def both(spark, rows, others, **how):
    """A union of two streams."""
    together = timed(rows, **how).unionByName(timed(others, **how))
    counted = together.groupBy(window("t", "10 minutes"), "k").agg(count("*").alias("rows"))
    return counted.select(col("window.start").cast("string").alias("start"), "k", "rows")


def joined(kind):
    def join(spark, rows, others, **how):
        left, right = timed(rows, **how).alias("a"), timed(others, **how).alias("b")
        soon = expr("a.n = b.n AND b.t BETWEEN a.t - INTERVAL 5 MINUTES AND a.t + INTERVAL 5 MINUTES")
        together = left.join(right, soon, kind)
        return together.selectExpr("a.k", "a.n") if kind == "leftSemi" else together.selectExpr("a.n", "b.n AS other")

    return join


inner, left_outer, full_outer, left_semi = map(joined, ("inner", "leftOuter", "fullOuter", "leftSemi"))


def main(*queries):
    """Start each query: ``{"operator": "windows", "streams": {"readings": DDL}, "how": {…}}``."""
    spark = SparkSession.builder.getOrCreate()
    started = []
    for query in map(json.loads, queries):
        streams = [spark.readStream.schema(ddl).json(f"/shop/{name}") for name, ddl in query["streams"].items()]
        rows = globals()[query["operator"]](spark, *streams, **query["how"])
        place = f"/shop/out/{min(query['streams'])}"
        started.append(rows.writeStream.option("checkpointLocation", f"{place}/_checkpoint").start(place))
    for query in started:
        query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
