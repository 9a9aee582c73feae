"""Rows on their way into the engine through its memory."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from harness.driver.arrivals import MemoryArrivals
from harness.driver.errors import MissingName
from harness.driver.request import StreamRequest


class Source:
    """As much of a ``LowLatencyMemoryStream`` as its user sees."""

    made = 0

    def __init__(self, *_):
        Source.made += 1
        self.name = f"MemoryStream[value#{Source.made}]"
        self.values = []

    def toDF(self):  # noqa: N802
        return self

    def toString(self):  # noqa: N802
        return self.name

    def addData(self, partition, values):  # noqa: N802
        assert partition == 0
        self.values += values


class Frame:
    """A DataFrame that can be transformed without end."""

    def __init__(self, source, _session):
        self.source = source

    def where(self, *_):
        return self

    select = where


@pytest.fixture
def arrivals(monkeypatch):
    package = {
        name: ModuleType(name)
        for name in ("pyspark", "pyspark.sql", "pyspark.sql.functions", "py4j", "py4j.java_gateway")
    }
    for name, module in package.items():
        monkeypatch.setitem(sys.modules, name, module)
    package["pyspark.sql"].functions = package["pyspark.sql.functions"]
    package["pyspark.sql"].DataFrame = Frame
    package["pyspark.sql.functions"].from_json = lambda *_: SimpleNamespace(alias=lambda _: None)
    package["py4j.java_gateway"].JavaClass = type
    streaming = SimpleNamespace(sources=SimpleNamespace(LowLatencyMemoryStream=Source))
    clock = SimpleNamespace(**{"MODULE$": SimpleNamespace(setClock=lambda _: None)})
    sql = SimpleNamespace(
        execution=SimpleNamespace(
            streaming=streaming, datasources=SimpleNamespace(v2=SimpleNamespace(**{"LowLatencyClock$": clock}))
        ),
        Encoders=SimpleNamespace(STRING=lambda: None),
    )
    util = SimpleNamespace(ManualClock=lambda _: None, SystemClock=lambda: None)
    rows = type("ArrayList", (list,), {"add": list.append})
    converters = SimpleNamespace(asScala=list)
    jvm = SimpleNamespace(
        org=SimpleNamespace(apache=SimpleNamespace(spark=SimpleNamespace(sql=sql, util=util))),
        java=SimpleNamespace(util=SimpleNamespace(ArrayList=rows)),
        scala=SimpleNamespace(jdk=SimpleNamespace(javaapi=SimpleNamespace(CollectionConverters=converters))),
    )
    spark = SimpleNamespace(sparkContext=SimpleNamespace(_jvm=jvm))
    found = MemoryArrivals(
        spark, {"a": StreamRequest("v INT", 1, None, True), "b": StreamRequest("v INT", 1, None, True)}
    )
    found.streaming = streaming
    return found


READER = SimpleNamespace(_spark=SimpleNamespace(_jsparkSession=None))


def placed(arrivals, **batch):
    arrivals.place(arrivals.stage([batch]))


def progress(frame, start, end):
    return {"description": frame.source.name, "startOffset": start, "endOffset": end}


def test_rows_that_arrive_before_the_source_is_made_are_its_first(arrivals):
    placed(arrivals, a=[[{"v": 1}, {"v": 2}]])
    frame = arrivals.read(READER, "a")
    placed(arrivals, a=[[{"v": 3}]], b=[[]])
    assert frame.source.values == ['{"v": 1}', '{"v": 2}', '{"v": 3}']
    assert arrivals.read(READER, "b").source.values == [""]


def test_a_restarted_query_reads_the_same_source(arrivals):
    assert arrivals.read(READER, "a").source is arrivals.read(READER, "a").source


def test_offsets_tell_what_was_read_and_whether_rows_wait(arrivals):
    frame = arrivals.read(READER, "a")
    placed(arrivals, a=[[{"v": 1}, {"v": 2}, {"v": 3}]])
    read = progress(frame, None, {"0": 2})
    assert arrivals.stream_of(read) == "a"
    assert arrivals.records(read) == [2]
    assert arrivals.records(progress(frame, {"0": 2}, '{"0": 3}')) == [1]
    assert arrivals.records({"description": "FileStreamSource[/x]"}) is None
    assert arrivals.behind({"sources": [read]})
    assert not arrivals.behind({"sources": [progress(frame, {"0": 2}, {"0": 3})]})


def test_a_release_without_the_source_lacks_a_name(arrivals):
    arrivals.streaming.sources = SimpleNamespace(LowLatencyMemoryStream="a package, as py4j takes unknown names for")
    with pytest.raises(MissingName, match="LowLatencyMemoryStream"):
        arrivals.read(READER, "a")
