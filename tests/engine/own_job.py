"""A job of a user's own, with a UDF of a named function in another module, which Python workers must import."""

import textwrap

from conformance.suite import discovery
from harness.runtimes.own_code import OwnCode
from harness.scheduling.cell_run import CellTask, Limits
from harness.scheduling.scheduler import Scheduler
from tests.engine.remembering import Remembering

COUNTING = """
from pyspark.sql.functions import window

def f(spark, a):
    return a.withWatermark("at", "5 minutes").groupBy(window("at", "10 minutes")).count()
"""
COUNTED = "at,v\n" + "".join(f"2026-03-01 12:{minute}:00,1\n" for minute in range(10, 50, 5))
"""Rows of its stream."""
FILES = {
    "src/acme_names/text.py": """
        def shout(text):
            return text.upper()

        def fail(text):
            return {}[text]
        """,
    "src/acme_job.py": """
        from pyspark.sql.functions import udf
        from acme_names.text import fail, shout

        def loud(spark, orders, clicks):
            return orders.select(udf(shout)("who").alias("who")).union(clicks.select(udf(shout)("who")))

        def failing(spark, orders, clicks):
            return orders.select(udf(fail)("who").alias("who")).union(clicks)
        """,
    "src/acme_program.py": """
        import sys
        from pyspark.sql import SparkSession
        from pyspark.sql.functions import col, udf
        from acme_names.text import shout

        spark = SparkSession.builder.getOrCreate()
        orders = spark.readStream.schema("who STRING").json("/nowhere/orders")
        clicks = spark.readStream.format("kafka").option("subscribe", "clicks").load()
        names = orders.union(clicks.select(col("value").cast("string")))
        names.createTempView("names")
        spark.sql("SELECT * FROM names").writeStream.format("console").start()
        mark = sys.argv[1]
        query = names.select(udf(lambda text: shout(text) + mark)("who")).writeStream.start("/nowhere", checkpointLocation="/nowhere")
        query.awaitTermination()
        spark.stop()
        """,
    "cases/program.yaml": """
        title: x
        streams: {orders: who STRING, clicks: value STRING}
        query: {call: {program: acme_program.py, arguments: ["!"], query: 2}, with: [orders, clicks]}
        steps: [{add: {orders: [[ada]], clicks: [[bob]]}}, {restart: graceful}, {add: {orders: [[cy]], clicks: [[dan]]}}]
        """,
    "cases/loud.yaml": """
        title: x
        streams: {orders: who STRING, clicks: who STRING}
        query: {call: "acme_job:loud", with: [orders, clicks]}
        steps: [{add: {orders: [[ada]], clicks: [[bob]]}}]
        """,
    "cases/failing.yaml": """
        title: x
        streams: {orders: who STRING, clicks: who STRING}
        query: {call: "acme_job:failing", with: [orders, clicks]}
        steps: [{add: {orders: [[ada]], clicks: [[bob]]}}]
        """,
}


def own_job(folder):
    """Where the job is, and the cases that call it."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    loaded = discovery.load([folder / "cases"])
    loaded.raise_for_problems()
    return OwnCode.at([folder / "src"]), loaded.cases


def check_own_job(runtime, target, cases):
    """The UDF gives its rows, and its mistake is named, wherever the runtime runs it."""
    listening = Remembering()
    scheduler = Scheduler(runtime, Limits(jobs=1, step_timeout=600.0), listening, allow_code=True)
    scheduler.run([CellTask(case, (target,)) for case in cases])
    (batch,) = listening.seen["loud"].steps[0].batches
    assert sorted(batch.rows) == [("ADA",), ("BOB",)]
    assert listening.seen["program"].error is None, listening.seen["program"].error
    first, _, later = listening.seen["program"].steps
    rows = [row for step in (first, later) for batch in step.batches for row in batch.rows]
    assert sorted(rows) == [("ADA!",), ("BOB!",), ("CY!",), ("DAN!",)]
    mistake = listening.seen["failing"].own_code_error
    assert mistake is not None
    assert (mistake.raised, mistake.at, mistake.during) == ("KeyError('ada')", "acme_names/text.py:6", "in a UDF")
