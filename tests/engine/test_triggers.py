"""Jobs with every trigger, however they are written: `conformance check` answers, and checkpoints are kept between the runs of a query."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.judging.checkpoint_verdict import cuts
from conformance.suite import discovery
from harness.environments.provision import prepare
from harness.progress import ignore_progress
from harness.runtimes.local import LocalRuntime
from harness.runtimes.own_code import Jar, OwnCode
from harness.scheduling.cell_run import CellTask, Limits
from harness.scheduling.scheduler import Scheduler
from harness.targets.targets import Targets
from tests.engine.compiled import java_jar, needs_javac
from tests.engine.remembering import Remembering
from tests.engine.typed import conformance
from tests.support.effort import full_run_only, sample

TRIGGERS = {
    "availableNow": ("{'availableNow': True}", "Trigger.AvailableNow()"),
    "default": ("{}", "null"),
    "once": ("{'once': True}", "Trigger.Once()"),
    "{processingTime: 10 seconds}": ("{'processingTime': '10 seconds'}", 'Trigger.ProcessingTime("10 seconds")'),
}
"""As a case says them → as a program of Python and one of Java say them."""
JOB = """
from pyspark.sql import SparkSession
from pyspark.sql.functions import window


def counts(spark, tickets):
    tickets = tickets.withWatermark("opened", "10 minutes")
    return tickets.groupBy(window("opened", "10 minutes"), "kind").count()


if __name__ == "__main__":
    spark = SparkSession.builder.getOrCreate()
    tickets = spark.readStream.schema("opened TIMESTAMP, kind STRING").json("tickets")
    for trigger in (TRIGGERS):
        writer = counts(spark, tickets).writeStream.option("checkpointLocation", "mine/checkpoint")
        (writer.trigger(**trigger) if trigger else writer).start("mine/table").awaitTermination()
"""
JAVA = """
package acme;

import static org.apache.spark.sql.functions.*;

import org.apache.spark.sql.*;
import org.apache.spark.sql.streaming.*;

public class Job {
    public static Dataset<Row> counts(Dataset<Row> tickets) {
        Dataset<Row> late = tickets.withWatermark("opened", "10 minutes");
        return late.groupBy(window(col("opened"), "10 minutes"), col("kind")).count();
    }

    public static void main(String[] arguments) throws Exception {
        SparkSession spark = SparkSession.builder().getOrCreate();
        Dataset<Row> tickets = spark.readStream().schema("opened TIMESTAMP, kind STRING").json("tickets");
        for (Trigger trigger : new Trigger[] {TRIGGERS}) {
            DataStreamWriter<Row> writer = counts(tickets).writeStream().option("checkpointLocation", "mine/checkpoint");
            (trigger == null ? writer : writer.trigger(trigger)).start("mine/table").awaitTermination();
        }
    }
}
"""
SELECT = "SELECT window(opened, '10 minutes') AS window, kind, count(*) AS count FROM tickets"
GROUPED = f"{SELECT} GROUP BY window(opened, '10 minutes'), kind"
CALLS = {
    "main": "{main: acme.Job, query: QUERY}",
    "program": "{program: job.py, query: QUERY}",
    "function": '"job:counts"',
    "sql": f'{{sql: ["{GROUPED}"], watermarks: {{tickets: [opened, 10 minutes]}}}}',
    "method": "{jvm: acme.Job.counts}",
}
"""As a case calls each kind of job."""
CASE = """
title: It counts tickets
strength: observed
spark: ">=3.4"
streams: {tickets: "opened TIMESTAMP, kind STRING"}
query: {call: CALL, with: [tickets]}
trigger: TRIGGER
steps:
  - {add: {tickets: [["12:00", a], ["12:05", b]]}, expect: {plan: [StateStoreSave]}}
  - NEXT
  - restart: graceful
  - add: {tickets: [["12:30", a]]}
  - NEXT
  - add: {tickets: [["12:45", b]]}
  - NEXT
"""
SAMPLE = "opened,kind\n" + "".join(f"2026-03-01 12:{minute}:00,{'ab'[minute % 2]}\n" for minute in range(10, 60, 7))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    python, java = (", ".join(said) for said in zip(*TRIGGERS.values(), strict=True))
    (tmp_path / "job.py").write_text(JOB.replace("TRIGGERS", python))
    (tmp_path / "Job.java").write_text(JAVA.replace("TRIGGERS", java))
    (tmp_path / "tickets.csv").write_text(SAMPLE)
    return tmp_path


@pytest.mark.parametrize("kind", ["program", pytest.param("main", marks=(full_run_only, needs_javac))])
def test_a_job_of_every_trigger_is_checked(folder: Path, kind: str) -> None:
    """A function, a method and SQL say no trigger, and `check` lets nobody give them one: test_however_written checks them."""
    job = ["job.py"]
    if kind == "main":
        job = ["--main", "acme.Job"]
        for target, scala in zip(Targets.load().select(["3.5", "4.3"]), ("2.12", "2.13"), strict=True):
            java_jar(folder / f"{scala}.jar", prepare(target, on_progress=ignore_progress))
            job += ["--jar", f"{scala}={scala}.jar"]
    options = ["--batches", "2", "--no-repeat-rows", "--sample", "tickets=tickets.csv", "--json"]
    done = conformance(folder, "check", *job, "--from", "3.5", "--to", "4.3", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    for query, trigger in zip(json.loads(done.stdout)["queries"], TRIGGERS, strict=True):
        assert query["rows"] == "same", trigger
        assert {checkpoint["outcome"] for checkpoint in query["checkpoints"]} == {"resumed"}, trigger
    assert not (folder / "mine").exists()


@needs_javac
def test_a_query_of_every_trigger_keeps_a_checkpoint_before_each_step(folder: Path) -> None:
    """Also where no run of the query goes on: after a restart, with a trigger that runs the query once for each action."""
    (target,) = Targets.load().select(["4.3"])
    java_jar(folder / "job.jar", prepare(target, on_progress=ignore_progress))
    (folder / "cases").mkdir()
    for kind, called in sample(list(CALLS.items()), 1):
        for number, trigger in sample(list(enumerate(TRIGGERS, 1)), 1):
            following = "advance: 10 seconds" if "processingTime" in trigger else "idle: {}"
            text = CASE.replace("CALL", called.replace("QUERY", str(number)))
            text = text.replace("TRIGGER", trigger).replace("NEXT", following)
            (folder / "cases" / f"{kind}-{number}.yaml").write_text(text)
    loaded = discovery.load([folder / "cases"])
    loaded.raise_for_problems()
    runtime = LocalRuntime(folder, own_code=OwnCode.at([folder]), jars=(Jar.parse(str(folder / "job.jar")),))
    tasks = [CellTask(case, (target,), keep=cuts(case, each=True)) for case in loaded.cases]
    answers = Remembering()
    Scheduler(runtime, Limits(jobs=1, step_timeout=600.0), answers, allow_code=True).run(tasks)
    for task in tasks:
        seen, kept = answers.seen[task.case.id], answers.kept[task.case.id]
        assert seen.error is None, (task.case.id, seen.error)
        rows = {row[1:] for step in seen.steps for batch in step.batches for row in batch.rows}
        assert {("a", 1), ("b", 1)} <= rows, task.case.id
        written = [
            step for step, checkpoint in kept.items() if Path(checkpoint.saved, "checkpoint", "commits").is_dir()
        ]
        assert written == [*task.keep], task.case.id
