"""Orders of the last ten minutes, each once, into a Delta table."""


def build(spark, orders):
    return orders.withWatermark("order_time", "10 minutes").dropDuplicatesWithinWatermark(["who"])


def append_to_table(frame, batch_id):
    frame.write.format("delta").mode("append").save("table")
