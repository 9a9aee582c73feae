"""A clock that the steps of a case move: a query gets it before its first micro-batch, and rests until its time comes."""

import sys
import threading
from types import ModuleType, SimpleNamespace

import pytest

from harness.driver.clock import DrivenClock
from harness.driver.errors import DriverFailure


def field(name):
    return SimpleNamespace(
        getName=lambda: name,
        setAccessible=lambda _: None,
        get=lambda holder: getattr(holder, name),
        set=lambda holder, value: setattr(holder, name, value),
    )


def kind_with(*fields, above=None):
    """A ``java.lang.Class``."""
    declared = [field(name) for name in fields]
    return SimpleNamespace(getSuperclass=lambda: above, getDeclaredFields=lambda: declared, getDeclaredField=field)


class Holder(SimpleNamespace):
    def getClass(self):  # noqa: N802
        return self.kind


class Query(Holder):
    """A ``MicroBatchExecution`` with an interval of 10 ms; ``executed`` are the times of its triggers."""

    kind = kind_with("triggerExecutor", above=kind_with("triggerClock"))

    def __init__(self, executor):
        super().__init__(triggerClock="of the system", triggerExecutor=executor, active=True, executed=[])

    def isActive(self):  # noqa: N802
        return self.active

    def run(self):
        clock = self.triggerClock
        while self.active:
            self.executed.append(clock.getTimeMillis())
            clock.waitTillTime(clock.getTimeMillis() // 10 * 10 + 10)


@pytest.fixture
def session(monkeypatch):
    """A session whose ``start`` tells its listeners of a query, as Spark does before its first micro-batch."""
    module = ModuleType("pyspark.sql.streaming.listener")
    module.StreamingQueryListener = object
    for name in ("pyspark", "pyspark.sql", "pyspark.sql.streaming"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    listeners, queries = [], {}

    def start(query):
        queries["1"] = SimpleNamespace(streamingQuery=lambda: query)
        for listener in listeners:
            listener.onQueryStarted(SimpleNamespace(id=1))
        thread = threading.Thread(target=query.run, daemon=True)
        thread.start()
        return thread

    streams = SimpleNamespace(addListener=listeners.append, removeListener=listeners.remove)
    jvm = SimpleNamespace(streams=lambda: queries)
    return SimpleNamespace(streams=streams, _jsparkSession=jvm, start=start, listeners=listeners)


@pytest.fixture(params=["with its executor", "before its executor"])
def query(request):
    """Up to 4.0 a query has the executor of its trigger from the beginning."""
    executor = Holder(kind=kind_with("clock"), clock="of the system") if "with" in request.param else None
    return Query(executor)


def test_a_query_has_the_clock_before_it_runs_and_triggers_once_whenever_its_time_has_come(session, query):
    clock = DrivenClock(3)
    with clock.of_next_query(session):
        thread = session.start(query)
    assert session.listeners == []
    assert query.triggerClock is clock
    assert query.triggerExecutor is None or query.triggerExecutor.clock is clock
    clock.wait_until_rest()
    assert query.executed == [3]
    for ms, times in ((6, [3]), (1, [3, 10]), (25, [3, 10, 35]), (4, [3, 10, 35]), (1, [3, 10, 35, 40])):
        clock.advance(ms)
        clock.wait_until_rest()
        assert query.executed == times
    query.active = False
    thread.join(60)
    assert not thread.is_alive()
    clock.wait_until_rest()


def test_the_next_query_goes_on_with_the_time(session):
    clock = DrivenClock(0)
    for times in ([0], [15]):
        one = Query(None)
        with clock.of_next_query(session):
            thread = session.start(one)
        clock.wait_until_rest()
        assert one.executed == times
        one.active = False
        thread.join(60)
        clock.advance(15)


def test_a_query_that_keeps_its_own_clock_is_a_failure_of_the_driver(session):
    started = DrivenClock(0).of_next_query(session)
    with pytest.raises(DriverFailure, match="the clock of the query was not exchanged"), started:
        pass
