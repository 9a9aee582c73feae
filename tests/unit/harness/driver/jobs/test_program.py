"""Running a program of the author's unchanged, with a pyspark that only remembers what it is asked."""

import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from harness.driver.errors import DriverFailure
from harness.driver.jobs import program as program_module
from harness.driver.jobs.own_code import AuthorCode, AuthorFailed
from harness.driver.jobs.program import ProgramSource
from harness.driver.jobs.query_starts import QueryStarted


class Frame:
    """Stands for a streaming DataFrame."""

    isStreaming = True  # noqa: N815

    def __init__(self, session, of, done=()):
        self.sparkSession = session
        self.of = of
        self.done = done

    @property
    def writeStream(self):  # noqa: N802
        return sys.modules["pyspark.sql.streaming"].DataStreamWriter(self)


def made_pyspark():
    """The modules of a pyspark, whose classes nothing has changed yet."""

    def itself(self, *_, **__):
        return self

    class DataStreamReader:
        def __init__(self, session):
            self._spark = session

        format = schema = option = options = itself

        def load(self, path=None, format=None, schema=None, **options):
            return Frame(self._spark, ("real", path))

        def table(self, tableName):  # noqa: N803
            return Frame(self._spark, ("real", tableName))

        def changes(self, tableName):  # noqa: N803
            raise AssertionError("the changes of a table were read")

        def csv(self, path, schema=None, sep=None):
            return self.load(path)

        def text(self, path, wholetext=False):
            return self.load(path)

    class DataStreamWriter:
        def __init__(self, frame):
            self._df = frame

        format = outputMode = queryName = option = partitionBy = itself  # noqa: N815

        def trigger(self, *, processingTime=None, once=None, availableNow=None):  # noqa: N803
            return self

        def foreachBatch(self, func):  # noqa: N802
            raise AssertionError("a function was sent")

        def start(self, path=None, format=None, outputMode=None, partitionBy=None, queryName=None, **options):  # noqa: N803
            return "really started"

        def toTable(self, tableName, **options):  # noqa: N802, N803
            return "really started"

    class StreamingQueryManager:
        def awaitAnyTermination(self, timeout=None):  # noqa: N802
            raise AssertionError("waits for ever")

        def addListener(self, listener):  # noqa: N802
            raise AssertionError("a listener was added")

    class Builder:
        _options = {"spark.master": "local[1]"}  # noqa: RUF012

        def config(self, key, value):
            self._options[key] = value
            return self

        def getOrCreate(self):  # noqa: N802
            return "another session"

    class SparkSession:
        builder = Builder()

        def __init__(self):
            self.set = {}
            self.dropped = []
            self.conf = SimpleNamespace(set=self.set.__setitem__)
            self.streams = StreamingQueryManager()
            views = [SimpleNamespace(name="orders", isTemporary=True), SimpleNamespace(name="table", isTemporary=False)]
            self.catalog = SimpleNamespace(listTables={"default": views}.__getitem__, dropTempView=self.dropped.append)

        @property
        def readStream(self):  # noqa: N802
            return DataStreamReader(self)

        def stop(self):
            raise AssertionError("the engine was stopped")

    SparkSession.Builder = Builder

    class SparkContext:
        def stop(self):
            raise AssertionError("the engine was stopped")

    modules = {
        name: ModuleType(name) for name in ("pyspark", "pyspark.sql", "pyspark.sql.streaming", "pyspark.sql.dataframe")
    }
    modules["pyspark"].SparkContext = SparkContext
    modules["pyspark.sql"].SparkSession = SparkSession
    for each in (DataStreamReader, DataStreamWriter, StreamingQueryManager):
        setattr(modules["pyspark.sql.streaming"], each.__name__, each)
    return modules


@pytest.fixture
def pyspark(monkeypatch):
    modules = made_pyspark()
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return modules["pyspark.sql"]


@pytest.fixture
def session(pyspark):
    return pyspark.SparkSession()


def program(folder, text, name="acme_job.py"):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(
        "from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n" + textwrap.dedent(text)
    )
    return {"program": name}


def ran(folder, session, text, **called):
    """What a program reads and starts; the DataFrame of a source has its name."""
    called = {**program(folder, text), **called}
    return AuthorCode([str(folder)]).program(called, session, lambda source: Frame(session, source.name))


def test_what_it_reads_and_starts_is_taken_down_and_nothing_starts(tmp_path, session):
    run = ran(
        tmp_path,
        session,
        """
        orders = spark.readStream.schema("a INT").csv("/in/orders/*.csv", sep=";")
        sales = spark.readStream.table("lake.db.sales")
        query = orders.writeStream.queryName("first").outputMode("update").format("parquet").start("/out")
        query.awaitTermination()
        assert query.awaitTermination(5) is True and not query.isActive and query.exception() is None
        sales.writeStream.trigger(availableNow=True).toTable("out")
        sales.writeStream.foreachBatch(func=print).start(outputMode="complete", queryName="third")
        spark.readStream.option("startingVersion", 10).changes(tableName="lake.db.sales").writeStream.start()
        spark.streams.addListener(object())
        spark.streams.awaitAnyTermination()
        spark.stop()
        """,
    )
    assert [(each.name, each.format, each.schema, each.options) for each in run.sources] == [
        ("orders", "csv", "a INT", {"sep": ";"}),
        ("sales", "table", None, {}),
        ("sales_2", "changes", None, {"startingVersion": "10"}),
    ]
    assert [(q.frame.of, q.name, q.output_mode, q.trigger, q.sink, q.at) for q in run.started] == [
        ("orders", "first", "update", "default", "parquet", "acme_job.py:6"),
        ("sales", None, "append", "availableNow", "table", "acme_job.py:9"),
        ("sales", "third", "complete", "default", "foreachBatch", "acme_job.py:10"),
        ("sales_2", None, "append", "default", "parquet", "acme_job.py:11"),
    ]


@pytest.mark.parametrize(
    ("reads", "names"),
    [
        ('format("kafka").option("subscribe", "orders.v1").load()', ["orders_v1"]),
        ('format("kafka").options(subscribePattern="a.*").load()', ["kafka"]),
        ('load("s3a://bucket/in/2026-orders/", format="delta")', ["_2026_orders"]),
        ('option("path", "/in/orders").format("json").load()', ["orders"]),
        ('format("iceberg").load("lake.db.orders")', ["orders"]),
        ('table("`lake`.`orders`")', ["orders"]),
        ('format("rate-micro-batch").load()', ["rate_micro_batch"]),
        ('format("aws-kinesis").option("kinesis.streamName", "shop.clicks").load()', ["shop_clicks"]),
        ('format("kinesis").option("streamName", "clicks").load()', ["clicks"]),
        ('format("org.apache.spark.sql.eventhubs.EventHubsSourceProvider").load()', ["eventhubssourceprovider"]),
        ('load("in.d")', ["in_d"]),
        ('text("/in/notes.d/part=*/{a,b}")', ["notes_d"]),
        ('text("/in/a"), spark.readStream.text("/other/a"), spark.readStream.text("a")', ["a", "a_2", "a_3"]),
    ],
)
def test_a_source_is_named_after_its_topic_stream_path_or_table(tmp_path, session, reads, names, monkeypatch):
    monkeypatch.setattr("harness.driver.jobs.program._of_kafka", lambda frame, source: frame)
    run = ran(tmp_path, session, "spark.readStream." + reads)
    assert [source.name for source in run.sources] == names


def test_it_runs_as_a_process_and_leaves_nothing_behind(tmp_path, session):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "acme_near.py").write_text("loaded = []\n")
    (tmp_path / "conf.txt").write_text("of the project")
    before = sys.argv, [*sys.path], Path.cwd(), {*sys.modules}, sys.modules["__main__"]
    called = program(
        tmp_path,
        """
        import signal, sys, acme_near
        signal.signal(signal.SIGTERM, lambda *_: spark.stop())
        assert __name__ == "__main__" and sys.modules["__main__"].spark is spark
        assert sys.argv[1:] == ["--day", "1"] and sys.argv[0] == __file__
        assert open("conf.txt").read() == "of the project"
        acme_near.loaded.append(1)
        assert acme_near.loaded == [1], "a module keeps what an earlier run left in it"
        SparkSession.builder.config("spark.sql.ansi.enabled", True).config("spark.sql.shuffle.partitions", 64).getOrCreate()
        SparkSession.builder.config("spark.executor.memory", "2g").getOrCreate()
        sys.exit(0)
        """,
        "jobs/acme_job.py",
    )
    code = AuthorCode([str(tmp_path)])
    with ThreadPoolExecutor(1) as thread:  # as in an engine
        for _ in range(2):
            thread.submit(code.program, {**called, "arguments": ["--day", "1"]}, session, None).result()
    assert session.set == {"spark.sql.ansi.enabled": "true"}
    assert session.dropped == ["orders"], "a program that starts anew would find its own view"
    assert (sys.argv, sys.path, Path.cwd(), {*sys.modules}, sys.modules["__main__"]) == before
    assert session.builder._options == {"spark.master": "local[1]"}


def test_a_module_runs_too(tmp_path, session):
    (tmp_path / "acme_pkg").mkdir()
    (tmp_path / "acme_pkg" / "__init__.py").write_text("")
    (tmp_path / "acme_pkg" / "near.py").write_text(
        "from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n"
    )
    (tmp_path / "acme_pkg" / "job.py").write_text(
        "from .near import spark\nspark.readStream.table('a').writeStream.start()\n"
    )
    run = AuthorCode([str(tmp_path)]).program(
        {"program": "acme_pkg.job"}, session, lambda source: Frame(session, source.name)
    )
    assert [query.at for query in run.started] == ["acme_pkg/job.py:2"]


@pytest.mark.parametrize(
    ("text", "raised", "at"),
    [
        ("raise KeyError('x')", "KeyError('x')", "acme_job.py:3"),
        ("import sys; sys.exit(1)", "SystemExit(1)", "acme_job.py:3"),
        ("import sys; sys.exit('no day')", "SystemExit('no day')", "acme_job.py:3"),
        ("spark = (", "SyntaxError(", "acme_job.py:3"),
        ("import acme_gone", "ModuleNotFoundError(", "acme_job.py:3"),
        ("while True:\n    spark.streams.awaitAnyTermination()", "WithoutEnd(", "acme_job.py:4"),
        (
            "while True:\n    try: spark.readStream.table('a').writeStream.start()\n    except Exception: pass",
            "WithoutEnd(",
            "acme_job.py:4",
        ),
    ],
)
def test_its_mistakes_are_its_own(tmp_path, session, text, raised, at):
    with pytest.raises(AuthorFailed) as failed:
        ran(tmp_path, session, text)
    assert failed.value.mistake.raised.startswith(raised)
    assert failed.value.mistake.at == at


GLUE = """
import sys
from awsglue.context import GlueContext
from awsglue.dynamicframe import DynamicFrame
from awsglue.job import Job
from awsglue.transforms import *
from awsglue.utils import getResolvedOptions
from pyspark import SparkContext

args = getResolvedOptions(sys.argv, ["JOB_NAME", "into"])
context = GlueContext(SparkContext())
spark = context.spark_session
job = Job(context)
job.init(args["JOB_NAME"], args)
"""


def test_a_script_of_glue_reads_streams_and_starts_its_query(tmp_path, session):
    session.sparkContext = SimpleNamespace(appName="of the engine")
    text = """
    trips = context.create_data_frame.from_options(
        connection_type="kinesis",
        connection_options={"streamARN": "arn:aws:kinesis:us-east-1:1:stream/trips", "classification": "json", "schema": "a INT"},
    )
    sales = context.create_data_frame.from_catalog(database="lake", table_name="sales", additional_options={"x": 1})
    assert SparkContext().appName == "of the engine" and DynamicFrame.fromDF(sales, context, "s").toDF() is sales
    assert not hasattr(DynamicFrame.fromDF(sales, context, "s"), "__len__")

    def batch(frame, number): ...

    assert sorted(args) == ["JOB_NAME", "TempDir", "into"] and args["TempDir"] == "s3://t"
    assert getResolvedOptions(["x", "--a-b", "c"], ["a-b"]) == {"a_b": "c"}
    context.forEachBatch(frame=trips, batch_function=batch, options={"windowSize": "1 minute", "checkpointLocation": args["into"]})
    job.commit()
    """
    run = ran(
        tmp_path,
        session,
        GLUE + textwrap.dedent(text),
        arguments=["--JOB_NAME", "daily", "--into=s3://x", "--TempDir", "s3://t", "--job-bookmark-option"],
    )
    assert [(each.name, each.format, each.schema) for each in run.sources] == [
        ("trips", "glue-kinesis", "a INT"),
        ("sales", "table", None),
    ]
    assert [(each.frame.of, each.sink, each.at) for each in run.started] == [
        ("trips", "foreachBatch", "acme_job.py:30")
    ]
    assert "awsglue" not in sys.modules


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ApplyMapping.apply(frame=1)", "awsglue's ApplyMapping.apply is not in a trial, which has GlueContext"),
        ("context.create_dynamic_frame.from_catalog('a', 'b')", "awsglue's GlueContext.create_dynamic_frame is not"),
        (
            "context.create_data_frame.from_options('s3', {})",
            "awsglue's create_data_frame of the connection type s3 is not",
        ),
        ("context.forEachBatch(None, print, {'windowSize': '1 minute'})", "Missing checkpointLocation argument"),
        ("getResolvedOptions(sys.argv, ['JOB_NAME', 'day'])", "end the command with -- --day VALUE"),
        ("args['TempDir']", "getResolvedOptions lacks arguments of the job: end the command with -- --TempDir VALUE"),
        (
            "from awsgluedq.transforms import EvaluateDataQuality as q; q().process_rows()",
            "awsglue's EvaluateDataQuality is not",
        ),
    ],
)
def test_what_a_trial_has_not_of_glue_is_named(tmp_path, session, text, said):
    session.sparkContext = SimpleNamespace()
    with pytest.raises(AuthorFailed) as failed:
        ran(tmp_path, session, GLUE + text, arguments=["--JOB_NAME", "daily", "--into", "x"])
    assert said in failed.value.mistake.raised
    assert failed.value.mistake.at == "acme_job.py:17"


def test_a_file_that_is_not_there_is_said(tmp_path, session):
    with pytest.raises(AuthorFailed, match=r"there is no gone\.py in"):
        AuthorCode([str(tmp_path)]).program({"program": "gone.py"}, session, None)


def test_a_case_names_which_query_it_means(tmp_path, session):
    called = program(tmp_path, "for name in 'ab': spark.readStream.table(name).writeStream.start()")
    code = AuthorCode([str(tmp_path)])

    def query(number):
        return code.query({**called, "query": number}, session, lambda source: Frame(session, source.name))

    assert (query(1).of, query(2).of) == ("a", "b")
    with pytest.raises(AuthorFailed, match=r"acme_job\.py started 2 queries, not 3"):
        query(3)


def test_others_use_pyspark_as_ever_meanwhile_and_afterwards(tmp_path, pyspark, session):
    seen = []

    def other():
        mine = pyspark.SparkSession()
        seen.append(mine.readStream.load("/mine").of)
        seen.append(pyspark.SparkSession.builder.getOrCreate())
        with pytest.raises(QueryStarted):
            Frame(mine, "mine").writeStream.start()

    def read(source):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        # What the harness itself reads meanwhile is none of the program's sources.
        return session.readStream.load("/of/the/harness")

    called = program(tmp_path, "assert spark.readStream.table('a').of == ('real', '/of/the/harness')")
    run = AuthorCode([str(tmp_path)]).program(called, session, read)
    other()
    assert len(run.sources) == 1
    assert seen == [("real", "/mine"), "another session"] * 2


def test_queries_of_its_threads_follow_those_of_its_main_thread_by_line_and_name(tmp_path, session):
    run = ran(
        tmp_path,
        session,
        """
        import threading, time
        from concurrent.futures import ThreadPoolExecutor
        def start(name, seconds):
            time.sleep(seconds)
            mine = SparkSession.builder.getOrCreate()
            mine.readStream.table(name).writeStream.queryName(name).start()
            mine.stop()
        thread = threading.Thread(target=start, args=("c", 0))
        thread.start()
        thread.join()
        pool = ThreadPoolExecutor(2)
        pool.submit(start, "b", 0)
        pool.submit(start, "a", 0.2)
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        spark.readStream.table("d").writeStream.start()
        """,
    )
    assert [(query.frame.of, query.at) for query in run.started] == [
        ("d", "acme_job.py:18"),
        *((name, "acme_job.py:9") for name in "abc"),
    ]


UNHEARD = {
    "a thread that goes on": "threading.Thread(target=lambda: (time.sleep(1.5), start())).start()",
    "a thread that threading does not know": "_thread.start_new_thread(start, ()); time.sleep(0.5)",
    "a fork": "if os.fork() == 0:\n    start()\n    os._exit(0)\nos.wait()",
    "multiprocessing": "each = multiprocessing.get_context('fork').Process(target=start); each.start(); each.join()",
}


@pytest.mark.parametrize("how", UNHEARD.values(), ids=UNHEARD)
def test_a_query_that_starts_where_it_is_not_held_is_refused_and_that_is_kept(tmp_path, session, how):
    code = AuthorCode([str(tmp_path)])
    start = """
        import _thread, multiprocessing, os, threading, time
        def start():
            try:
                spark.readStream.table("a").writeStream.start()
            except Exception:
                pass
    """
    called = program(tmp_path, textwrap.dedent(start) + how)
    assert code.program(called, session, lambda source: Frame(session, source.name)).started == []
    deadline = time.monotonic() + 60
    while not code.calls.refused and time.monotonic() < deadline:
        time.sleep(0.05)
    with pytest.raises(DriverFailure, match=r"about to start a query at acme_job\.py:\d+, .*it is not compared"):
        code.check_starts()


def test_what_it_leaves_for_the_end_of_its_process_is_done_at_its_end(tmp_path, session):
    run = ran(
        tmp_path,
        session,
        """
        import atexit
        @atexit.register
        def start(name="b"):
            spark.readStream.table(name).writeStream.start()
        atexit.register(start, "a")
        atexit.register(lambda: 1 / 0)
        """,
    )
    assert [query.frame.of for query in run.started] == ["a", "b"]


@pytest.mark.parametrize(
    "how",
    [
        "atexit.register(spark.readStream.table('a').writeStream.start)",
        "acme_helpers.later(lambda: start(a='a'))",
        "acme_helpers.kept = Held(); weakref.finalize(acme_helpers.kept, start, a='a')",
        "held = Held(); held.itself = held; weakref.finalize(held, start, 'a'); del held",
        "class Last:\n    def __del__(self): start('a')\nlast = Last()",
    ],
)
def test_nor_does_it_matter_who_calls_at_its_end(tmp_path, session, how):
    (tmp_path / "acme_helpers.py").write_text("import atexit\ndef later(what): atexit.register(what)\n")
    run = ran(
        tmp_path,
        session,
        """
        import atexit, weakref
        import acme_helpers
        class Held: pass
        def start(a):
            spark.readStream.table(a).writeStream.start()
        """
        + how.replace("\n", "\n" + " " * 8),
    )
    assert [query.frame.of for query in run.started] == ["a"]


def test_what_a_finalizer_need_not_do_at_the_end_is_not_done(tmp_path, session):
    run = ran(
        tmp_path,
        session,
        """
        import weakref
        class Held: pass
        held = Held()
        weakref.finalize(held, lambda: spark.readStream.table("a").writeStream.start()).atexit = False
        """,
    )
    assert run.started == []


def test_what_a_function_starts_in_a_thread_is_refused_and_that_is_kept(tmp_path, session):
    (tmp_path / "acme_threads.py").write_text(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def build(session, frame):\n    ThreadPoolExecutor(1).submit(frame.writeStream.start)\n    return frame\n"
    )
    code = AuthorCode([str(tmp_path)])
    frame = Frame(session, "a")
    frame.schema = None
    assert code.frame("acme_threads:build", session, frame) is frame
    with pytest.raises(DriverFailure, match=r"Start it in the main thread"):
        code.check_starts()


def test_what_it_says_of_a_query_is_taken_down_too(tmp_path, session):
    run = ran(
        tmp_path,
        session,
        """
        sales = spark.readStream.table("sales")
        sales.writeStream.option("a", 1).trigger(processingTime="1 minute").partitionBy("x", "y").start("/out", b=True)
        sales.writeStream.foreachBatch(lambda frame, batch: None).start()
        """,
    )
    said = {"a": "1", "trigger": "processingTime=1 minute", "partitionby": "('x', 'y')", "path": "/out", "b": "True"}
    assert [query.options for query in run.started] == [said, {"function": "<lambda>:6"}]


class Reader:
    """Stands for a ``DataFrameReader`` that remembers what it is asked."""

    def __init__(self):
        self.said = []
        self.session = SimpleNamespace(read=self)

    def __getattr__(self, name):
        def say(*arguments, **named):
            self.said.append((name, *arguments, *([named] if named else [])))
            return self

        return say


def asked(source):
    reader = Reader()
    program_module.read_once(reader.session, source, str(Path.cwd()))
    return reader.said


def test_a_source_is_read_once_as_it_is_now(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    said = {"multiLine": "true"}
    assert asked(ProgramSource("in", "json", "a INT", path="in", options=said)) == [
        ("format", "json"),
        ("options", said),
        ("schema", "a INT"),
        ("load", str(tmp_path / "in")),
    ]
    assert asked(ProgramSource("in", "delta", path="s3a://b/in")) == [
        ("format", "delta"),
        ("options",),
        ("load", "s3a://b/in"),
    ]
    assert asked(ProgramSource("t", "table", path="db.t")) == [("table", "db.t")]
    changes = ProgramSource("t", "changes", path="db.t", options={"startingVersion": "1"})
    assert asked(changes) == [("options", {"startingVersion": "1"}), ("changes", "db.t")]


def test_a_topic_is_read_from_its_beginning(monkeypatch):
    columns = SimpleNamespace(col=lambda name: SimpleNamespace(cast=lambda _: SimpleNamespace(alias=lambda _: name)))
    monkeypatch.setitem(sys.modules, "pyspark.sql", SimpleNamespace(functions=columns))
    said = {"subscribe": "clicks", "startingOffsets": "latest", "failOnDataLoss": "false"}
    format, options, load, select = asked(ProgramSource("clicks", "kafka", options=said))
    assert (format, options, load) == (("format", "kafka"), ("options", {"subscribe": "clicks"}), ("load",))
    assert select[1:4] == ("key", "value", "topic")


PIPELINE = """
import {0} as dp


@dp.{1}
def raw():
    return spark.readStream.table("readings")


@dp.table(name="silver", comment="c")
@dp.expect("a sensor", "sensor IS NOT NULL")
def cleaned():
    return dp.read_stream("LIVE.raw")


@dp.table
def gold():
    return dp.read("silver")


dp.create_streaming_table("late")


@dp.append_flow(target="late")
def some():
    return spark.readStream.table("silver")
"""


@pytest.mark.parametrize(("module", "view"), [("dlt", "view"), ("pyspark.pipelines", "temporary_view")])
def test_each_streaming_flow_of_a_pipeline_is_a_query(tmp_path, session, module, view):
    class AnalysisException(Exception):
        pass

    def table(name):
        raise AnalysisException(f"[TABLE_OR_VIEW_NOT_FOUND] The table or view `{name}` cannot be found.")

    session.read = SimpleNamespace(table=table)
    before = dict(sys.modules)
    run = ran(tmp_path, session, PIPELINE.format(module, view))
    assert [source.name for source in run.sources] == ["readings", "silver"]
    started = [(query.frame.of, query.name, query.output_mode, query.trigger, query.sink) for query in run.started]
    assert started == [
        ("readings", "silver", "append", "availableNow", "table"),
        ("silver", "some", "append", "availableNow", "table"),
    ]
    assert [query.options for query in run.started] == [{"flow": "silver", "batch": "gold"}, {"flow": "late"}]
    assert [query.at for query in run.started] == ["acme_job.py:12", "acme_job.py:26"]
    assert "dlt" not in sys.modules
    assert sys.modules.get("pyspark.pipelines") is before.get("pyspark.pipelines")


EXPECTATIONS = """
import dlt

@dlt.view
@dlt.expect_all_or_drop({"a": "x > 0"})
def raw():
    return spark.readStream.table("readings")

@dlt.expect_or_drop("b", "y > 0")
@dlt.expect_or_fail("c", "z > 0")
@dlt.table
@dlt.expect_or_drop(name="d", condition="u > 0")
def silver():
    return dlt.read_stream("raw")

dlt.create_streaming_table("late", expect_all_or_drop={"e": "v > 0"}, expect_all={"f": "w > 0"})

@dlt.append_flow(target="late")
def some():
    return spark.readStream.table("silver")
"""


def test_expectations_that_drop_rows_are_filters(tmp_path, session, monkeypatch):
    kept = []
    monkeypatch.setattr(Frame, "where", lambda frame, condition: kept.append(condition) or frame, raising=False)
    run = ran(tmp_path, session, EXPECTATIONS)
    assert [query.name for query in run.started] == ["silver", "some"]
    assert kept == ["x > 0", "u > 0", "y > 0", "v > 0"]


def test_what_databricks_alone_does_with_changes_is_named_beside_the_flows(tmp_path, session):
    text = """
    import dlt
    dlt.create_streaming_table("users")
    dlt.create_auto_cdc_flow(target="users", source="clicks", keys=["id"], sequence_by="at", stored_as_scd_type=2)
    dlt.apply_changes("orders", "clicks", ["id"])

    @dlt.table
    def all_clicks():
        return spark.readStream.table("clicks")
    """
    (query,) = ran(tmp_path, session, textwrap.dedent(text)).started
    assert query.options["batch"] == "users (create_auto_cdc_flow), orders (apply_changes)"


NOT_WRITTEN = """
query = spark.readStream.table("orders").writeStream.start("s3://out")
raise RuntimeError({!r})
"""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("[TABLE_OR_VIEW_NOT_FOUND] The table or view `out` cannot be found", ""),
        ("Path does not exist: s3://out", ""),
        ("[PATH_NOT_FOUND] x", ""),
        ("spark_catalog requires a single-part namespace, but got `main`.`sales`.", ""),
        (
            'org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "abfss"\nat x',
            'No FileSystem for scheme "abfss"',
        ),
        (
            "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta. Please",
            "Failed to find the data source: delta. Please",
        ),
        ("`s3://out` is not a Delta table.", ""),
    ],
)
def test_a_program_that_reads_what_its_query_would_have_written_ends_there(tmp_path, session, error, said):
    run = ran(tmp_path, session, NOT_WRITTEN.format(error))
    assert [query.sink for query in run.started] == ["parquet"]
    assert run.passed_over == {"acme_job.py:5": said}
    with pytest.raises(AuthorFailed, match="not found"):
        ran(tmp_path, session, NOT_WRITTEN.format("orders not found"))
    with pytest.raises(AuthorFailed):
        ran(tmp_path, session, f"raise RuntimeError({error!r})")


def test_a_catalog_of_the_platform_is_not_used_and_other_sql_fails_as_ever(tmp_path, session):
    asked = []

    def sql(self, text):
        asked.append(text)
        if text != "SELECT 1 WHERE false":
            raise ValueError("no catalog")

    type(session).sql = sql
    used = "use catalog main", "USE retail", " SET CATALOG main"
    ran(tmp_path, session, "\n".join(f"spark.sql({text!r})" for text in used))
    assert asked == [text for use in used for text in (use, "SELECT 1 WHERE false")]
    with pytest.raises(AuthorFailed, match="no catalog"):
        ran(tmp_path, session, "spark.sql('SELECT used FROM t')")


def test_a_connection_string_of_event_hubs_needs_no_package(tmp_path, session, monkeypatch):
    class JavaPackage:
        def __init__(self, name):
            self._fqn = name

        def __getattr__(self, name):
            return JavaPackage(f"{self._fqn}.{name}")

    gateway = SimpleNamespace(JavaPackage=JavaPackage)
    monkeypatch.setitem(sys.modules, "py4j.java_gateway", gateway)
    session.apache = JavaPackage("org.apache")
    text = "assert spark.apache.spark.eventhubs.EventHubsUtils.encrypt('Endpoint=sb://x') == 'Endpoint=sb://x'\n"
    with pytest.raises(AuthorFailed, match="'JavaPackage' object is not callable"):
        ran(tmp_path, session, text + "spark.apache.spark.eventhubs.EventHubsUtils.decrypt('x')")
    assert not callable(session.apache)


def test_a_notebook_shows_frames_and_writes_tables_as_databricks_lets_it(tmp_path, session):
    cells = "frame = spark.readStream.table('orders')\nframe.display()\nframe.writeStream.table('lake.gold')"
    cells = {"job.ipynb": ["# job.ipynb, cell 1, line 1, Python\n" + cells]}
    sys.modules["pyspark.sql.dataframe"].DataFrame = Frame
    code = AuthorCode([str(tmp_path)], by_value=False)
    run = code.program({"program": "job.ipynb", "cells": cells}, session, lambda source: Frame(session, source.name))
    assert [(query.sink, query.options["path"]) for query in run.started] == [("table", "lake.gold")]
    writer = sys.modules["pyspark.sql.streaming"].DataStreamWriter
    assert not any(hasattr(owner, name) for owner, name in ((Frame, "display"), (writer, "table")))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "dlt.create_external_table(name='a')",
            "create_external_table of a declarative pipeline is not in a trial, which has append_flow",
        ),
        ("dlt.table(name='a', spark_conf={'a': 'b'})", "spark_conf of a flow is not in a trial: leave it out"),
        ("dlt.table(nmae='a')", "got an unexpected keyword argument 'nmae'"),
        ("dlt.table(lambda: spark.read.table('elsewhere'))", "`elsewhere` cannot be found"),
    ],
)
def test_what_a_trial_has_not_of_a_pipeline_is_named(tmp_path, session, text, said):
    class AnalysisException(Exception):
        pass

    def table(name):
        raise AnalysisException(f"The table or view `{name}` cannot be found.")

    session.read = SimpleNamespace(table=table)
    with pytest.raises(AuthorFailed) as failed:
        ran(tmp_path, session, "import dlt\n" + text)
    assert said in failed.value.mistake.raised
    assert failed.value.mistake.at == "acme_job.py:4"
