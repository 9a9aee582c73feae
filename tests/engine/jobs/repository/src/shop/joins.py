"""Joins of two and three streams."""

from pyspark.sql.functions import expr


def marked(orders, payments):
    return orders.withWatermark("ts", "10 minutes"), payments.withWatermark("paid_at", "10 minutes")


SOON = "paid_at BETWEEN ts AND ts + INTERVAL 15 MINUTES"


def _renamed(payments):
    return payments.withColumnRenamed("order_id", "of")


def paid_orders(spark, orders, payments):
    """An inner join on a number, with a range of time."""
    left, right = marked(orders, _renamed(payments))
    return left.join(right, expr(f"order_id = of AND {SOON}")).select("order_id", "amount", "price")


def unpaid_orders(spark, orders, payments):
    """A left outer join; the side without a match comes when the watermark has passed it."""
    left, right = marked(orders, _renamed(payments))
    dear = right.where("amount > 2")
    return left.join(dear, expr(f"order_id = of AND {SOON}"), "leftOuter").select("order_id", "ts", "amount")


def either(spark, orders, payments):
    left, right = marked(orders, _renamed(payments.where("method = 'card'")))
    return left.join(right, expr(f"order_id = of AND {SOON}"), "fullOuter").select("order_id", "pay_id")


def who_clicked(spark, orders, clicks):
    """A left semi join on text."""
    left = orders.withWatermark("ts", "10 minutes").alias("o")
    right = clicks.withWatermark("click_time", "10 minutes").alias("c")
    soon = expr("o.who = c.who AND click_time BETWEEN ts - INTERVAL 5 MINUTES AND ts")
    return left.join(right, soon, "leftSemi").select("order_id", "o.who")


def paid_by_text(spark, orders, payments):
    """A number on one side, text on the other."""
    left, right = marked(orders, payments.drop("order_id"))
    return left.join(right, expr(f"order_id = order_text AND {SOON}")).select("order_id", "amount")


def three_streams(spark, orders, payments, clicks):
    """What was clicked, ordered and paid."""
    left, right = marked(orders, _renamed(payments))
    seen = clicks.withWatermark("click_time", "10 minutes").selectExpr("click_time", "page", "order_id AS clicked")
    both = left.join(right, expr(f"order_id = of AND {SOON}"))
    near = expr("order_id = clicked AND click_time BETWEEN ts - INTERVAL 10 MINUTES AND ts")
    return both.join(seen, near).select("order_id", "page", "amount")


def three_streams_outer(spark, orders, payments, clicks):
    """The same, with orders that nobody paid for or clicked at."""
    left, right = marked(orders, _renamed(payments.where("method = 'card'")))
    seen = clicks.withWatermark("click_time", "10 minutes").selectExpr("click_time", "page", "order_id AS clicked")
    both = left.join(right, expr(f"order_id = of AND {SOON}"), "leftOuter")
    near = expr("order_id = clicked AND click_time BETWEEN ts - INTERVAL 10 MINUTES AND ts")
    return both.join(seen, near, "leftOuter").select("order_id", "page", "amount")
