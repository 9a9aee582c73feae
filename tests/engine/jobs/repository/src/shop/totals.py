"""Aggregations over text, decimals, nested structs and arrays."""

from pyspark.sql.functions import (
    approx_count_distinct,
    avg,
    col,
    collect_set,
    count,
    expr,
    sort_array,
    struct,
    window,
)
from pyspark.sql.functions import max as highest
from pyspark.sql.functions import min as lowest
from pyspark.sql.functions import sum as total


def per_shop(orders, length="10 minutes", slide=None):
    return orders.withWatermark("ts", "10 minutes").groupBy(window("ts", length, slide), "shop")


def revenue_of_text(spark, orders):
    """Cents came as text, as they do from CSV."""
    return per_shop(orders).agg(total(expr("cents * qty")).alias("cents"))


def revenue_in_decimals(spark, orders):
    return per_shop(orders).agg(total(expr("price * qty")).alias("revenue"), avg("price").alias("average"))


def share_in_decimals(spark, orders):
    price = total("price")
    return per_shop(orders).agg((price / total("qty")).alias("each"), expr("sum(price * discount / 100)").alias("lost"))


def by_code(spark, orders):
    """A key that is text or, if it is missing, a number."""
    keyed = orders.withWatermark("ts", "10 minutes").withColumn("code", expr("coalesce(code, 0)"))
    return keyed.groupBy(window("ts", "10 minutes"), "code").agg(total("qty").alias("qty"))


def by_city(spark, orders):
    """Keys and values in nested structs."""
    by = orders.withWatermark("ts", "10 minutes").groupBy(window("ts", "20 minutes"), "customer.address.city")
    dearest = highest(struct("price", "customer")).alias("dearest")
    return by.agg(dearest, count("*").alias("orders")).select(
        "city", "dearest.customer.name", "dearest.price", "orders"
    )


def by_customer(spark, orders):
    """A struct is the key."""
    return orders.withWatermark("ts", "10 minutes").groupBy(window("ts", "1 hour"), "customer").count()


def names(spark, orders):
    everybody = sort_array(collect_set("who")).alias("everybody")
    return per_shop(orders).agg(lowest("who"), highest("code"), everybody, approx_count_distinct("who").alias("about"))


def sliding(spark, orders):
    return per_shop(orders, "20 minutes", "10 minutes").agg(total("qty").alias("qty"), highest("price").alias("price"))


def ever(spark, orders):
    """All of time, for complete mode."""
    return orders.groupBy("shop").agg(count("*").alias("orders"), total("price").alias("revenue"))


def paid_back(spark, orders):
    """A discount of nothing divides by zero."""
    ratio = expr("sum(qty) / min(discount)").alias("ratio")
    return per_shop(orders).agg(ratio)


def numbers_in_text(spark, lines):
    """Somebody typed n/a."""
    by = lines.withWatermark("logged", "10 minutes").groupBy(window("logged", "10 minutes"))
    return by.agg(total(col("text").cast("int")).alias("sum"))


def windows_of_windows(spark, orders):
    """Ten minutes first, then an hour of those."""
    short = per_shop(orders).agg(total("qty").alias("qty"))
    return short.groupBy(window("window", "1 hour")).agg(total("qty").alias("qty"), highest("qty").alias("most"))
