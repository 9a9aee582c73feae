"""Whether a failure becomes an error of Spark or one of the driver's own, without a pyspark."""

import re
import sys
import textwrap
import threading
from contextlib import contextmanager, nullcontext
from types import ModuleType, SimpleNamespace

import pytest

from harness.driver import execution
from harness.driver.dataframe import UnknownOperation
from harness.driver.errors import DriverFailure, EngineLost, FailureReason, reason_of
from harness.driver.files import LocalFiles
from harness.driver.serve import _message
from harness.driver.state_functions import STATEFUL_PROCESSORS

REFUSES = "def where(self, condition):\n    raise ValueError('cannot resolve ' + condition)\n"
LACKS = "def groupBy(self, *names):\n    return object()\n"


def frame(text):
    """A DataFrame whose method is code of pyspark."""
    found = {"__name__": "pyspark.sql.dataframe", "__package__": "pyspark.sql"}
    exec(compile(text, "/opt/site-packages/pyspark/sql/dataframe.py", "exec"), found)
    methods = {name: value for name, value in found.items() if callable(value)}
    return type("DataFrame", (), methods)()


def backend(one):
    return SimpleNamespace(
        files=LocalFiles(),
        makes_directories=False,
        sends_functions=False,
        new_session=lambda _: SimpleNamespace(conf=SimpleNamespace(set=lambda *_: None), readStream=None),
        end_session=lambda _: None,
        executors=frozenset,
        is_alive=lambda: True,
        native=lambda _: None,
        arrivals=lambda *_: SimpleNamespace(paced=True, stage=lambda _: [], read=lambda *_: one, close=lambda: None),
        capture=lambda *_: SimpleNamespace(attach=lambda writer, _: writer, breakpoint=None),
    )


def request(tmp_path, operation=None, **more):
    """A request for a case that reads the streams ``a`` and ``b``."""
    stream = SimpleNamespace(ddl="t TIMESTAMP", files=1)
    asked = {
        "case": "x",
        "directory": str(tmp_path / "x"),
        "streams": {"a": stream, "b": stream},
        "query": [{"from": "a"}, operation or {"where": "x > 1"}],
        "output_mode": "append",
        "trigger": "default",
        "conf": {},
        "steps": [execution.StepRequest(action="start", batches=[])],
        "first": 1,
        "tell": False,
        "discard": [],
    }
    return execution.CaseRequest(**{**asked, **more})


def refusing(tmp_path, there=None, **more):
    """An execution of a query that Spark refuses."""
    return execution.Execution(there or backend(frame(REFUSES)), request(tmp_path, **more))


def steps(tmp_path, text, operation):
    return list(execution.Execution(backend(frame(text)), request(tmp_path, operation)).run())


def test_what_pyspark_refuses_is_an_error_of_the_step(tmp_path):
    (step,) = steps(tmp_path, REFUSES, {"where": "x > 1"})
    assert step["error"] == {"stage": "analysis", "classes": ["ValueError"], "message": "cannot resolve x > 1"}


def test_a_method_that_the_release_lacks_is_one_too(tmp_path):
    operation = {"applyInPandasWithState": {"by": ["k"], "with": "count_rows"}}
    (step,) = steps(tmp_path, LACKS, operation)
    assert step["error"] == {
        "stage": "analysis",
        "classes": ["AttributeError"],
        "message": "'object' object has no attribute 'applyInPandasWithState'",
    }


@pytest.mark.parametrize(
    ("lacking", "operation"),
    [
        ("pandas", {"applyInPandasWithState": {"by": ["k"], "with": "count_rows"}}),
        ("pyarrow", {"applyInPandasWithState": {"by": ["k"], "with": "count_rows"}}),
        ("google.protobuf", {"transformWithState": {"by": ["k"], "with": next(iter(STATEFUL_PROCESSORS))}}),
    ],
)
def test_a_python_without_the_packages_of_state_functions_is_named_in_a_sentence(
    tmp_path, monkeypatch, lacking, operation
):
    for name in ("pandas", "pyarrow", "google.protobuf"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name) if name != lacking else None)
    methods = dict.fromkeys(("applyInPandasWithState", "transformWithStateInPandas"))
    has_it = f"def groupBy(self, *names):\n    return type('Grouped', (), {methods})()\n"
    with pytest.raises(DriverFailure) as raised:
        steps(tmp_path, has_it, operation)
    assert raised.value.reason is FailureReason.PACKAGES_MISSING
    assert re.fullmatch(
        rf"state functions need packages that the engine's Python lacks \(.*{lacking}.*\): "
        rf"{re.escape(sys.executable)} -m pip install pandas pyarrow protobuf",
        _message(raised.value),
    )


def called(tmp_path, text, one=None, operation=None):
    """The error of a case that calls ``build`` of a module with this text."""
    (tmp_path / "src" / "acme_jobs").mkdir(parents=True, exist_ok=True)
    (tmp_path / "src" / "acme_jobs" / "totals.py").write_text(textwrap.dedent(text))
    code = [str(tmp_path), str(tmp_path / "src")]
    asked = request(tmp_path, operation or {"call": "acme_jobs.totals:build"}, code=code)
    before = {*sys.modules}, [*sys.path]
    try:
        (step,) = execution.Execution(backend(one or frame(REFUSES)), asked).run()
    finally:
        for name in {*sys.modules} - before[0]:
            if name.startswith("acme_jobs"):
                del sys.modules[name]
        sys.path[:] = before[1]
    return step["error"]


def test_a_function_that_the_user_has_not_written_is_their_mistake(tmp_path):
    error = called(tmp_path, "", operation={"call": "no_such_module:totals"})
    assert (error["stage"], error["classes"]) == ("analysis", ["ModuleNotFoundError", "ImportError"])
    assert error["own_code"]["raised"] == """ModuleNotFoundError("No module named 'no_such_module'")"""
    assert error["own_code"]["at"] is None


def test_what_the_users_function_raises_names_its_line_and_what_it_printed(tmp_path):
    error = called(
        tmp_path,
        """
        import os

        def build(spark, events):
            print("reading the settings")
            return events.where(setting("MY_ENV_VAR"))

        def setting(name):
            return os.environ[name]
        """,
    )
    assert error["classes"][0] == "KeyError"
    assert error["own_code"] == {
        "raised": "KeyError('MY_ENV_VAR')",
        "at": "acme_jobs/totals.py:9",
        "during": "while building the query",
        "traceback": textwrap.dedent(
            """\
            File "acme_jobs/totals.py", line 6, in build
              return events.where(setting("MY_ENV_VAR"))
            File "acme_jobs/totals.py", line 9, in setting
              return os.environ[name]
            KeyError: 'MY_ENV_VAR'"""
        ),
        "printed": "reading the settings\n",
    }


def test_what_spark_refuses_of_it_is_none(tmp_path):
    error = called(tmp_path, "def build(spark, events):\n    return events.where('x > 1')\n")
    assert error == {"stage": "analysis", "classes": ["ValueError"], "message": "cannot resolve x > 1"}


@pytest.mark.parametrize(
    ("text", "raised"),
    [
        ("import sys\ndef build(spark, events):\n    sys.exit(3)\n", "SystemExit(3)"),
        ("def build(spark):\n    return spark\n", "does not take the 2 arguments of the case"),
        ("def build(spark, events):\n    pass\n", "acme_jobs.totals:build returned None, not a DataFrame"),
        ("build = 7\n", "acme_jobs.totals:build is not a function"),
        ("def build(spark, events):\n    return spark.\n", "SyntaxError('invalid syntax')"),
        ("import no_such_package\n", "ModuleNotFoundError("),
        ("def other():\n    pass\n", "AttributeError("),
    ],
    ids=range(7),
)
def test_every_other_mistake_of_a_function_is_one_too_and_none_hangs(tmp_path, text, raised):
    error = called(tmp_path, text)
    assert error["stage"] == "analysis"
    assert raised in error["own_code"]["raised"]


def test_a_function_gets_the_streams_that_the_case_names(tmp_path):
    text = "def build(spark, *frames):\n    raise ValueError(len(frames))\n"
    error = called(tmp_path, text, operation={"call": "acme_jobs.totals:build", "with": ["a", "b", "a"]})
    assert error["own_code"]["raised"] == "ValueError(3)"


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        ({"groupBy": ["k"]}, "AttributeError"),
        ({"noSuchOperation": ["k"]}, "UnknownOperation"),
        ({"applyInPandasWithState": {"by": ["k"], "with": "no_such_function"}}, "KeyError"),
        ({"withWatermark": ["t"]}, "ValueError"),
    ],
)
def test_a_mistake_of_the_driver_is_never_an_error_of_spark(tmp_path, monkeypatch, operation, error):
    for name in ("pyspark", "pyspark.sql"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["pyspark.sql"].functions = SimpleNamespace(expr=str)
    with pytest.raises((LookupError, ValueError, AttributeError, UnknownOperation)) as caught:
        steps(tmp_path, LACKS, operation)
    assert type(caught.value).__name__ == error
    assert reason_of(caught.value) == "driver-error"


def test_errors_of_the_servers_python_are_not_taken_for_errors_of_spark(tmp_path):
    with pytest.raises(DriverFailure, match="KeyError: 'rows'"):
        refusing(tmp_path)._describe(execution.QueryFailed("run", DriverFailure("KeyError: 'rows'")))


def test_nor_is_what_a_state_function_did_wrong(tmp_path):
    seen = ValueError("An exception was thrown from the Python worker: driver.origin.DriverError: KeyError: 'k'")
    with pytest.raises(DriverFailure, match="KeyError: 'k'"):
        refusing(tmp_path)._describe(execution.QueryFailed("run", seen))


def test_nor_is_the_drivers_own_sink_that_is_not_sent_through_connect(tmp_path):
    seen = ValueError("[STREAMING_CONNECT_SERIALIZATION_ERROR] Cannot serialize the function `foreachBatch`.")
    with pytest.raises(DriverFailure, match="Cannot serialize"):
        refusing(tmp_path)._describe(execution.QueryFailed("start", seen))


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("org.apache.spark.SparkException: Job aborted", ["SparkException"]),
        ("see java.lang.IllegalStateException for more", ["IllegalStateException"]),
        (
            "org.apache.spark.sql.execution.streaming.state.StateSchemaNotCompatible: Provided",
            ["StateSchemaNotCompatible"],
        ),
        ("of org.apache.spark.sql.Dataset and a.b.C", []),
        ("[STATE_SCHEMA_NOT_COMPATIBLE] no", ["STATE_SCHEMA_NOT_COMPATIBLE"]),
        ("a." * 100_000 + "a", []),
        ("a" * 200_000, []),
    ],
    ids=range(7),
)
def test_classes_of_an_error_whose_cause_is_text_only(text, classes):
    assert execution.describe(ValueError(text), "run")["classes"][1:] == classes


@pytest.mark.parametrize(
    ("place", "folders"), [("moved", {"checkpoint-moved"}), ("copied", {"checkpoint", "checkpoint-moved"})]
)
def test_the_query_starts_in_the_folder_to_which_its_checkpoint_has_gone(tmp_path, place, folders):
    (step,) = started_elsewhere(tmp_path, place)
    assert {path.name for path in (tmp_path / "x").iterdir()} == folders
    assert step["watermark"] == 7  # of the commit there
    assert step["error"]["message"] == "cannot resolve x > 1"


def test_the_query_that_begins_anew_can_read_the_state_of_the_checkpoint_before(tmp_path):
    (step,) = started_elsewhere(tmp_path, "new")
    assert {path.name for path in (tmp_path / "x").iterdir()} == {"before"}
    assert step["watermark"] == 0
    assert step["error"]["message"] == f"read {tmp_path / 'x' / 'before'}"


def test_a_later_engine_resumes_in_the_folder_to_which_the_checkpoint_has_gone(tmp_path):
    started_elsewhere(tmp_path, "moved")
    assert refusing(tmp_path, first=3)._checkpoint.path.endswith("/checkpoint-moved")


def started_elsewhere(tmp_path, place):
    """The step of a restart in another folder, on a backend that refuses the query, and whose sessions say what they read."""
    commits = tmp_path / "x" / "checkpoint" / "commits"
    commits.mkdir(parents=True)
    (commits / "0").write_text('v1\n{"nextBatchWatermarkMs":7}')
    (commits.parent / "offsets").mkdir()
    (commits.parent / "offsets" / "0").write_text("v1\n{}")
    restart = execution.StepRequest(action="restart", batches=[], how="graceful", checkpoint=place)

    def load(path):
        raise ValueError(f"read {path}")

    there = backend(frame(REFUSES))
    session = there.new_session(0)
    session.read = SimpleNamespace(format=lambda _: SimpleNamespace(load=load))
    there.new_session = lambda _: session
    return list(refusing(tmp_path, there, steps=[restart]).run())


def repartitioned(tmp_path, repartition):
    """The steps of a case that divides its state anew, on a backend with this method."""
    restart = execution.StepRequest(action="restart", batches=[], how="graceful", repartition=3)
    there = backend(frame(REFUSES))
    there.repartition = repartition
    return list(refusing(tmp_path, there, steps=[restart]).run())


def test_the_state_is_divided_before_the_query_starts_again(tmp_path):
    told = []
    (step,) = repartitioned(tmp_path, lambda _, checkpoint, partitions: told.append((checkpoint, partitions)))
    assert told == [(str(tmp_path / "x" / "checkpoint"), 3)]
    assert step["error"]["stage"] == "analysis"  # of the query, which this backend refuses


def test_a_release_that_cannot_divide_state_says_so_where_the_query_would_start(tmp_path):
    (step,) = repartitioned(tmp_path, lambda session, *_: execution.method(session, "_streamingCheckpointManager"))
    assert (step["error"]["stage"], step["error"]["classes"]) == ("start", ["AttributeError"])
    assert "_streamingCheckpointManager" in step["error"]["message"]


class Query:
    """As much of a running query as the driver asks for."""

    def __init__(self, *, rests=True, active=True):
        self.isActive, self.stopped = active, threading.Event()
        self._rests = rests

    def processAllAvailable(self):  # noqa: N802
        if not self._rests:
            assert self.stopped.wait(60), "it runs for ever"

    awaitTermination = processAllAvailable  # noqa: N815

    def stop(self):
        self.stopped.set()


def waiting(tmp_path, query, entries=(), *, alive=True, trigger="default"):
    """An execution of this query, which runs micro-batches by the clock if it never rests."""
    there = backend(frame(REFUSES))
    there.is_alive = lambda: alive
    there.cause = lambda _query, _capture, error: error
    progress = [{"batchId": number, "durationMs": {"addBatch": 1}, "sources": []} for number in range(9)]
    there.recent = lambda _, seen: ([*entries, *progress][seen:], 0)
    running = refusing(tmp_path, there)
    running._query, running._by_the_clock, running._trigger = query, not query._rests, trigger
    running._capture = SimpleNamespace(rows=lambda _: [])
    return running


def test_a_query_that_time_alone_keeps_running_is_idle_once_it_does_nothing(tmp_path):
    query = Query(rests=False)
    waiting(tmp_path, query)._drain()
    assert not query.stopped.is_set()
    query.stop()


def test_such_a_query_is_stopped_where_every_action_is_a_run(tmp_path):
    query = Query(rests=False)
    waiting(tmp_path, query, trigger="availableNow")._await_termination()
    assert query.stopped.is_set()


def test_so_is_one_that_the_sink_of_the_author_started(tmp_path):
    """Its plan is not known, so every query of a sink may be one. It never rested, and the case had no answer."""
    query, failed = Query(rests=False), Query()
    query.exception, failed.exception = lambda: None, lambda: ValueError("it failed")
    running = waiting(tmp_path, Query())
    running._own_queries._started = [query]
    running._drain()
    assert not query.stopped.is_set()
    running._own_queries._started = [failed]
    with pytest.raises(execution.QueryFailed) as caught:
        running._drain()
    assert isinstance(caught.value.cause, ValueError)
    query.stop()


def test_what_such_a_query_failed_with_is_its_error(tmp_path):
    query = Query(rests=False)
    query.processAllAvailable = lambda: "a" + 1
    running = waiting(tmp_path, query)
    running._backend.recent = lambda *_: ([], 0)
    with pytest.raises(execution.QueryFailed) as caught:
        running._drain()
    assert isinstance(caught.value.cause, TypeError)


def test_a_query_that_something_else_stopped_has_not_read_everything(tmp_path):
    """Spark then says that everything is processed."""
    running = waiting(tmp_path, Query(active=False))
    with pytest.raises(execution.QueryFailed) as caught:
        running._drain()
    with pytest.raises(DriverFailure, match="stopped before it had read everything"):
        running._describe(caught.value)


@pytest.mark.parametrize("trigger", ["once", "default"])
def test_an_engine_that_loses_its_context_is_lost(tmp_path, trigger):
    running = waiting(tmp_path, Query(active=False), alive=False, trigger=trigger)
    with pytest.raises(execution.QueryFailed) as caught:
        running._await_termination() if trigger == "once" else running._drain()
    with pytest.raises(EngineLost):
        running._describe(caught.value)


def test_a_checkpoint_is_copied_only_while_no_micro_batch_runs(tmp_path):
    one, looks = backend(frame(REFUSES)), []
    running = refusing(tmp_path, one)
    running._query = Query()
    checkpoint = tmp_path / "x" / "checkpoint"
    for log in ("offsets", "commits"):
        (checkpoint / log).mkdir(parents=True)
    (checkpoint / "offsets" / "0").write_text("v1\n{}\n")

    @contextmanager
    def paused(_):
        looks.append(0)
        if len(looks) == 3:
            (checkpoint / "commits" / "0").write_text("v1\n{}\n")
        yield

    one.planning_paused = paused
    running._keep(str(tmp_path / "copy"))
    assert len(looks) == 3
    assert (tmp_path / "copy" / "checkpoint" / "commits" / "0").exists()


def test_a_query_that_never_rests_has_no_copy(tmp_path, monkeypatch):
    one = backend(frame(REFUSES))
    one.planning_paused = lambda _: nullcontext()
    monkeypatch.setattr(execution, "_LOOKS", 2)
    running = refusing(tmp_path, one)
    (tmp_path / "x" / "checkpoint" / "offsets").mkdir(parents=True)
    (tmp_path / "x" / "checkpoint" / "offsets" / "0").write_text("v1\n{}\n")
    with pytest.raises(DriverFailure, match="never rests"):
        running._keep(str(tmp_path / "copy"))
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("trigger", ["once", "availableNow"])
def test_a_query_between_its_runs_has_a_copy_of_its_checkpoint_and_no_plan(tmp_path, monkeypatch, trigger):
    """After a restart no query is there whose planning could be paused, nor one that has a plan."""
    there = backend(frame(REFUSES))
    there.planning_paused = there.plan = lambda query, *_: query._jsq
    steps = [
        execution.StepRequest(action="restart", batches=[], how="graceful", plan=True),
        execution.StepRequest(action="idle", batches=[], keep=str(tmp_path / "copy")),
    ]
    running = refusing(tmp_path, there, trigger=trigger, steps=steps)
    (tmp_path / "x").mkdir()
    monkeypatch.setattr(running, "_act", running._restart)
    seen = [*running.run()]
    assert [(step["plan"], step["error"]) for step in seen] == [(None, None)] * 2
    assert (tmp_path / "copy").is_dir()
