"""`conformance check` of a program, unchanged: the verdict is that on the function, and nothing of the program's own is touched."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from harness.environments import provision
from harness.targets.targets import Targets
from tests.engine.typed import conformance, contents
from tests.support.effort import full_run_only

FUNCTION = """
from pyspark.sql import functions as F


def build(spark, orders, clicks):
    orders = orders.withWatermark("order_time", "10 minutes").alias("o")
    clicks = clicks.withWatermark("click_time", "10 minutes").alias("c")
    soon = F.expr("o.who = c.who AND order_time BETWEEN click_time AND click_time + INTERVAL 5 MINUTES")
    bought = clicks.join(orders, soon)
    return bought.groupBy(F.window("order_time", "10 minutes"), "page").agg(F.sum("amount").alias("sum"))
"""
PROGRAM = """
import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from acme_names import shout
from same import build


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--into", required=True)
    into = parser.parse_args().into
    spark = SparkSession.builder.appName("clicked").config("spark.sql.shuffle.partitions", 64).getOrCreate()
    orders = spark.readStream.schema("order_time TIMESTAMP, who STRING, amount BIGINT").json("s3a://in/orders/")
    records = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "kafka:9092").option("subscribe", "clicks").load()
    parsed = F.from_json(F.col("value").cast("string"), "click_time TIMESTAMP, who STRING, page STRING")
    clicks = records.select(parsed.alias("click")).select("click.*")
    sums = build(spark, orders, clicks).writeStream.format("parquet").option("checkpointLocation", into + "/checkpoint")
    first = sums.trigger(processingTime="1 minute").start(into + "/table")

    def write(frame, batch):
        frame.write.mode("append").json(into + "/elsewhere")

    names = orders.select(F.udf(shout)("who").alias("name"))
    names.writeStream.queryName("names").foreachBatch(write).option("checkpointLocation", into + "/other").start()
    spark.streams.awaitAnyTermination()
    spark.stop()


if __name__ == "__main__":
    main()
"""
NAMES = """
def shout(text):
    return text.upper()
"""
ORDERS = """order_time,who,amount
2026-03-01 12:01:00,ada,7
2026-03-01 12:04:00,bob,3
2026-03-01 12:09:00,ada,5
2026-03-01 12:21:00,cy,4
2026-03-01 12:22:00,bob,9
2026-03-01 12:38:00,ada,2
"""
CLICKS = """click_time,who,page
2026-03-01 12:00:00,ada,home
2026-03-01 12:03:00,bob,sale
2026-03-01 12:07:00,ada,sale
2026-03-01 12:20:00,bob,home
2026-03-01 12:37:00,ada,home
2026-03-01 12:40:00,cy,sale
"""
SAMPLES = ("--sample", "orders=orders.csv", "--sample", "clicks=clicks.csv")


def test_a_program_is_checked_and_keeps_what_it_has(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    for name in ("checkpoint/offsets/0", "table/part-0.parquet", "elsewhere/part-0.json", "other/metadata"):
        (mine / name).parent.mkdir(parents=True, exist_ok=True)
        (mine / name).write_text("of the real job")
    here = tmp_path / "here"
    (here / "jobs").mkdir(parents=True)
    files = {"same.py": FUNCTION, "jobs/job.py": PROGRAM, "jobs/acme_names.py": NAMES, "orders.csv": ORDERS}
    for name, text in {**files, "clicks.csv": CLICKS}.items():
        (here / name).write_text(text)
    before = contents(tmp_path)

    program = check(here, "jobs/job.py", *SAMPLES, "--output", "of-program", "--", "--into", str(mine))
    first, names = json.loads(program.stdout)["queries"]
    assert program.returncode == 1, program.stderr
    assert (first["rows"], [checkpoint["outcome"] for checkpoint in first["checkpoints"]]) == ("same", ["refused"])
    assert (names["rows"], [checkpoint["outcome"] for checkpoint in names["checkpoints"]]) == ("same", ["resumed"])
    page = (here / "of-program/query-2/verdict.html").read_text()
    line = PROGRAM[: PROGRAM.index("names.writeStream")].count("\n") + 1
    assert f"the function of foreachBatch at job.py:{line} is not called" in page
    written = {path for path in contents(tmp_path) if path.parts[len(tmp_path.parts)] == "mine"}
    assert {path: contents(tmp_path)[path] for path in before} == before
    assert written == {path for path in before if path.is_relative_to(mine)}


WRITES = """
from pyspark.sql import SparkSession


def batch(frame, number):
    with open(__file__ + "-batch.txt", "a") as written:
        written.write("{} {}\\n".format(number, sorted(row.n for row in frame.collect())))


class Rows:
    def __init__(self, path):
        self.path = path

    def open(self, partition, number):
        self.file = open("{}-rows-{}-{}.txt".format(self.path, number, partition), "a")
        return True

    def process(self, row):
        self.file.write("{}\\n".format(row.n))

    def close(self, error):
        self.file.write("closed {}\\n".format(error))
        self.file.close()


events = SparkSession.builder.getOrCreate().readStream.schema("n INT").json("events")
events.writeStream.foreachBatch(batch).start()
events.writeStream.foreach(Rows(__file__)).start()
"""


@full_run_only
def test_functions_of_sinks_are_called_only_if_the_case_says_so(tmp_path: Path) -> None:
    (tmp_path / "writes.py").write_text(WRITES)
    steps = "[{add: {events: [[1], [2]]}, expect: {rows: [[1], [2]]}}]"
    for name, more in {"left-out": "", "batches": ", sinks: true", "rows": ", query: 2, sinks: true"}.items():
        call = f"{{program: writes.py{more}}}"
        case = f"title: It writes\nstrength: observed\nstreams: {{events: n INT}}\nquery: [{{call: {call}, with: [events]}}]"
        (tmp_path / f"{name}.yaml").write_text(f"{case}\noutputMode: append\nsteps: {steps}\n")

    def ran(name: str) -> list[str]:
        done = conformance(tmp_path, "run", f"{name}.yaml", "--spark", "3.5", "--allow-code", "--code", ".")
        assert done.returncode == 0, done.stdout + done.stderr
        files = sorted(tmp_path.glob("writes.py-*"))
        return [line for file in files for line in file.read_text().splitlines()]

    assert ran("left-out") == []
    assert ran("batches") == ["0 [1, 2]"]
    (tmp_path / "writes.py-batch.txt").unlink()
    assert sorted(line for line in ran("rows") if line != "closed None") == ["1", "2"]


COUNTS = """
import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1).getOrCreate()
events = spark.readStream.schema("t TIMESTAMP, n INT").json("events")
events.writeStream.format("console").queryName("rows").start()
counts = events.withWatermark("t", "1 hour").groupBy("t", "n").count().writeStream.queryName("counts").format("noop")
counts.option("checkpointLocation", sys.argv[1]).trigger(once=True).start().awaitTermination()
"""


@full_run_only
def test_a_checkpoint_that_a_query_of_a_program_wrote_is_resumed_with_that_query(tmp_path: Path) -> None:
    (target,) = Targets.load().select(["3.5.9"])
    environment = provision.prepare(target)
    (tmp_path / "counts.py").write_text(COUNTS)
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "1.json").write_text('{"t": "2026-03-01 12:00:00", "n": 1}\n')
    program = [str(environment.python), "counts.py", "production"]
    subprocess.run(program, cwd=tmp_path, env=environment.environ(), check=True, capture_output=True)
    written = contents(tmp_path / "production")

    def resume(*options: str) -> subprocess.CompletedProcess[str]:
        named = ("production", "--call", "counts.py", "--to", "3.5")
        return conformance(tmp_path, "checkpoint", "resume", *named, *options, "--", "elsewhere")

    record = ("--from", "3.5", "--record", "9", "--mask", "events=n", "--", "elsewhere")
    sample = conformance(tmp_path, "sample", "counts.py", *record)
    assert sample.returncode == 0, sample.stderr
    (row,) = map(json.loads, (tmp_path / "events.jsonl").read_text().splitlines())
    assert row["t"] == "2026-03-01T12:00:00.000Z"
    assert row["n"] in range(10)
    which = resume()
    assert which.returncode == 2
    assert "--query 2   # counts.py, query 2 of 2 (counts)" in which.stderr
    resumed = resume("--query", "2", *shlex.split(sample.stdout))
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert "● the checkpoint resumes on 3.5.9" in resumed.stdout
    assert "micro-batch 2 ran with watermark 2026-03-01T11:00:00Z" in resumed.stdout
    assert contents(tmp_path / "production") == written
    assert not (tmp_path / "elsewhere").exists()


def check(folder: Path, job: str, *options: str) -> subprocess.CompletedProcess[str]:
    quick = ["--batches", "2", "--no-silent-streams", "--no-repeat-rows", "--json"]
    done = conformance(folder, "check", job, "--from", "3.5", "--to", "4.3", *quick, *options)
    assert done.stdout or done.returncode in (2, 3), done.stderr
    return done


ASKS = """
import threading

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
newer = spark.version.startswith("4")
orders = spark.readStream.schema("order_time TIMESTAMP, who STRING, amount BIGINT").json("orders")
orders = orders.withWatermark("order_time", "10 minutes")
orders.writeStream.outputMode("update" if newer else "append").start()


def side(name):
    orders.selectExpr("who", "upper(who)").writeStream.queryName(name).start()


for name in ["both", *(["later"] if newer else [])]:
    threading.Thread(target=side, args=(name,)).start()
"""


@full_run_only
def test_what_a_program_asks_of_each_version_is_compared_and_queries_of_its_threads_are_too(tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(ASKS)
    (tmp_path / "orders.csv").write_text(ORDERS)
    done = check(tmp_path, "asks.py", "--sample", "orders=orders.csv", "--no-repeat-rows")
    first, second = json.loads(done.stdout)["queries"]
    assert done.returncode == 1, done.stderr
    assert [each["rows"] for each in (first, second)] == ["same", "same"]
    (mode,), (more,) = first["asked_otherwise"], second["asked_otherwise"]
    assert mode.startswith("output mode: append on 3.5")
    assert ", update on 4" in mode
    assert ", number 3, at asks.py:14: it is compared with nothing on 3.5" in more


STARTS = """
import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
java = spark._jsparkSession.newSession() if "other" in sys.argv else spark._jsparkSession
writer = java.readStream().format("rate").load().writeStream().format("json")
try:
    if spark.version.startswith(sys.argv[1]):
        writer.option("checkpointLocation", "{0}/checkpoint").start("{0}/table")
except Exception:
    if "quietly" not in sys.argv:
        raise
orders = spark.readStream.schema("order_time TIMESTAMP, who STRING, amount BIGINT").json("orders")
orders.writeStream.start("{0}/more")
"""


@full_run_only
@pytest.mark.parametrize("how", ["3", "3 other", "4 other", "4 quietly"])
def test_a_query_that_starts_through_the_jvm_is_refused_before_it_writes(how: str, tmp_path: Path) -> None:
    """As a Scala helper called from Python does. ``how``: on which Spark, in which session, and whether the job catches the error."""
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "starts.py").write_text(STARTS.format(real))
    (tmp_path / "orders.csv").write_text(ORDERS)
    done = check(tmp_path, "starts.py", "--sample", "orders=orders.csv", "--", *how.split())
    assert done.returncode in (2, 3), done.stdout + done.stderr
    assert "Nothing was started" in done.stdout + done.stderr
    assert not [*real.iterdir()]


CHANGES = """
import decimal, gc, locale, logging, os, random, socket, sys, time, warnings

from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.getOrCreate()
later = spark.version >= "4" and sys.argv[1] == "differs"
orders = spark.readStream.schema("order_time TIMESTAMP, who STRING, amount BIGINT").json("orders")
sums = orders.withWatermark("order_time", "10 minutes").groupBy(F.window("order_time", "5 minutes")).agg(F.sum("amount"))
# Both are 02:30 by a clock of Berlin.
paid = F.timestamp_seconds(F.lit(1792891800 if later else 1792888200))
SETTINGS = dict(
    [("spark.sql." + name, value) for name, value in [
        ("session.timeZone", "Europe/Berlin"), ("ansi.enabled", "false"), ("caseSensitive", "true"), ("shuffle.partitions", "7"),
        ("legacy.timeParserPolicy", "LEGACY"), ("execution.arrow.pyspark.enabled", "true"), ("datetime.java8API.enabled", "true"),
        ("maxToStringFields", "1"),
    ]]
)


def write(frame, batch):
    frame.count()
    for session in spark, getattr(frame, "sparkSession", spark):
        for name, value in SETTINGS.items():
            session.conf.set(name, value)
    spark.catalog.clearCache()
    os.environ.clear()
    os.environ["TZ"] = "Europe/Berlin"
    time.tzset()
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
    context = decimal.getcontext()
    context.capitals, context.prec = 0, 2
    random.seed(1)
    warnings.simplefilter("error")
    sys.stdout = sys.stderr
    os.chdir("/")
    os.umask(0o077)
    socket.setdefaulttimeout(5)
    logging.disable(logging.CRITICAL)
    gc.disable()


small = F.lit("0.000000001").cast("decimal(20,9)").alias("small")
sums.select("window", "sum(amount)", paid.alias("paid"), small).writeStream.foreachBatch(write).start()
"""


@full_run_only
@pytest.mark.parametrize(("how", "code"), [("agrees", 0), ("differs", 1)])
def test_nothing_that_a_function_changes_between_micro_batches_changes_what_is_read(
    how: str, code: int, tmp_path: Path
) -> None:
    (tmp_path / "changes.py").write_text(CHANGES)
    (tmp_path / "orders.csv").write_text(ORDERS)
    done = check(tmp_path, "changes.py", "--sample", "orders=orders.csv", "--run-sinks", "--", how)
    assert done.returncode == code, done.stdout + done.stderr
    assert (json.loads(done.stdout)["rows"] == "same") is (how == "agrees")


UNHEARD = """
import _thread, os, subprocess, sys, time

from pyspark.sql import SparkSession


def start(session):
    query = session.readStream.format("rate").load().writeStream.format("json").option("checkpointLocation", "{0}/checkpoint")
    query.start("{0}/table").processAllAvailable()


spark = SparkSession.builder.getOrCreate()
how = sys.argv[1]
if how == "thread":
    _thread.start_new_thread(start, (spark,))
    time.sleep(3)
elif how == "fork":
    child = os.fork()
    if child == 0:
        try:
            start(spark)
        finally:
            os._exit(0)
    os.waitpid(child, 0)  # both use one connection to the JVM
elif how == "process":
    code = "import sys; sys.argv[1] = 'alone'; exec(open(" + repr(__file__) + ").read())"
    subprocess.run([sys.executable, "-c", code, ""])
elif how == "alone":
    start(spark)
orders = spark.readStream.schema("order_time TIMESTAMP, who STRING, amount BIGINT").json("orders")
orders.writeStream.start("{0}/more")
"""


@full_run_only
@pytest.mark.parametrize(("how", "code"), [("thread", 3), ("fork", 3), ("process", 0)])
def test_no_query_starts_in_a_thread_or_process_that_is_not_held(how: str, code: int, tmp_path: Path) -> None:
    """A process of the code's own has a Spark of its own, which is not asked what it does."""
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "starts.py").write_text(UNHEARD.format(real))
    (tmp_path / "orders.csv").write_text(ORDERS)
    done = check(tmp_path, "starts.py", "--sample", "orders=orders.csv", "--no-repeat-rows", "--", how)
    assert done.returncode == code, done.stdout + done.stderr
    assert ("Nothing was started" in done.stdout + done.stderr) is (code == 3)
    assert not [*real.iterdir()]


LOOKS = """
title: It looks at one row
streams: {{sales: "sold TIMESTAMP, shop STRING"}}
query: [{{from: sales}}, {{withWatermark: [sold, 10 minutes]}}, {{groupBy: [shop], agg: [count(*) AS n]}}]
outputMode: update
sink: looks:{function}
conf: {{spark.sql.shuffle.partitions: {partitions}}}
steps:
  - add: {{sales: [["12:01", a], ["12:01", b], ["12:01", c], ["12:01", d], ["12:01", e], ["12:01", f], ["12:01", g]]}}
    expect: {{rows: [[a, 1], [b, 1], [c, 1], [d, 1], [e, 1], [f, 1], [g, 1]], state: 7}}
  - add: {{sales: [["12:02", a], ["12:02", b]]}}
    expect: {{rows: [[a, 2], [b, 2]], state: 7}}
"""
LOOK = """
def look(frame, batch_id):
    frame.select("shop").show(1)


def read(frame, batch_id):
    if frame.limit(1).count():
        frame.persist()
        frame.count()
        frame.union(frame).coalesce(1).collect()
        frame.unpersist()
        frame.foreachPartition(list)
    else:
        frame.count()
"""


@full_run_only
@pytest.mark.parametrize(
    ("function", "partitions", "code", "said"),
    [
        ("read", 4, 0, []),
        ("look", 4, 1, ["1.delta does not exist", "STATE_STORE_COMMIT_VALIDATION_FAILED"]),
        ("look", 1, 3, ["the sink reads part of a partition in micro-batch 0"]),
    ],
)
def test_a_function_of_foreach_batch_that_reads_a_part_fails_as_in_production(
    tmp_path: Path, function: str, partitions: int, code: int, said: list[str]
) -> None:
    """Spark misses the state of the partitions that are not computed (SPARK-47329, SPARK-52008)."""
    (tmp_path / "looks.py").write_text(LOOK)
    (tmp_path / "looks.yaml").write_text(LOOKS.format(function=function, partitions=partitions))
    allowed = ("--spark", "3.5", "--spark", "4.3", "--allow-code", "--code", ".")
    done = conformance(tmp_path, "run", "looks.yaml", *allowed)
    assert done.returncode == code, done.stdout + done.stderr
    assert [text for text in said if text not in done.stdout + done.stderr] == []


NEWEST_FIRST = """
from pyspark.sql import SparkSession, functions as F

orders = SparkSession.builder.getOrCreate().readStream.schema("order_time TIMESTAMP, who STRING, amount BIGINT")
orders = orders.options(latestFirst="true", maxFilesPerTrigger=1, maxFileAge="1d").json("s3a://in/orders/")
sums = orders.withWatermark("order_time", "1 minute").groupBy(F.window("order_time", "10 minutes")).count()
sums.writeStream.outputMode("append").option("checkpointLocation", "s3a://in/checkpoint").start("s3a://out")
"""


@full_run_only
def test_options_of_a_source_act_in_a_trial_of_their_own(tmp_path: Path) -> None:
    """Late rows are filtered by the micro-batch's own watermark up to 3.3 (SPARK-40925)."""
    for name, text in {"newest.py": NEWEST_FIRST, "orders.csv": ORDERS}.items():
        (tmp_path / name).write_text(text)
    quick = ("--batches", "2", "--no-repeat-rows", "--json", "--sample", "orders=orders.csv")
    done = conformance(tmp_path, "check", "newest.py", "--from", "3.3", "--to", "3.4", *quick)
    verdict = json.loads(done.stdout)
    assert (done.returncode, verdict["change"]) == (1, None), done.stderr
    assert verdict["options_of_files"]["change"] is not None
    assert "maxFilesPerTrigger=1, latestFirst=true of orders: " in verdict["summary"]
    (left,) = [what for what in verdict["notTried"] if "maxFileAge" in what]
    assert left.startswith("maxFileAge=1d of the source orders (json) is not tried")


THROWS = """
from pyspark.sql import SparkSession

tried = []


def write(frame, number):
    if number == 1 and number not in tried:
        tried.append(number)
        raise RuntimeError("the database is away")
    frame.count()


orders = SparkSession.builder.getOrCreate().readStream.schema("order_time TIMESTAMP, who STRING, amount BIGINT")
orders = orders.json("s3a://in/orders/")
orders.groupBy("who").count().writeStream.outputMode("update").foreachBatch(write).start()
"""


@full_run_only
def test_a_sink_that_throws_once_ends_the_trial_which_does_not_try_the_micro_batch_again(tmp_path: Path) -> None:
    for name, text in {"throws.py": THROWS, "orders.csv": ORDERS}.items():
        (tmp_path / name).write_text(text)
    done = check(tmp_path, "throws.py", "--run-sinks", "--sample", "orders=orders.csv")
    verdict = json.loads(done.stdout)
    assert (done.returncode, verdict["answer"]) == (2, "fails"), done.stderr
    assert "RuntimeError('the database is away') at throws.py:10, in the sink" in verdict["summary"]


MERGES = """
import os
import sys

from pyspark.sql import SparkSession, functions as F

into = sys.argv[1]


def merge(frame, number):
    session = frame.sparkSession
    path = "{}/{}".format(into, session.version)
    if not os.path.exists(path):
        frame.limit(0).write.format("delta").save(path)
    frame.createOrReplaceTempView("changes")
    merged = "MERGE INTO delta.`{}` t USING changes c ON t.who = c.who".format(path)
    session.sql(merged + " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    log = frame.write.format("delta").mode("append").option("txnVersion", number).option("txnAppId", "sums")
    log.save(path + "-log")


orders = SparkSession.builder.getOrCreate().readStream.schema("order_time TIMESTAMP, who STRING, amount BIGINT")
sums = orders.json("s3a://in/orders/").groupBy("who").agg(F.sum("amount").alias("total"))
sums.writeStream.outputMode("update").foreachBatch(merge).start()
"""


@full_run_only
def test_a_sink_that_merges_into_a_table_of_delta_runs_on_both_versions(tmp_path: Path) -> None:
    for name, text in {"merges.py": MERGES, "orders.csv": ORDERS}.items():
        (tmp_path / name).write_text(text)
    packages = {"3.5": "io.delta:delta-spark_2.12:3.3.3", "4.0": "io.delta:delta-spark_4.0_2.13:4.4.0"}
    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    given = [option for line, package in packages.items() for option in ("--package", f"{line}={package}")]
    given += [option for key, value in settings.items() for option in ("--conf", f"{key}={value}")]
    quick = ["--batches", "2", "--no-repeat-rows", "--json", "--run-sinks", "--sample", "orders=orders.csv"]
    job = ["check", "merges.py", "--from", "3.5.9", "--to", "4.0.5", *quick, *given, "--", str(tmp_path / "into")]
    done = conformance(tmp_path, *job)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.name for path in (tmp_path / "into").iterdir()} == {"3.5.9", "3.5.9-log", "4.0.5", "4.0.5-log"}
    (left,) = [what for what in json.loads(done.stdout)["notTried"] if "the function of foreachBatch" in what]
    assert left.endswith("so its retry is not tried")
