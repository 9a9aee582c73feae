"""Every click, with the order of the five minutes after it if there is one."""

from pyspark.sql import functions as F


def build(spark, orders, clicks):
    orders = orders.withWatermark("order_time", "10 minutes").alias("o")
    clicks = clicks.withWatermark("click_time", "10 minutes").alias("c")
    soon = F.expr("o.who = c.who AND order_time BETWEEN click_time AND click_time + INTERVAL 5 MINUTES")
    return clicks.join(orders, soon, "leftOuter").select("c.who", "page", "amount")
