"""Reports in SQL."""

from pathlib import Path


def _sql(name):
    return Path(__file__).with_name(f"{name}.sql").read_text()


def _views(**frames):
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)


def best_customers(spark, orders):
    _views(orders=orders.withWatermark("ts", "10 minutes"))
    return spark.sql(_sql("best_customers"))


def cash_and_card(spark, payments):
    """A filter in an aggregate, and a ratio."""
    _views(payments=payments.withWatermark("paid_at", "10 minutes"))
    return spark.sql(_sql("cash_and_card"))


def activity(spark, orders, clicks):
    """A union of two streams, in CTEs."""
    _views(orders=orders.withWatermark("ts", "10 minutes"), clicks=clicks.withWatermark("click_time", "10 minutes"))
    return spark.sql(_sql("activity"))
