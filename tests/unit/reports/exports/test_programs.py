"""A case as PySpark: its query, and a script that runs it."""

import ast
import re

import pytest

from conformance.core.case import Case
from conformance.core.observation import Column
from conformance.language.reader import case_from
from reports.exports.programs import pyspark, pyspark_script, streamtest_suite
from tests.support.whole_suite import whole_suite

CODE = "PWN()"
ALL: tuple[Case, ...] = whole_suite().cases


def shipped(id: str) -> Case:
    return next(case for case in ALL if case.id == id)


def test_it_is_python_and_so_is_a_script_unless_a_script_cannot_do_it() -> None:
    without = set()
    for case in ALL:
        compile(pyspark(case), case.id, "exec")
        if (script := pyspark_script(case)) is None:
            without.add(case.id)
        else:
            compile(script, case.id, "exec")
    assert len(without) < len(ALL) / 4
    assert any(id.startswith("recovery/killed-") for id in without)


def test_it_reads_as_one_would_write_it() -> None:
    text = pyspark(shipped("late-drops/window-still-open"))
    assert 'events = (\n    spark.readStream.schema("event_time TIMESTAMP, count INT")\n    .json("events/")\n)' in text
    assert (
        """    .groupBy(expr("window(event_time, '10 minutes')").alias("window"))\n    .agg(expr("sum(count) AS total"))"""
        in text
    )
    assert text.endswith('query.writeStream.outputMode("update").start()')


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x0c", "\x85", "\u2028", r"\u000a"])
def test_no_text_of_a_case_becomes_code(end: str) -> None:
    name = f"x{end}{CODE}{end}#"
    steps = [{"name": name, "add": {"events": [["00:00", 1]]}, "expect": {"rows": [[1]]}}]
    schema = f"t TIMESTAMP,{end if end.isspace() else ''}n INT"
    query = [{"from": "events"}, {"select": ["n"]}]
    about = {"title": f"x{end}{CODE}", "streams": {"events": schema}, "query": query, "steps": steps}
    script = pyspark_script(case_from(about, "x"))
    assert script is not None
    assert "PWN" not in ast.dump(ast.parse(script))
    of_kafka = {"events": {"schema": schema, "source": "kafka"}}
    compile(pyspark(case_from({**about, "streams": of_kafka, "steps": [{"idle": {}}]}, "x")), "x", "exec")
    suite = streamtest_suite(case_from(about, "x"), [Column(name="n", type="int")])
    # Scala 2.12 reads \u000a as a line end wherever no second backslash stands before it.
    lines = re.split(r"(?<!\\)\\u000a|[\r\n\f]", suite)
    assert [line.strip()[:2] for line in lines if CODE in line] == ["te", "//"]


def test_what_it_reads_is_what_the_case_reads() -> None:
    topic = 'events = (\n    spark.readStream.format("kafka")\n    .option("subscribe", "events")\n    .load()\n)'
    table = 'events = spark.readStream.format("delta").load("events/")'
    for source, shown in (("kafka", topic), ("delta", table)):
        about = {"title": "x", "query": [{"from": "events"}], "steps": [{"idle": {}}]}
        case = case_from({**about, "streams": {"events": {"schema": "t TIMESTAMP", "source": source}}}, "x")
        compile(pyspark(case), "x", "exec")
        assert shown in pyspark(case)
        assert pyspark_script(case) is None


def test_a_function_of_streams_and_a_sink_are_imported_and_called() -> None:
    streams = {"orders": "t TIMESTAMP", "clicks": "t TIMESTAMP"}
    query = {"call": "acme_jobs.attribution:build", "with": ["orders", "clicks"]}
    about = {"title": "x", "streams": streams, "sink": "acme_jobs.sinks:write", "steps": [{"idle": {}}]}
    case = case_from({**about, "query": query}, "x")
    text = pyspark(case)
    compile(text, "x", "exec")
    assert "from acme_jobs.attribution import build\nquery = build(spark, orders, clicks)\n" in text
    assert text.endswith(
        'from acme_jobs.sinks import write\nquery.writeStream.outputMode("append").foreachBatch(write).start()'
    )
    own_sink = case_from({**about, "query": [{"from": "orders"}, {"union": [{"from": "clicks"}]}]}, "x")
    assert pyspark_script(case) is pyspark_script(own_sink) is None


def test_each_view_of_a_query_in_sql() -> None:
    text = pyspark(shipped("unsupported/append-sql-union-without-watermark"))
    assert 'views.createOrReplaceTempView("views")' in text
    assert text.index("createOrReplaceTempView") < text.index("spark.sql(")


def test_sorting_and_a_limit() -> None:
    text = pyspark(shipped("output-modes/complete-mode-limit-takes-the-first-rows"))
    assert '    .orderBy(expr("total").desc(), expr("since"))\n    .limit(2)\n' in text


def test_a_source_has_its_name_in_each_query_that_reads_it() -> None:
    case = shipped("recovery/renamed-source-is-read-from-the-beginning")
    assert 'spark.readStream.name("orders").schema(' in pyspark(case)
    script = pyspark_script(case) or ""
    schema = "event_time TIMESTAMP, n INT"
    assert script.count("orders = source(") == 2
    assert script.index(f'source("orders", "{schema}", "orders")') < script.index(
        f'source("orders", "{schema}", "sales")'
    )
