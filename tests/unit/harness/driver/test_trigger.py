"""Triggers, and releases that lack one."""

import sys
from types import ModuleType

import pytest

from harness.driver.errors import MissingName
from harness.driver.execution import check_trigger, triggered


class New:
    def trigger(self, *, once=None, availableNow=None, realTime=None, processingTime=None):  # noqa: N803
        return processingTime or (once, availableNow, realTime)


class Old:
    def trigger(self, *, once=None):
        return once


@pytest.fixture
def release(monkeypatch):
    def of(writer):
        module = ModuleType("pyspark.sql.streaming")
        module.DataStreamWriter = writer
        monkeypatch.setitem(sys.modules, "pyspark", ModuleType("pyspark"))
        monkeypatch.setitem(sys.modules, "pyspark.sql", ModuleType("pyspark.sql"))
        monkeypatch.setitem(sys.modules, "pyspark.sql.streaming", module)

    return of


def test_each_trigger_is_the_argument_of_its_name():
    writer = New()
    assert triggered(writer, "default") is writer
    assert triggered(writer, "once") == (True, None, None)
    assert triggered(writer, "availableNow") == (None, True, None)
    assert triggered(writer, "realTime") == (None, None, "5 minutes")
    assert triggered(writer, "processingTime", 250) == "250 milliseconds"


def test_a_release_that_lacks_a_trigger_is_told_by_its_argument(release):
    with pytest.raises(MissingName, match="unexpected keyword argument 'availableNow'"):
        triggered(Old(), "availableNow")
    release(Old)
    check_trigger("once")
    with pytest.raises(MissingName, match="unexpected keyword argument 'realTime'"):
        check_trigger("realTime")
    release(New)
    check_trigger("realTime")
