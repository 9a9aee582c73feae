"""The calls that operations of a case become, without a pyspark."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from conformance.core import operations
from harness.driver.dataframe import OPERATIONS, build
from harness.driver.errors import NotPermitted
from harness.driver.jobs.own_code import AuthorCode
from harness.driver.jobs.program import ProgramSource


class Recorded:
    """Stands for a DataFrame or a column: it keeps the calls that made it."""

    def __init__(self, calls, text):
        self._calls = calls
        self.text = text

    def __getattr__(self, name):
        def call(*arguments):
            shown = ", ".join(str(getattr(one, "text", one)) for one in arguments)
            made = f"{self.text}.{name}({shown})"
            self._calls.append(made)
            return Recorded(self._calls, made)

        return call


@pytest.fixture
def calls():
    return []


@pytest.fixture(autouse=True)
def _as_much_of_pyspark_as_is_called(monkeypatch, calls):
    for name in ("pyspark", "pyspark.sql"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["pyspark.sql"].functions = SimpleNamespace(expr=lambda text: Recorded(calls, text))


def built(calls, *operations):
    return whole(calls, {"from": "a"}, *operations)


def whole(calls, *operations):
    def read(stream, source):
        made = f"{source}={stream}" if source else stream
        calls.append(f"read({made})")
        return Recorded(calls, made)

    session = SimpleNamespace(sql=lambda text: Recorded(calls, f"sql({text})"))
    return build(list(operations), read, session, AuthorCode([])).text


def test_it_has_the_operations_of_the_language():
    assert {*OPERATIONS} == {*operations.OPERATIONS}


@pytest.mark.parametrize(
    ("written", "call"),
    [({}, "any, None, None"), ({"how": "all", "subset": ["k"]}, "all, None, ['k']"), ({"thresh": 2}, "any, 2, None")],
)
def test_dropna_gets_what_is_written(calls, written, call):
    assert built(calls, {"dropna": written}) == f"a.dropna({call})"


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("n", "n"),
        ("n DESC", "n.desc()"),
        ("n asc", "n.asc()"),
        ("n + 1 DESC  NULLS first ", "n + 1.desc_nulls_first()"),
        ("n ASC NULLS LAST", "n.asc_nulls_last()"),
        ("`n desc`", "`n desc`"),
        ("descending", "descending"),
    ],
)
def test_a_sort_order(calls, text, column):
    assert built(calls, {"orderBy": [text]}) == f"a.orderBy({column})"


def test_a_limit(calls):
    assert built(calls, {"limit": 3}) == "a.limit(3)"


def test_every_view_is_there_before_the_query_and_after_all_frames(calls):
    inner = [{"from": "a"}, {"sql": "SELECT 1 FROM a", "as": "b"}]
    views = {"b": [{"from": "b"}], "c": inner}
    assert built(calls, {"sql": "SELECT 2 FROM a, b, c", "as": "a", "views": views}) == "sql(SELECT 2 FROM a, b, c)"
    assert [call for call in calls if not call.startswith("read(")] == [
        "a.createOrReplaceTempView(b)",
        "b.createOrReplaceTempView(b)",
        "sql(SELECT 1 FROM a).createOrReplaceTempView(c)",
        "a.createOrReplaceTempView(a)",
    ]


def test_a_stream_that_is_named_twice_is_read_once(calls):
    whole(calls, {"from": "a"}, {"union": [{"from": "a"}]})
    assert calls == ["read(a)", "a.union(a)"]


def test_only_the_streams_of_the_query_are_read(calls):
    """With source evolution Spark refuses a source without a name where it is read."""
    whole(calls, {"from": "a", "name": "orders"}, {"union": [{"from": "b", "name": "refunds"}]})
    assert calls == ["read(orders=a)", "read(refunds=b)", "orders=a.union(refunds=b)"]


def test_a_program_reads_the_streams_that_the_case_names(calls):
    class Code:
        """Stands for the author's program, which reads one source after another."""

        def query(self, called, session, read):
            frames = [read(ProgramSource(name, "json", given=given)) for name, given in called["reads"]]
            return Recorded(calls, "+".join(frame.text for frame in frames))

    def read(stream, source):
        return Recorded(calls, f"{source}={stream}" if source else stream)

    def built_of(*reads):
        operation = {"call": {"program": "job.py", "reads": reads}, "with": ["orders", "clicks"]}
        return build([operation], read, None, Code()).text

    assert built_of(("orders", None), ("clicks", "named")) == "orders+named=clicks"
    with pytest.raises(ValueError, match="the program reads sales, and the streams of the case are orders, clicks"):
        built_of(("sales", None))


def test_statements_are_executed_over_views_of_the_streams(calls):
    """Views of an earlier start of the query are dropped first, so that CREATE TEMPORARY VIEW works again.

    A catalog of Iceberg as the current one has no current namespace, in which Spark could list tables.
    """
    tables = [SimpleNamespace(name="v", isTemporary=True), SimpleNamespace(name="t", isTemporary=False)]
    catalog = SimpleNamespace(
        listTables={"default": tables}.__getitem__,
        dropTempView=lambda name: calls.append(f"drop({name})"),
    )
    session = SimpleNamespace(
        catalog=catalog, sql=lambda text: calls.append(f"sql({text})") or Recorded(calls, f"rows of {text}")
    )
    settings = ["SET spark.sql.shuffle.partitions = 64", "set spark.sql.ansi.enabled=true"]
    called = {"sql": [*settings, "CREATE TEMP VIEW v AS SELECT 1", "TABLE v"], "watermarks": {"b": ["t", "1 hour"]}}
    operation = {"call": called, "with": ["a", "b"]}
    frame = build([operation], lambda stream, _: Recorded(calls, stream), session, AuthorCode([]))
    assert frame.text == "rows of TABLE v"
    assert calls == [
        "drop(v)",
        "a.createOrReplaceTempView(a)",
        "b.withWatermark(t, 1 hour)",
        "b.withWatermark(t, 1 hour).createOrReplaceTempView(b)",
        "sql(set spark.sql.ansi.enabled=true)",
        "sql(CREATE TEMP VIEW v AS SELECT 1)",
        "sql(TABLE v)",
    ]
    with pytest.raises(NotPermitted):
        build([operation], lambda stream, _: Recorded(calls, stream), session, None)
