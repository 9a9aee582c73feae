"""Stateful processors over rows, without a pyspark: the same answers as those over pandas frames."""

import sys
from datetime import UTC, datetime, timedelta
from types import ModuleType, SimpleNamespace

import pytest

ROW = type("Row", (tuple,), {})
AT = datetime(1970, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def processors(monkeypatch):
    """The module, imported with as much of pyspark as it needs."""
    before = dict(sys.modules)
    for name in ("pyspark", "pyspark.sql", "pyspark.sql.streaming"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["pyspark.sql"].Row = lambda **columns: columns
    import harness.driver.state_functions

    yield harness.driver.state_functions.ROW_PROCESSORS
    for name in set(sys.modules) - set(before):
        del sys.modules[name]


class Value:
    """A state variable."""

    def __init__(self):
        self.value = None

    def exists(self):
        return self.value is not None

    def get(self):
        return self.value

    def update(self, value):
        self.value = value

    def clear(self):
        self.value = None


class Handle:
    def __init__(self):
        self.timers, self.ttl_ms, self.state = [], None, Value()

    def getValueState(self, _name, schema, ttl_ms=None):  # noqa: N802
        self.ddl, self.ttl_ms = schema, ttl_ms
        return self.state

    def registerTimer(self, at_ms):  # noqa: N802
        self.timers.append(at_ms)

    def deleteTimer(self, at_ms):  # noqa: N802
        self.timers.remove(at_ms)


def begun(processor):
    handle = Handle()
    processor.init(handle)
    return handle


NOON_MS = 12 * 3600 * 1000


def test_a_count_emits_at_its_timer(processors):
    counting = processors["count_until_watermark"]
    handle = begun(counting)
    counting.handleInitialState(("a",), ROW(("a", 5, AT)), None)
    assert (
        list(counting.handleInputRows(("a",), iter([ROW(("a", AT + timedelta(seconds=1))), ROW(("a", None))]), None))
        == []
    )
    assert handle.timers == [NOON_MS + 1000]
    timer = SimpleNamespace(getExpiryTimeInMs=lambda: NOON_MS + 1000)
    values = SimpleNamespace(getCurrentWatermarkInMs=lambda: NOON_MS + 2000)
    assert list(counting.handleExpiredTimer(("a",), values, timer)) == [
        {"key": "a", "event_time": AT + timedelta(seconds=1), "count": 7, "watermark": NOON_MS + 2000}
    ]
    assert not handle.state.exists()


@pytest.mark.parametrize(
    ("name", "hours_back", "ttl_ms"),
    [
        ("number_rows", 0, None),
        ("number_rows_an_hour_back", 1, None),
        ("number_rows_for_a_day", 0, 86_400_000),
        ("number_rows_for_a_millisecond", 0, 1),
    ],
)
def test_rows_are_numbered_by_event_time_across_micro_batches(processors, name, hours_back, ttl_ms):
    numbering = processors[name]
    handle = begun(numbering)
    later = AT + timedelta(seconds=1)
    first = list(numbering.handleInputRows(("a",), iter([ROW((later,)), ROW((AT,))]), None))
    second = list(numbering.handleInputRows(("a",), iter([ROW((AT,))]), None))
    back = timedelta(hours=hours_back)
    assert [(row["event_time"] + back, row["number"]) for row in first + second] == [(AT, 1), (later, 2), (AT, 3)]
    assert handle.ttl_ms == ttl_ms


@pytest.mark.parametrize(
    ("ddl", "kept", "next_number", "then"),
    [
        ("count BIGINT", (2,), 3, (3,)),
        ("note STRING, count BIGINT", (None, 2), 3, (None, 3)),
        ("price DECIMAL(10, 2), at STRUCT<count: INT, b: INT>, count INT", (None, None, 2), 3, (None, None, 3)),
        ("number INT, note STRING", (2, None), 3, (3, None)),
        ("note STRING, count BIGINT", ("x", None), 1, (None, 1)),
    ],
)
def test_a_number_is_kept_in_the_column_that_the_case_says(processors, ddl, kept, next_number, then):
    plain = processors["number_rows_for_a_day"]
    numbering = plain.keeping(ddl)
    handle = begun(numbering)
    assert (handle.ddl, handle.ttl_ms) == (ddl, 86_400_000)
    assert begun(plain).ddl == "count BIGINT"
    handle.state.update(kept)
    (row,) = numbering.handleInputRows(("a",), iter([ROW((AT,))]), None)
    assert row["number"] == next_number
    assert handle.state.get() == then
