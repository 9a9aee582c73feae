"""Faulty and sound jobs on real engines: the cause is named, by the sample and by the progress of the same run, and no second one."""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.cli.progress import NoAnswers
from conformance.own_job.delays import delay_table_of
from conformance.own_job.explained_job import explain_query
from conformance.query_progress.answer import explain_files
from conformance.runner.resources import Concurrency, EngineUse
from harness.environments.provision import prepare
from harness.runtimes.options import RuntimeOptions
from harness.runtimes.own_code import OwnCode
from harness.targets.targets import Targets
from tests.engine.typed import conformance
from tests.support.effort import FULL, full_run_only
from tests.support.explained_jobs import CODE, JOBS, named

VERSIONS = sorted({version for job in JOBS.values() for version in job.versions})


@pytest.mark.parametrize("version", VERSIONS if FULL else ["4.3.0"])
def test_a_job_is_explained(version: str, tmp_path: Path) -> None:
    (tmp_path / "faulty_jobs.py").write_text(CODE)
    (target,) = Targets.load().select([version])
    plain = EngineUse(runtime=RuntimeOptions(own_code=OwnCode((tmp_path,))), concurrency=Concurrency())
    wrong = {}
    with ExitStack() as stack:
        kept = replace(plain, kept=stack.enter_context(plain.keeping_engines()))
        for name in (name for name, job in JOBS.items() if version in job.versions and (FULL or name == "short-delay")):
            job = JOBS[name]
            where = replace(plain, runtime=replace(plain.runtime, conf=job.conf)) if job.conf else kept
            answer = explain_query(job.query, job.samples, target, where, NoAnswers(), batches=6)
            if (seen := named(answer)) != (expected := job.expected(version)):
                wrong[name] = seen, expected
            if name == "short-delay":
                # tests/engine/test_delays.py has drawn queries, weekly.
                table = delay_table_of(answer, where, NoAnswers())
                assert [(point.dropped, point.state) for point in table.points] == [(2, 6), (2, 8), (1, 10), (0, 13)]
                assert len(table.checked) == 3
    assert wrong == {}


@full_run_only
@pytest.mark.parametrize("version", ["3.0.3", "4.3.0"])
def test_what_a_restart_changed_is_the_cause_by_progress_and_by_event_log(version: str, tmp_path: Path) -> None:
    environment = prepare(Targets.load().select([version])[0])
    for which in ("first", "second"):
        command = [environment.python, Path(__file__).with_name("restarts_here.py"), tmp_path / "run", which]
        done = subprocess.run(command, env=environment.environ(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]

    def causes(*paths: Path) -> dict[str | None, list[str]]:
        queries = explain_files(paths, lambda path: path.open("rb")).queries
        return {each.query.name: [cause.id for cause in each.causes] for each in queries}

    changed = {name: [name] for name in ("restart-with-other-order", "backlog-in-many-batches")}
    # Only an event log has the settings.
    assert causes(*(tmp_path / "run").glob("*.jsonl")) == changed | {"restart-with-other-policy": [], "sound-limit": []}
    policy = {"restart-with-other-policy": ["restart-with-other-policy"], "sound-limit": []}
    assert causes(tmp_path / "run" / "events") == changed | policy


OF_A_SINK = """
import sys
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("t TIMESTAMP, who STRING").json("s3a://shop/orders")
counts = orders.withWatermark("t", "10 minutes").groupBy(F.window("t", "10 minutes")).count()
sink = counts.writeStream.outputMode("update").queryName("counts").option("checkpointLocation", "s3a://shop/checkpoint")
sink.format(sys.argv[1]).start(*sys.argv[2:]).awaitTermination()
"""


@full_run_only
@pytest.mark.parametrize("version", ["3.0.3", "4.3.0"])
def test_a_sink_that_takes_no_updates_is_the_cause(version: str, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(OF_A_SINK)
    rows = "".join(f"2026-03-01 12:{minute:02}:00,ada\n" for minute in (1, 12, 14, 18, 25, 31))
    (tmp_path / "orders.csv").write_text(f"t,who\n{rows}")
    given = ("--sample", "orders=orders.csv", "--spark", version, "--json")
    named = {}
    for sink in (("memory",), ("noop",), ("parquet", "s3a://shop/counts")):
        (query,) = json.loads(conformance(tmp_path, "explain", "job.py", *given, "--", *sink).stdout)["queries"]
        named[sink[0]] = [cause["id"] for cause in query["causes"]]
    assert named == {"memory": ["sink-without-update-mode"], "noop": [], "parquet": ["sink-without-update-mode"]}
