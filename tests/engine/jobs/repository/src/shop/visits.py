"""Sessions and functions that keep state of their own."""

import pandas as pd
from pyspark.sql.functions import count, expr, session_window
from pyspark.sql.functions import sum as total
from pyspark.sql.streaming.state import GroupStateTimeout


def visits(spark, clicks):
    by = clicks.withWatermark("click_time", "10 minutes").groupBy(session_window("click_time", "5 minutes"), "who")
    return by.agg(count("*").alias("clicks"))


def visits_with_own_gap(spark, clicks):
    gap = expr("CASE WHEN page = 'sale' THEN '10 minutes' ELSE '3 minutes' END")
    by = clicks.withWatermark("click_time", "10 minutes").groupBy(session_window("click_time", gap), "who")
    return by.agg(count("*").alias("clicks"), expr("collect_set(page)[0]").alias("a_page"))


def spendings(spark, orders):
    by = orders.withWatermark("ts", "10 minutes").groupBy(session_window("ts", "8 minutes"), "shop")
    return by.agg(total("price").alias("revenue"), total(expr("cents * qty")).alias("cents"))


def running(spark, clicks):
    """A running count by customer; never forgotten."""

    def add(key, frames, state):
        seen = state.get[0] if state.exists else 0
        seen += sum(len(frame) for frame in frames)
        state.update((seen,))
        yield pd.DataFrame({"who": [key[0]], "clicks": [seen]})

    return clicks.groupBy("who").applyInPandasWithState(
        add, "who STRING, clicks BIGINT", "clicks BIGINT", "update", GroupStateTimeout.NoTimeout
    )


def gone(spark, clicks):
    """Who has clicked nothing for ten minutes, by event time."""

    def watch(key, frames, state):
        if state.hasTimedOut:
            clicked, pages = state.get
            state.remove()
            yield pd.DataFrame({"who": [key[0]], "clicks": [clicked], "pages": [pages]})
            return
        clicked, pages = state.get if state.exists else (0, "")
        for frame in frames:
            clicked += len(frame)
            pages += "".join(sorted(page[0] for page in frame["page"]))
        state.update((clicked, pages))
        state.setTimeoutTimestamp(state.getCurrentWatermarkMs() + 600_000)

    return (
        clicks.withWatermark("click_time", "10 minutes")
        .groupBy("who")
        .applyInPandasWithState(
            watch,
            "who STRING, clicks BIGINT, pages STRING",
            "clicks BIGINT, pages STRING",
            "append",
            GroupStateTimeout.EventTimeTimeout,
        )
    )
