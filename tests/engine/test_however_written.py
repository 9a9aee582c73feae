"""One job as a function, a program, a method of Scala and of Java, and SQL: `conformance check` gives the identical verdict."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.environments.environment import Environment
from harness.environments.provision import prepare
from harness.targets.targets import Targets
from tests.engine.compiled import java_jar, needs_javac, scala_jar
from tests.engine.test_programs import CLICKS, FUNCTION, ORDERS
from tests.engine.typed import conformance
from tests.support.effort import full_run_only, sample

PROGRAM = """
from pyspark.sql import SparkSession

from same import build

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("order_time TIMESTAMP, who STRING, amount BIGINT").json("orders")
clicks = spark.readStream.schema("click_time TIMESTAMP, who STRING, page STRING").json("clicks")
build(spark, orders, clicks).writeStream.option("checkpointLocation", "checkpoint").start("sums").awaitTermination()
"""
SCALA = """
package acme

import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.streaming.{GroupState, GroupStateTimeout}

case class Order(who: String, amount: Long)

object Jobs {
  def counted(orders: DataFrame): DataFrame = {
    val spark = orders.sparkSession
    import spark.implicits._
    val add = (who: String, rows: Iterator[Order], state: GroupState[Long]) => {
      state.update(state.getOption.getOrElse(0L) + rows.map(_.amount).sum)
      (who, state.get)
    }
    val groups = orders.select("who", "amount").as[Order].groupByKey(_.who)
    groups.mapGroupsWithState(GroupStateTimeout.NoTimeout)(add).toDF("who", "sum")
  }

  def build(clicks: DataFrame, orders: DataFrame, spark: SparkSession): DataFrame = {
    val o = orders.withWatermark("order_time", "10 minutes").alias("o")
    val c = clicks.withWatermark("click_time", "10 minutes").alias("c")
    val soon = expr("o.who = c.who AND order_time BETWEEN click_time AND click_time + INTERVAL 5 MINUTES")
    c.join(o, soon).groupBy(window(col("order_time"), "10 minutes"), col("page")).agg(sum("amount").alias("sum"))
  }
}
"""
PROCESSOR = """
package acme

import org.apache.spark.sql.{DataFrame, Encoders}
import org.apache.spark.sql.streaming._

case class Paid(who: String, amount: Long)

class Sum extends StatefulProcessor[String, Paid, (String, Long)] {
  @transient private var sum: ValueState[Long] = _

  override def init(mode: OutputMode, time: TimeMode): Unit =
    sum = getHandle.getValueState[Long]("sum", Encoders.scalaLong, TTLConfig.NONE)

  override def handleInputRows(who: String, rows: Iterator[Paid], timers: TimerValues): Iterator[(String, Long)] = {
    sum.update((if (sum.exists()) sum.get() else 0L) + rows.map(_.amount).sum)
    Iterator((who, sum.get()))
  }
}

object Sums {
  def processed(orders: DataFrame): DataFrame = {
    val spark = orders.sparkSession
    import spark.implicits._
    val groups = orders.select("who", "amount").as[Paid].groupByKey(_.who)
    groups.transformWithState(new Sum, TimeMode.None(), OutputMode.Update()).toDF("who", "sum")
  }
}
"""
JAVA = """
package acme;

import static org.apache.spark.sql.functions.*;

import org.apache.spark.sql.*;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.types.DataTypes;

public class Sums {
    public static Dataset<Row> build(Dataset<Row> first, Dataset<Row> second) {
        Dataset<Row> o = first.withWatermark("order_time", "10 minutes").alias("o");
        Dataset<Row> c = second.withWatermark("click_time", "10 minutes").alias("c");
        Column soon = expr("o.who = c.who AND order_time BETWEEN click_time AND click_time + INTERVAL 5 MINUTES");
        return c.join(o, soon).groupBy(window(col("order_time"), "10 minutes"), col("page")).agg(sum("amount").alias("sum"));
    }

    public static Dataset<Row> refused(Dataset<Row> orders) {
        return orders.select("nothing");
    }

    public static Dataset<Row> fails(Dataset<Row> orders) {
        UDF1<String, String> cut = text -> text.substring(9);
        return orders.select(udf(cut, DataTypes.StringType).apply(col("who")));
    }

    public static Dataset<Row> starts(Dataset<Row> orders) throws Exception {
        orders.writeStream().option("checkpointLocation", "MINE/checkpoint").format("parquet").start("MINE/table");
        return orders;
    }

    public static Dataset<Row> wrong(Dataset<Row> orders) {
        return orders.where(orders.columns()[9]);
    }
}
"""
MAIN = """
package acme;

import org.apache.spark.sql.*;

public class Main {
    public static void main(String[] arguments) throws Exception {
        SparkSession spark = SparkSession.builder().getOrCreate();
        Dataset<Row> orders = spark.readStream().schema("order_time TIMESTAMP, who STRING, amount BIGINT").json("orders");
        Dataset<Row> clicks = spark.readStream().schema("click_time TIMESTAMP, who STRING, page STRING").json("clicks");
        Sums.build(orders, clicks).writeStream().option("checkpointLocation", "MINE/checkpoint").start("MINE/table").awaitTermination();
        while (arguments.length > 0) spark.streams().awaitAnyTermination();
        spark.stop();
        System.exit(0);
    }
}

class Nothing {
    public static void main(String[] arguments) {
        if (arguments.length > 0) throw new IllegalStateException("no day " + arguments[0]);
    }
}
"""
SQL = """
CREATE TEMPORARY VIEW bought AS
SELECT page, amount, order_time FROM clicks c JOIN orders o
  ON o.who = c.who AND order_time BETWEEN click_time AND click_time + INTERVAL 5 MINUTES;

SELECT window(order_time, '10 minutes') AS window, page, sum(amount) AS sum
FROM bought GROUP BY window(order_time, '10 minutes'), page;
"""
SAMPLES = ("--sample", "orders=orders.csv", "--sample", "clicks=clicks.csv")
WATERMARKS = ("--watermark", "orders=10 minutes", "--watermark", "clicks=10 minutes")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "same.py": FUNCTION,
        "job.py": PROGRAM,
        "sums.sql": SQL,
        "Jobs.scala": SCALA,
        "Sums.scala": PROCESSOR,
        "Sums.java": JAVA,
        "Main.java": MAIN,
    }
    for name, text in {**files, "orders.csv": ORDERS, "clicks.csv": CLICKS}.items():
        (tmp_path / name).write_text(text.replace("MINE", str(tmp_path / "mine")))
    return tmp_path


@full_run_only
@needs_javac
def test_the_verdict_is_the_same_however_a_job_is_written(folder: Path) -> None:
    for version, scala in (("3.5", "2.12"), ("4.3", "2.13")):
        scala_jar(folder / f"jobs_{scala}.jar", _environment(version))
    # The class file of `DataStreamWriter.option` names another type since 4.0, so a main method that calls it is compiled for each.
    for version, jar in (("3.5", "sums.jar"), ("4.3", "sums_2.13.jar")):
        java_jar(folder / jar, _environment(version))
    jars = ("--jar", "2.12=jobs_2.12.jar", "--jar", "2.13=jobs_2.13.jar")
    function, *others = (
        _checked(folder, *how, *SAMPLES)
        for how in (
            ("same:build",),
            ("job.py",),
            ("--call", "acme.Jobs.build", *jars),
            ("--call", "acme.Sums.build", "--jar", "sums.jar"),
            ("--main", "acme.Main", "--jar", "2.12=sums.jar", "--jar", "2.13=sums_2.13.jar"),
            ("sums.sql", *WATERMARKS),
        )
    )
    assert (function["rows"], [each["outcome"] for each in function["checkpoints"]]) == ("same", ["refused"])
    for other in others:
        assert other == function
    assert not (folder / "mine").exists()


@needs_javac
def test_what_a_main_method_does_wrong_is_one_line(folder: Path) -> None:
    java_jar(folder / "sums.jar", _environment("3.5"))
    upgrade, back = ("--from", "3.5", "--to", "4.3"), ("--from", "4.3", "--to", "3.5")
    mistakes = (
        (back, "acme.Main", (), "the jar is compiled for another Spark: 4.3.0 does not have this. Compile it for both"),
        (upgrade, "acme.Nothing", (), "acme.Nothing ended and started no query, so there is nothing to try"),
        (upgrade, "acme.Main", ("1",), "it starts queries, or waits for their end, again and again"),
        (upgrade, "acme.Nothing", ("1",), "java.lang.IllegalStateException: no day 1"),
        (upgrade, "acme.Minor", (), "acme.Minor"),
        (upgrade, "acme.Sums", (), "acme.Sums has no method public static void main(String[])"),
    )
    for versions, name, arguments, expected in sample(mistakes, 1):
        options = [*versions, "--jar", "sums.jar", "--main", name, *SAMPLES, "--", *arguments]
        done = conformance(folder, "check", *options)
        assert expected in " ".join(done.stderr.split()), done.stdout + done.stderr
        assert done.returncode == 2, name


@needs_javac
def test_samples_of_a_main_method_are_recorded_from_its_sources_or_made_up(folder: Path) -> None:
    java_jar(folder / "sums.jar", _environment("3.5"))
    (folder / "orders").mkdir()
    (folder / "orders" / "a.json").write_text('{"order_time": "2026-03-01 12:00:00", "who": "ada", "amount": 7}\n')
    main = ("--jar", "sums.jar", "--main", "acme.Main")
    done = conformance(folder, "sample", "--from", "3.5", "--record", "5", *main)
    assert done.returncode == 0, done.stderr
    schema = "orders=`order_time` timestamp, `who` string, `amount` bigint"
    assert done.stdout == f"--sample orders=orders.jsonl --schema '{schema}' --sample clicks=clicks.jsonl\n"
    (order,) = map(json.loads, (folder / "orders.jsonl").read_text().splitlines())
    assert (order["who"], order["amount"]) == ("ada", 7)
    assert "clicks: " in done.stderr, "its folder is not there"
    assert [*json.loads((folder / "clicks.jsonl").read_text().splitlines()[0])] == ["click_time", "who", "page"]
    assert not (folder / "mine").exists()


@needs_javac
def test_what_a_method_does_wrong_is_its_own_and_what_spark_refuses_is_judged(folder: Path) -> None:
    java_jar(folder / "sums.jar", _environment("3.5"))
    (folder / "cases").mkdir()
    (folder / "mine").mkdir()
    for method, expected in {
        "Sums.refused": "error: {class: UNRESOLVED_COLUMN.WITH_SUGGESTION}",
        "Sums.wrong": "rows: []",
        "Sums.fails": "rows: []",
        "Sums.nothing": "rows: []",
        "Sums.starts": "rows: []",
        "Sums.build": "rows: []",
    }.items():
        lines = [
            f"title: It calls {method}",
            "strength: observed",
            "streams: {orders: 'order_time TIMESTAMP, who STRING, amount BIGINT'}",
            f"query: {{call: {{jvm: acme.{method}}}, with: [orders]}}",
            f"steps: [{{add: {{orders: [['12:00', ada, 1]]}}, expect: {{{expected}}}}}]",
        ]
        (folder / "cases" / f"{method}.yaml").write_text("\n".join(lines) + "\n")
    done = _run(folder, "cases", "3.5", jars=("sums.jar",))
    at, in_a_task = (JAVA[: JAVA.index(text)].count("\n") + 1 for text in ("orders.columns()[9]", "text.substring(9)"))
    for note in (
        f"your code raised java.lang.ArrayIndexOutOfBoundsException: Index 9 out of bounds for length 3 at Sums.java:{at}, while",
        f" at Sums.java:{in_a_task}, in a UDF",
        "your code raised NotCallable: acme.Sums has no static method nothing that is public and returns a Dataset; it has "
        "build(DataFrame, DataFrame); fails(DataFrame); refused(DataFrame); starts(DataFrame); wrong(DataFrame), while",
        "your code raised NotCallable: the method starts a query itself, with the checkpoint and the sink that stand in the code",
        "your code raised NotCallable: acme.Sums.build is build(DataFrame, DataFrame); 1 DataFrame given: orders",
    ):
        assert note in done.stdout + done.stderr, done.stdout + done.stderr
    assert [*(folder / "mine").iterdir()] == []
    results = [json.loads(line) for line in (folder / "r.jsonl").read_text().splitlines()]
    statuses = {each["case"].rpartition("/")[2]: each["status"] for each in results if "status" in each}
    assert statuses.pop("Sums.refused") == "conforms"
    assert {*statuses.values()} == {"broken"}


COUNTED = """
title: It adds up the orders of each customer
strength: observed
streams: {orders: "order_time TIMESTAMP, who STRING, amount BIGINT"}
query: {call: METHOD, with: [orders]}
outputMode: update
steps:
  - {add: {orders: [["12:00", ada, 1], ["12:00", bob, 5]]}, expect: {rows: [[ada, 1], [bob, 5]]}}
  - restart: graceful
  - {add: {orders: [["12:01", ada, 2]]}, expect: {rows: [[ada, 3]]}}
"""


@full_run_only
def test_a_method_of_scala_keeps_state_of_its_own_types_in_the_jars_that_its_case_names(folder: Path) -> None:
    for version, scala in (("3.5", "2.12"), ("4.3", "2.13")):
        scala_jar(folder / f"jobs_{scala}.jar", _environment(version))
    scala_jar(folder / "sums.jar", _environment("4.3"), "Sums.scala")
    (folder / "cases").mkdir()
    jars = "[2.12=jobs_2.12.jar, 2.13=jobs_2.13.jar]"
    counted = COUNTED.replace("METHOD", f"{{jvm: acme.Jobs.counted, jar: {jars}}}")
    (folder / "cases" / "counted.yaml").write_text(counted)
    processed = COUNTED.replace("METHOD", "{jvm: acme.Sums.processed, jar: sums.jar}")
    store = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    settings = f'spark: ">=4.0"\nconf: {{spark.sql.streaming.stateStore.providerClass: {store}}}\n'
    (folder / "cases" / "processed.yaml").write_text(processed + settings)
    done = _run(folder, "cases", "3.5", "4.3", jars=())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 conform" in done.stdout, done.stdout
    (folder / "other.yaml").write_text(COUNTED.replace("METHOD", "{jvm: acme.Jobs.counted}"))
    done = _run(folder, "other.yaml", "3.5", jars=("jobs_2.13.jar",))
    assert "is the jar built for Scala 2.12, which Spark 3.5.9 has?" in done.stdout, done.stdout


def _run(folder: Path, cases: str, *versions: str, jars: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    options = [word for version in versions for word in ("--spark", version)]
    options += [word for jar in jars for word in ("--jar", jar)]
    return conformance(folder, "run", cases, "--allow-code", "--output", "r.jsonl", *options)


def _checked(folder: Path, *options: str) -> dict[str, Any]:
    quick = ["--batches", "2", "--no-silent-streams", "--no-repeat-rows"]
    done = conformance(folder, "check", "--from", "3.5", "--to", "4.3", "--json", *quick, *options)
    assert done.stdout, done.stderr
    answer = {key: value for key, value in json.loads(done.stdout).items() if key != "case"}
    assert done.returncode == 1
    return answer


def _environment(version: str) -> Environment:
    (target,) = Targets.load().select([version])
    return prepare(target, on_progress=print)
