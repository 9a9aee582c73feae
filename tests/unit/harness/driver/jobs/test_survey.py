"""What the driver says of a program: its sources with their columns, its queries with what they read, or what ended it."""

from types import SimpleNamespace

import pytest

from harness.driver.jobs import survey
from harness.driver.jobs.own_code import refused_at
from harness.driver.jobs.program import ProgramSource
from harness.driver.jobs.survey import Survey
from tests.unit.harness.driver.jobs.test_program import Frame, program, pyspark, session

__all__ = ["pyspark", "session"]
SALES = {"name": "sales", "format": "delta", "ddl": None, "options": {"path": "/in/sales"}}


def struct(text):
    """A ``StructType`` of columns, each a name and a type."""
    columns = [column.split() for column in text.split(", ")]
    return SimpleNamespace(
        fields=[SimpleNamespace(name=name, dataType=SimpleNamespace(simpleString=type.lower)) for name, type in columns]
    )


class Arrivals:
    def __init__(self, folder, streams):
        self._at = folder
        self._streams = streams

    def read(self, reader, name):
        return Frame(reader._spark, f"FileSource[{self._at}/{name}]: {self._streams[name].ddl}")


@pytest.fixture
def surveyed(tmp_path, session, monkeypatch):
    """The answer about a program, whose frames have as their plan what they are of."""
    ended, discarded = [], []
    session.createDataFrame = lambda rows, schema: SimpleNamespace(schema=struct(schema))
    backend = SimpleNamespace(
        sends_functions=False,
        files=SimpleNamespace(discard=discarded.append),
        new_session=lambda: session,
        end_session=ended.append,
        arrivals=lambda folder, streams, kafka: Arrivals(folder, streams),
    )
    monkeypatch.setattr(survey, "analysed_plan", lambda _, frame: frame.of)

    def run(text, **more):
        message = {"directory": "/work/1", "program": program(tmp_path, text), "schemas": {}, "conf": {"a": "1"}}
        answer = Survey(backend, {**message, "code": [str(tmp_path)], **more}).answer()
        assert (ended, discarded, session.set) == ([session], ["/work/1"], {"a": "1"})
        return answer

    return run


def test_sources_have_the_columns_that_the_program_says(surveyed):
    answer = surveyed(
        """
        a = spark.readStream.schema("a INT").format("json").load("/in/a")
        spark.readStream.format("rate").load()
        ab = spark.readStream.schema("a INT").format("json").option("latestFirst", True).load("/in/ab")
        ab.writeStream.queryName("q").start()
        """
    )
    assert answer["sources"] == [
        {"name": "a", "format": "json", "ddl": "`a` int", "options": {"path": "/in/a"}, "at": "acme_job.py:4"},
        {
            "name": "rate",
            "format": "rate",
            "ddl": "`timestamp` timestamp, `value` bigint",
            "options": {},
            "at": "acme_job.py:5",
        },
        {
            "name": "ab",
            "format": "json",
            "ddl": "`a` int",
            "options": {"latestFirst": "true", "path": "/in/ab"},
            "at": "acme_job.py:6",
        },
    ]
    (query,) = answer["queries"]
    assert (query["name"], query["at"], query["reads"]) == ("q", "acme_job.py:7", ["ab"])
    assert answer["error"] is None


def test_without_columns_it_stops_and_even_a_program_that_catches_all_exceptions_does(surveyed):
    answer = surveyed(
        """
        try:
            spark.readStream.format("delta").load("/in/sales")
        except Exception:
            pass
        raise AssertionError("it went on")
        """
    )
    assert answer == {"sources": [{**SALES, "at": "acme_job.py:5"}], "queries": [], "error": None, "passedOver": {}}


def test_columns_of_a_sample_let_it_go_on(surveyed):
    answer = surveyed(
        "spark.readStream.format('delta').load('/in/sales').writeStream.start()", schemas={"sales": "n INT"}
    )
    assert answer["queries"][0]["reads"] == ["sales"]
    assert answer["sources"] == [{**SALES, "at": "acme_job.py:3"}]


def test_a_stream_that_only_sql_names_cannot_be_held(surveyed, session):
    session.sql = lambda text: Frame(
        session, "SubqueryAlias\n+- ~StreamingRelation DataSource(t), FileSource[/warehouse/t], [a#1]"
    )
    answer = surveyed("spark.sql('SELECT * FROM STREAM t').writeStream.start()")
    assert "such as STREAM in SQL: read it with readStream" in answer["error"]["raised"]
    assert answer["queries"] == []


def test_what_ended_it_has_its_line(surveyed):
    answer = surveyed("print('began')\nraise KeyError('x')")
    error = answer["error"]
    assert (error["raised"], error["at"], error["printed"]) == ("KeyError('x')", "acme_job.py:4", "began\n")
    assert answer["queries"] == []


def test_of_an_exception_that_the_jvm_threw_its_own_words_are_shown():
    said = 'An error occurred while calling o216.load.\n: org.apache.hadoop.fs.Unsupported: No FileSystem for scheme "s3"\n\tat x.Y'
    shown = 'RuntimeError: org.apache.hadoop.fs.Unsupported: No FileSystem for scheme "s3"'
    assert refused_at(RuntimeError(said), []).raised == shown


def test_rows_are_recorded_where_a_main_method_would_see_its_relative_path(surveyed, session, tmp_path, monkeypatch):
    def main(named, arguments, of, read):
        assert (named, arguments, of) == ("acme.Main", ("x",), session)
        read(ProgramSource("orders", "json", "a INT", path="in", at="Main.java:9"))
        return SimpleNamespace(started=[], passed_over={})

    def load(path):
        loaded.append(path)
        return SimpleNamespace(limit=lambda number: number)

    loaded = []
    reader = SimpleNamespace(format=lambda _: reader, options=lambda: reader, schema=lambda _: reader, load=load)
    session.read = reader
    (tmp_path / "in").mkdir()
    monkeypatch.setattr("harness.driver.jobs.main_program.run", main)
    monkeypatch.setattr("harness.driver.jobs.program.as_json", lambda number: ["{}"] * number)
    answer = surveyed("", program={"main": "acme.Main", "arguments": ["x"]}, record=2)
    assert loaded == [str(tmp_path / "in")]
    said = {"name": "orders", "format": "json", "ddl": "`a` int", "options": {"path": "in"}, "at": "Main.java:9"}
    assert (answer["sources"], answer["error"]) == ([{**said, "rows": ["{}", "{}"]}], None)
