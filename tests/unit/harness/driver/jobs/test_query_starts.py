"""Who may start a query: the harness, and the sink that a case names."""

import threading
from contextlib import suppress
from types import SimpleNamespace

import pytest

from harness.driver.jobs.query_starts import (
    QueryStarted,
    allowed,
    choose_manager,
    guard,
    guard_reader,
    no_starts,
    record_refusals,
)
from harness.driver.jobs.threads import CodeRun, belonging_to
from harness.driver.session import MANAGER, NO_STARTS


class Session:
    """Stands for a SparkSession."""


def of_frame(session: Session) -> dict[str, object]:
    """What a writer holds."""
    return {"_df": SimpleNamespace(sparkSession=session)}


def of_old_frame(session: Session) -> dict[str, object]:
    """As up to Spark 3.2."""
    return {"_df": SimpleNamespace(sql_ctx=SimpleNamespace(sparkSession=session))}


def of_connect(session: Session) -> dict[str, object]:
    return {"_session": session}


@pytest.fixture
def writer():
    class DataStreamWriter:
        def __init__(self, held):
            vars(self).update(held)

        def start(self, path=None, **options):
            return "started", path, options

        def toTable(self, name):  # noqa: N802
            return "table", name

        def format(self, name):
            return self

    guard(DataStreamWriter)
    return DataStreamWriter


def test_the_author_starts_nothing(writer):
    with pytest.raises(QueryStarted, match=r"starts a query itself \(start\)"):
        writer(of_frame(Session())).format("parquet").start("out")
    with pytest.raises(QueryStarted, match=r"starts a query itself \(toTable\)"):
        writer(of_frame(Session())).toTable("sales")


def test_nor_does_a_thread_of_the_author(writer):
    raised = []

    def run():
        try:
            writer(of_frame(Session())).start()
        except QueryStarted as error:
            raised.append(error)

    with allowed.this_thread():
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert len(raised) == 1


def test_the_harness_does(writer):
    with allowed.this_thread():
        assert writer(of_frame(Session())).start("out", format="parquet") == ("started", "out", {"format": "parquet"})
    with pytest.raises(QueryStarted):
        writer(of_frame(Session())).start()


@pytest.mark.parametrize("held", [of_frame, of_old_frame, of_connect])
def test_a_sink_starts_queries_on_frames_of_its_session_in_any_thread(writer, held):
    mine, other, started = Session(), Session(), []
    allowed.session(mine)
    thread = threading.Thread(target=lambda: started.append(writer(held(mine)).start()))
    thread.start()
    thread.join()
    assert started == [("started", None, {})]
    with pytest.raises(QueryStarted):
        writer(held(other)).start()
    allowed.forget(mine)
    with pytest.raises(QueryStarted):
        writer(held(mine)).start()


def test_a_writer_without_a_method_is_guarded_as_far_as_it_goes():
    class Old:
        def start(self):
            return "started"

    guard(Old)
    assert not hasattr(Old, "toTable")


def jvm_session(**settings):
    """A session whose settings the JVM has."""
    conf = SimpleNamespace(
        get=lambda key, default: settings.get(key, default),
        set=settings.__setitem__,
        unset=lambda key: settings.pop(key, None),
    )
    return SimpleNamespace(_jsparkSession=SimpleNamespace(conf=lambda: conf)), settings


@pytest.mark.parametrize("named", [None, "acme.Manager"])
def test_the_jvm_starts_nothing_while_the_author_builds(named):
    """Spark loads the class that manages a query's files before it writes any of them: there is none of this name."""
    session, settings = jvm_session(**{MANAGER: NO_STARTS})
    choose_manager(session, named)
    before = dict(settings)
    assert before == ({MANAGER: named} if named else {})
    with suppress(ValueError), no_starts(session):
        assert settings == {MANAGER: NO_STARTS}
        raise ValueError("the author's code")
    assert settings == before


def test_what_a_streaming_query_wrote_is_read_meanwhile():
    session, settings = jvm_session()

    class DataFrameReader:
        def __init__(self, spark):
            self._spark = spark

        def load(self, path):
            return path, dict(settings)

        csv = json = orc = parquet = text = table = load

    guard_reader(DataFrameReader)
    of_context = SimpleNamespace(sparkSession=session)  # up to 3.2
    with no_starts(session):
        for spark in (session, of_context):
            assert DataFrameReader(spark).load("out") == ("out", {})
        assert settings == {MANAGER: NO_STARTS}


def test_a_start_that_the_jvm_refused_is_noted_though_the_code_catches_the_error():
    def get_return_value(answer, *_):
        if isinstance(answer, Exception):
            raise answer
        return answer

    protocol = SimpleNamespace(get_return_value=get_return_value)
    record_refusals(protocol)
    run = CodeRun(lambda: "job.py:7")
    refusal = RuntimeError("java.lang.ClassNotFoundException: " + NO_STARTS)
    for answer, code in ((refusal, None), (RuntimeError("another"), run), ("fine", run), (refusal, run)):
        with suppress(RuntimeError), belonging_to(code=code):
            assert protocol.get_return_value(answer, "client") == "fine"
    assert run.refused == ["job.py:7"]


def test_through_connect_the_author_does_not_reach_the_jvm():
    session = SimpleNamespace()
    with no_starts(session):
        assert vars(session) == {}
