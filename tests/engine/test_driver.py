"""What only a real engine can show of the driver."""

import os
import signal
import subprocess
import textwrap

import pytest

from conformance.judging.verdict import judge
from conformance.suite import discovery
from harness.engine.alignment import check_alignment
from harness.engine.engine import DriverFailed, EngineDied
from harness.engine.request import request_for
from harness.environments import provision
from harness.progress import ignore_progress
from harness.runtimes.local import LocalRuntime
from harness.runtimes.own_code import OwnCode
from harness.targets.targets import Targets
from tests.engine.own_job import check_own_job, own_job
from tests.engine.refused import REFUSED, check_refused
from tests.support.effort import FULL, number, sample
from tests.support.whole_suite import whole_suite


def case_of(tmp_path, text):
    folder = tmp_path / "cases"
    folder.mkdir(exist_ok=True)
    (folder / "x.yaml").write_text(textwrap.dedent(text))
    loaded = discovery.load([folder])
    loaded.raise_for_problems()
    return loaded.cases[0]


def observe(engine, case, code=None):
    request = request_for(case, engine.new_directory(case.id), (code,) if code else None)
    observation = engine.observe(request, step_timeout=600)
    check_alignment(case, observation)
    return observation


def test_rows_that_do_not_fit_the_schema_never_become_nulls(engine, tmp_path):
    case = case_of(
        tmp_path,
        """
        title: x
        streams: {a: "t TIMESTAMP, d DATE, x DOUBLE, s STRUCT<u: INT, v: ARRAY<STRING>>, b BOOLEAN, m DECIMAL(9,2)"}
        query: [{from: a}]
        steps:
          - add: {a: [["1969-12-31T23:59:59.999999Z", "2024-02-29", 1.5, [1, [p, null]], true, 1.25], [null, null, null, null, null, null]]}
        """,
    )
    (step,) = observe(engine, case).steps
    assert step.error is None
    assert sorted(step.batches[0].rows, key=repr) == sorted(
        [
            ("1969-12-31T23:59:59.999999Z", "2024-02-29", 1.5, [1, ["p", None]], True, "1.25"),
            (None, None, None, None, None, None),
        ],
        key=repr,
    )


def test_each_partition_is_one_and_an_empty_one_adds_no_row(engine, tmp_path):
    case = case_of(
        tmp_path,
        """
        title: x
        streams: {a: "n INT"}
        query: [{from: a}, {select: [n, spark_partition_id() AS p]}]
        steps:
          - add: {a: {partitions: [[[1], [2]], [], [[3]]]}}
        """,
    )
    rows = observe(engine, case).steps[0].batches[0].rows
    partition = dict(rows)
    assert partition[1] == partition[2] != partition[3]


def test_the_plan_of_the_last_batch_and_of_a_query_that_has_run_none(engine, tmp_path):
    case = case_of(
        tmp_path,
        """
        title: x
        streams: {a: "t TIMESTAMP"}
        query: [{from: a}, {withWatermark: [t, 25 minutes]}, {select: [t]}]
        steps:
          - start: {}
            expect: {plan: ["T1500000ms"]}
          - add: {a: [[1]]}
            expect: {plan: ["EventTimeWatermark"], rows: [[1]]}
        """,
    )
    start, add = observe(engine, case).steps
    assert "t#" in start.plan
    assert "-T1500000ms" in start.plan
    assert "== Physical Plan ==" in add.plan


def test_all_runs_of_a_case_with_several_streams_give_one_answer(engine, target):
    several = [case for case in whole_suite().cases if {"multi-stream", "smoke"} <= set(case.tags)][:2]
    assert several
    for case in several:
        digests = {observe(engine, case).behaviour_digest for _ in range(number(3, 20))}
        assert len(digests) == 1
        assert judge(case, target.version, observe(engine, case)).status in ("conforms", "differs")


def test_code_of_the_author_runs_only_where_it_was_allowed(engine, tmp_path):
    (tmp_path / "job_of_mine.py").write_text("def doubled(spark, frame):\n    return frame.selectExpr('n * 2 AS n')\n")
    case = case_of(
        tmp_path,
        """
        title: x
        streams: {a: "n INT"}
        query: [{from: a}, {call: "job_of_mine:doubled"}]
        steps: [{add: {a: [[4]]}}]
        """,
    )
    assert observe(engine, case, str(tmp_path)).steps[0].batches[0].rows == ((8,),)
    with pytest.raises(DriverFailed, match="calls Python code of its author; only --allow-code permits that"):
        observe(engine, case)


def test_code_that_reads_a_source_of_its_own_does_not_run_the_case(engine, target, tmp_path):
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "1.json").write_text('{"n": 8}\n')
    source = f"spark.readStream.schema('n INT').json({str(tmp_path / 'rows')!r})"
    (tmp_path / "my_job.py").write_text(f"def own(spark, frame):\n    return {source}\n")
    case = case_of(
        tmp_path,
        """
        title: x
        streams: {a: "n INT"}
        query: [{from: a}, {call: "my_job:own"}]
        steps: [{add: {a: [[4]]}, expect: {rows: [[8]]}}]
        """,
    )
    verdict = judge(case, target.version, observe(engine, case, str(tmp_path)))
    assert verdict.status == "broken"
    assert "no micro-batch of the query has it as a source; it reads" in verdict.notes[0]


@pytest.mark.parametrize(("operation", "why"), REFUSED)
def test_spark_itself_says_what_only_permission_runs(engine, tmp_path, operation, why):
    check_refused(engine, tmp_path, operation, why)


def test_the_size_of_a_file_is_read_above_other_projections(engine, target, tmp_path):
    """Spark then adds the hidden column, which shows paths, to each of them."""
    case = case_of(
        tmp_path,
        """
        title: x
        streams: {a: "n INT"}
        query:
          - from: a
          - select: ["n + 1 AS m", n]
          - where: n > 0
          - withColumn: [o, m + n]
          - select: [m, _metadata.file_size > 0 AS known, _metadata.file_block_start]
        steps: [{add: {a: [[4]]}, expect: {rows: [[5, true, 0]]}}]
        """,
    )
    assert case.needs_code == ()
    assert judge(case, target.version, observe(engine, case, str(tmp_path))).status == "conforms"


@pytest.mark.parametrize("stop", sample(["spark.sparkContext._jsc.sc().stop()", "spark.stop()"], 1))
def test_an_engine_whose_context_was_stopped_is_dead_and_not_judged(target, tmp_path, stop):
    """The JVM still answers, but no later case could run in it."""
    (tmp_path / "stopping_job.py").write_text(f"def stopping(spark, frame):\n    {stop}\n    return frame\n")
    case = case_of(
        tmp_path,
        """
        title: x
        streams: {a: "n INT"}
        query: [{from: a}, {call: "stopping_job:stopping"}]
        steps: [{add: {a: [[4]]}}]
        """,
    )
    engine = LocalRuntime(tmp_path).start(target, on_progress=ignore_progress)
    try:
        with pytest.raises(EngineDied, match="the engine's JVM stopped answering at"):
            observe(engine, case, str(tmp_path))
    finally:
        engine.close()


def test_an_engine_whose_jvm_is_killed_is_dead_and_not_judged(target, tmp_path):
    engine = LocalRuntime(tmp_path).start(target, on_progress=ignore_progress)
    try:
        children = subprocess.run(
            ["pgrep", "-P", str(engine._connection.transport.pid)], capture_output=True, text=True, check=True
        )
        for child in children.stdout.split():
            os.kill(int(child), signal.SIGKILL)
        case = case_of(tmp_path, "title: x\nstreams: {a: n INT}\nquery: [{from: a}]\nsteps: [{add: {a: [[4]]}}]\n")
        with pytest.raises(EngineDied, match="the engine's JVM stopped answering at"):
            observe(engine, case)
    finally:
        engine.close()


def test_udfs_of_the_authors_modules_work_and_their_mistakes_are_named(target, tmp_path):
    code, cases = own_job(tmp_path)
    check_own_job(LocalRuntime(tmp_path, own_code=code), target, cases)


CLOCK_JOB = """
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor

class Numbering(StatefulProcessor):
    def init(self, handle):
        self._count = handle.getValueState("count", "count BIGINT")

    def handleInputRows(self, key, rows, timerValues):
        count = self._count.get()[0] if self._count.exists() else 0
        for count, _ in enumerate(rows, count + 1):
            yield Row(k=key[0], n=count)
        self._count.update((count,))

    def close(self):
        pass

def numbered(spark, frame):
    return frame.groupBy("k").transformWithState(Numbering(), "k STRING, n BIGINT", "append", "ProcessingTime")

def copied(frame):
    frame.writeStream.queryName("copy").format("json").option("path", {out!r}).start()
"""


def test_a_query_that_runs_by_the_clock_is_idle_once_it_does_nothing(tmp_path):
    """Spark runs one micro-batch after the other for as long as it runs, and never says that everything is processed."""
    (target,) = Targets.load().select(["newest"], obstacle=provision.obstacle)
    (tmp_path / "clock_job.py").write_text(CLOCK_JOB.replace("{out!r}", repr(str(tmp_path / "out"))))
    engine = LocalRuntime(tmp_path, own_code=OwnCode.at([tmp_path])).start(target, on_progress=ignore_progress)
    try:
        for more in ("trigger: availableNow", *([""] if FULL else []), "sink: clock_job:copied"):
            case = case_of(
                tmp_path,
                f"""
                title: x
                streams: {{a: "t TIMESTAMP, k STRING"}}
                query: [{{from: a}}, {{call: "clock_job:numbered"}}]
                {more}
                conf:
                  spark.sql.streaming.stateStore.providerClass: org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
                steps:
                  - {{add: {{a: [[10, x]]}}}}
                  - {{add: {{a: [[11, x]]}}}}
                  - {{idle: {{}}}}
                  - {{restart: graceful}}
                  - {{add: {{a: [[12, x]]}}}}
                """,
            )
            steps = observe(engine, case, str(tmp_path)).steps
            assert [step.error for step in steps] == [None] * len(steps), more
            assert [[batch.rows for batch in step.batches if batch.rows] for step in steps] == [
                [(("x", 1),)],
                [(("x", 2),)],
                [],
                [],
                [(("x", 3),)],
            ]
            assert sum(len(step.batches) for step in steps) == 3
            written = [line for file in (tmp_path / "out").glob("*.json") for line in file.read_text().splitlines()]
            assert sorted(written) == ([f'{{"k":"x","n":{n}}}' for n in (1, 2, 3)] if "sink" in more else [])
    finally:
        engine.close()


def test_a_sink_of_the_authors_writes_what_is_captured(engine, target, tmp_path):
    """Also with state: the micro-batch is computed once, so nothing counts twice. The key of 12:00 goes with the watermark of 12:00."""
    (tmp_path / "my_sink.py").write_text(
        f"def write(frame, batch_id):\n    frame.write.mode('append').json({str(tmp_path / 'out')!r})\n"
        "    frame.where('n > 1').write.mode('append').json(" + repr(str(tmp_path / "large")) + ")\n"
    )
    case = case_of(
        tmp_path,
        """
        title: x
        streams: {a: "t TIMESTAMP, n INT"}
        query: [{from: a}, {withWatermark: [t, 1 minute]}, {dropDuplicates: [t, n]}]
        sink: my_sink:write
        steps:
          - add: {a: [["12:00", 1], ["12:00", 1], ["12:01", 2]]}
            expect: {rows: [["12:00", 1], ["12:01", 2]], state: 1, dropped: 0}
          - add: {a: [["11:00", 3]]}
            expect: {rows: [], dropped: 1}
        """,
    )
    verdict = judge(case, target.version, observe(engine, case, str(tmp_path)))
    assert verdict.status == "conforms", verdict.describe()
    assert sum(len(file.read_text().splitlines()) for file in (tmp_path / "out").glob("*.json")) == 2
    assert sum(len(file.read_text().splitlines()) for file in (tmp_path / "large").glob("*.json")) == 1
