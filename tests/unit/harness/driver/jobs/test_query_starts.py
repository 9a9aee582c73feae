"""Who may start a query: the harness, and the sink that a case names."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from harness.driver.jobs.query_starts import QueryStarted, allowed, guard


class Session:
    """Stands for a SparkSession."""


def frame_of(session: Session) -> SimpleNamespace:
    return SimpleNamespace(sparkSession=session)


def old_frame_of(session: Session) -> SimpleNamespace:
    """As up to Spark 3.2."""
    return SimpleNamespace(sql_ctx=SimpleNamespace(sparkSession=session))


@pytest.fixture
def writer():
    class DataStreamWriter:
        def __init__(self, frame):
            self._df = frame

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
        writer(frame_of(Session())).format("parquet").start("out")
    with pytest.raises(QueryStarted, match=r"starts a query itself \(toTable\)"):
        writer(frame_of(Session())).toTable("sales")


def test_nor_does_a_thread_of_the_author(writer):
    raised = []

    def run():
        try:
            writer(frame_of(Session())).start()
        except QueryStarted as error:
            raised.append(error)

    with allowed.this_thread():
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert len(raised) == 1


def test_the_harness_does(writer):
    with allowed.this_thread():
        assert writer(frame_of(Session())).start("out", format="parquet") == ("started", "out", {"format": "parquet"})
    with pytest.raises(QueryStarted):
        writer(frame_of(Session())).start()


@pytest.mark.parametrize("frame", [frame_of, old_frame_of])
def test_a_sink_starts_queries_on_frames_of_its_session_in_any_thread(writer, frame):
    mine, other, started = Session(), Session(), []
    allowed.session(mine)
    thread = threading.Thread(target=lambda: started.append(writer(frame(mine)).start()))
    thread.start()
    thread.join()
    assert started == [("started", None, {})]
    with pytest.raises(QueryStarted):
        writer(frame(other)).start()
    allowed.forget(mine)
    with pytest.raises(QueryStarted):
        writer(frame(mine)).start()


def test_a_writer_of_connect_knows_its_session_alone():
    """It raised an AttributeError, for the author's queries and for those of a sink."""

    class DataStreamWriter:
        def __init__(self, session):
            self._session = session

        def start(self):
            return "started"

    guard(DataStreamWriter)
    mine = Session()
    allowed.session(mine)
    assert DataStreamWriter(mine).start() == "started"
    allowed.forget(mine)
    with pytest.raises(QueryStarted):
        DataStreamWriter(mine).start()


def test_a_writer_without_a_method_is_guarded_as_far_as_it_goes():
    class Old:
        def start(self):
            return "started"

    guard(Old)
    assert not hasattr(Old, "toTable")
