"""Without --allow-code, nothing in a case runs a program, reads a file or names a class (docs/case-language/allow-code.md)."""

import json
from pathlib import Path

import pytest

from conformance.core.case import NeedsCode
from conformance.language import case_from
from conformance.language.permission import other_confs, refusal_of, refusals, streaming_confs
from conformance.language.reader import read_case
from conformance.language.sql_expression import functions
from tests.support.whole_suite import whole_suite

CLASS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

PROGRAMS = (
    "SELECT TRANSFORM(a) USING 'sh -c id' FROM e",
    "SELECT TRANSFORM('a') USING 'sh -c id' AS (b) FROM e",
    "SELECT MAP a USING 'x' FROM e",
    "SELECT REDUCE a USING 'x' FROM e",
    "SELECT reflect('java.lang.System', 'getenv', 'HOME')",
    "SELECT java_method('java.lang.System', 'exit')",
    "SELECT try_reflect('a', 'b')",
    "SELECT Reflect ('a', 'b')",
    "SELECT `reflect`('a', 'b')",
    "SELECT \"reflect\"('a', 'b')",
    "SELECT IDENTIFIER('reflect')('a', 'b')",
    "SELECT system.builtin.reflect('a', 'b')",
    "SELECT 1 AS reflect('a', 'b')",
    "VALUES (1), (java_method('a', 'b'))",
    "SELECT my_udf(a) FROM e",
)
FILES = (
    "SELECT * FROM text.`/etc/passwd`",
    "SELECT * FROM text.passwd",
    "SELECT * FROM `text`.`passwd`",
    "SELECT * FROM e, text.passwd",
    "SELECT * FROM e AS x, (text.passwd)",
    "SELECT * FROM e JOIN text.passwd ON true",
    "SELECT * FROM (e JOIN text.passwd)",
    "SELECT * FROM (e, text.passwd)",
    "SELECT a FROM e UNION SELECT value FROM text.passwd",
    "SELECT (SELECT max(value) FROM text.passwd)",
    "SELECT a FROM e WHERE a IN (SELECT value FROM text.passwd)",
    "SELECT a FROM e WHERE a IN (FROM text.passwd)",
    "SELECT a FROM e WHERE EXISTS (TABLE text.passwd)",
    "SELECT * FROM org.apache.spark.sql.execution.datasources.text.`passwd`",
    "SELECT * FROM IDENTIFIER('text.passwd')",
    "SELECT * FROM read_files('/etc/passwd')",
    "SELECT * FROM secrets",
    "SELECT input_file_name() FROM e",
    "SELECT _metadata.file_path FROM e",
    "SELECT `_metadata`.file_path FROM e",
    "SELECT *, e.`_METADATA` FROM e",
    "SELECT _metadata.* FROM e",
    "SELECT _metadata, _metadata.file_size FROM e",
    "SELECT _metadata.file_name, _metadata.file_size FROM e",
    "SELECT _metadata.file_modification_time FROM e",
    "SELECT _metadata.file_size_of FROM e",
    "SELECT _metadata.`file_size_` FROM e",
    "SELECT _metadata['file_size'] FROM e",
    "SELECT _metadata:file_size FROM e",
    "SELECT a AS _metadata FROM e",
    "SELECT to_json(_metadata) FROM e",
    "SELECT struct(_metadata).col1.file_path FROM e",
    "SELECT m.file_path FROM (SELECT _metadata m FROM e)",
    "SELECT _metadata.file_size FROM e AS _metadata",
    "SELECT current_user",
    "SELECT session_user FROM e",
    "SELECT '${env:HOME}'",
    "SELECT from_protobuf(a, 'm', '/etc/passwd') FROM e",
    "SELECT xpath_string(a, 'b') FROM e",
)
HIDDEN_RELATIONS = (
    # Without ANSI mode nearly every word may be an alias, and a comma then begins another relation.
    "SELECT * FROM e where, text.passwd",
    "SELECT * FROM e select, text.passwd",
    "SELECT * FROM (e) select, text.passwd",
    "SELECT * FROM e group, text.passwd",
    "SELECT * FROM e limit, text.passwd",
    "SELECT a.is DISTINCT FROM text.passwd",
    "SELECT * FROM VALUES 1 sum (a), (text.passwd)",
    "SELECT * FROM VALUES (1) AS t, (text.passwd)",
    "SELECT * FROM VALUES (1) t, (text.passwd)",
    "SELECT * FROM values, (text.passwd)",
    "SELECT extract(FROM text.passwd SELECT 1)",
    # A word after the rows of VALUES may join them; a row that is no expression is a relation.
    "SELECT * FROM VALUES 1 JOIN text.passwd",
    "(VALUES (1) JOIN text.passwd)",
    "SELECT * FROM VALUES (1) from text.passwd",
    "SELECT * FROM VALUES (1), (text.passwd x)",
    "SELECT * FROM VALUES (1), ((text.passwd JOIN e))",
    "SELECT * FROM VALUES (1), (`text`.passwd x)",
    "SELECT * FROM VALUES 1, text.passwd VERSION AS OF 1",
    "SELECT * FROM VALUES 1, text.x, STREAM e",
    # The column sort gets the name by; it begins no list.
    "SELECT * FROM e WATERMARK sort by DELAY OF INTERVAL 1 MINUTE, text.passwd",
    # A common table hides a table only behind its definition.
    "WITH secrets AS (SELECT * FROM secrets) SELECT * FROM secrets",
    "SELECT * FROM secrets WHERE EXISTS (WITH secrets AS (SELECT 1) SELECT 1)",
)
STATEMENTS = (
    "INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT 1",
    "WITH x AS (SELECT 1) INSERT INTO y SELECT * FROM x",
    "FROM e INSERT INTO x SELECT *",
    "CREATE FUNCTION f AS 'x' USING JAR '/x.jar'",
    "ADD JAR '/x.jar'",
    "ADD FILE '/etc/passwd'",
    "SET spark.sql.extensions=x",
    "EXPLAIN SELECT 1",
    "BEGIN SELECT 1; END",
    "EXECUTE IMMEDIATE 'SELECT 1'",
    "SELECT 1; SELECT 2",
    "",
)
UNREADABLE = (
    "SELECT 1 -- it",
    "SELECT /* */ 1",
    "SELECT r'\\' ",
    "SELECT 'open",
    "SELECT (1",
    "SELECT 1)",
    "SELECT * FROM e |> WHERE a",
    "SELECT ſum(a) FROM e",  # Spark turns it into upper case before it reads it
    "SELECT $$a$$",
)
QUERIES = (
    "SELECT * FROM e",
    "SELECT DISTINCT x.a AS b, count(*) FROM e AS x, E y WHERE x.b IN (1, 2) GROUP BY x.a, b HAVING count(*) > 1 ORDER BY a LIMIT 3",
    "SELECT extract(year FROM t), trim(BOTH 'a' FROM b) FROM e",
    "WITH a AS (SELECT 1 AS x), b AS (SELECT * FROM a) SELECT * FROM b JOIN a USING (x)",
    "SELECT * FROM VALUES (1, 'a'), (2, NULL) AS t(a, b) LEFT JOIN e ON t.a = e.a",
    "SELECT * FROM VALUES ('tea', 3L, TIMESTAMP'1970-01-01 00:00:11') AS known(key, count, latest)",
    "SELECT * FROM VALUES (CAST(1 AS BIGINT), array(-1, 2), INTERVAL '1' DAY, NULL), (2, array(), NULL, TRUE) JOIN e",
    "SELECT * FROM ((SELECT a FROM e) UNION ALL (SELECT b FROM e))",
    "(SELECT 1) UNION (SELECT 2)",
    "SELECT window.start FROM e WATERMARK t DELAY OF INTERVAL 10 MINUTES GROUP BY window(t, '10 minutes')",
    "SELECT id FROM range(1, 5)",
    "SELECT row_number() OVER (PARTITION BY a ORDER BY b), sum(a) FILTER (WHERE b > 0) FROM e GROUP BY a, b",
    "SELECT _metadata.file_size, e._METADATA.`File_Block_Start`, `_metadata` . file_block_length + 1 FROM e",
    "SELECT `update`, 'it''s -- no comment', \"text.`/etc/passwd`\" FROM e",
)
EXPRESSIONS = (
    "a IS NOT DISTINCT FROM b",
    "CAST(a AS DECIMAL(10, 2)) + b::int",
    "CASE WHEN (a) THEN (1) ELSE (2) END",
    "transform(xs, x -> x + 1)[0].y",
    "t BETWEEN s - INTERVAL '1' HOUR AND s",
    "window(t, '10 minutes', '5 minutes').start AS begin",
    "a NOT IN ('x', 'y') AND NOT (b OR c)",
    "coalesce(_metadata.file_size, 0) IS NOT NULL",
)


@pytest.mark.parametrize("text", [*PROGRAMS, *FILES, *HIDDEN_RELATIONS, *STATEMENTS, *UNREADABLE])
def test_a_statement_that_reaches_beyond_its_case_is_refused(text: str) -> None:
    assert refusals(text, ("e",), statement=True)


@pytest.mark.parametrize("text", [*PROGRAMS, *FILES, *HIDDEN_RELATIONS, *UNREADABLE])
def test_a_subquery_that_does_is_refused_in_an_expression(text: str) -> None:
    assert refusals(f"a IN ({text})", ("e",))


@pytest.mark.parametrize("text", QUERIES)
def test_queries_over_views_and_constants_run(text: str) -> None:
    assert refusals(text, ("e",), statement=True) == ()


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_run(text: str) -> None:
    assert refusals(text, ()) == ()


def test_a_view_is_known_once_its_operation_has_run() -> None:
    """Before, the name would mean a table of the engine."""
    written = _case(
        [{"from": "e"}, {"sql": "SELECT * FROM later", "as": "first"}, {"sql": "SELECT * FROM first", "as": "later"}]
    )
    (found,) = case_from(written, "x").needs_code
    assert found.reason.startswith("'later' is not a view of the case")


def test_all_views_of_a_query_are_known_to_it_and_to_none_of_its_pipelines() -> None:
    both = [{"from": "e"}, {"sql": "SELECT * FROM a JOIN b ON a.a = b.a", "as": "a", "views": {"b": [{"from": "e"}]}}]
    assert case_from(_case(both), "x").needs_code == ()
    inner = [{"from": "e"}, {"sql": "SELECT * FROM c", "as": "d"}]
    outside = [{"from": "e"}, {"sql": "SELECT * FROM a, b, c", "as": "a", "views": {"c": [{"from": "e"}], "b": inner}}]
    (found,) = case_from(_case(outside), "x").needs_code
    assert found.reason.startswith("'c' is not a view of the case")


@pytest.mark.parametrize(
    "nested",
    [
        [{"from": "e"}, {"call": "os:getcwd"}],
        [{"from": "e"}, {"where": "reflect('a', 'b') = 1"}],
        [{"from": "e"}, {"orderBy": ["reflect('a', 'b') DESC"]}],
    ],
)
def test_the_pipelines_of_views_need_permission_like_any_other(nested: list[dict[str, object]]) -> None:
    query: list[dict[str, object]] = [{"from": "e"}, {"sql": "SELECT * FROM a, b", "as": "a", "views": {"b": nested}}]
    assert len(case_from(_case(query), "x").needs_code) == 1


def test_no_function_is_both_allowed_and_refused() -> None:
    assert not functions().allowed & set(functions().needs_code)
    assert {"reflect", "java_method", "input_file_name"} <= set(functions().needs_code)
    assert {"window", "sum", "session_window", "window_time"} <= functions().allowed


def test_the_suite_needs_no_permission() -> None:
    assert {case.id: case.needs_code for case in whole_suite().cases if case.needs_code} == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.extensions", "x.Y"),
        ("spark.driver.extraJavaOptions", "-XX:OnError=id"),
        ("spark.plugins", "x.Y"),
        ("spark.jars", "/x.jar"),
        ("spark.sql.catalog.x", "x.Y"),
        ("spark.sql.warehouse.dir", "/"),
        ("spark.sql.ansi.doubleQuotedIdentifiers", "true"),  # would read "reflect"(…) as a call
        ("spark.sql.streaming.checkpointFileManagerClass", "x.Y"),
        ("spark.sql.streaming.checkpointLocation", "/"),
        ("spark.sql.session.timeZone", "${env:HOME}"),
        ("spark.sql.streaming.stateStore.providerClass", "x.Y"),
        ("spark.sql.streaming.stateStore.compression.codec", "x.Y"),
    ],
)
def test_settings_that_name_classes_files_or_options_of_java_are_refused(name: str, value: str) -> None:
    assert refusal_of(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.shuffle.partitions", "2"),
        ("spark.sql.streaming.multipleWatermarkPolicy", "max"),
        ("spark.sql.streaming.stateStore.providerClass", CLASS),
    ],
)
def test_settings_of_the_query_are_not(name: str, value: str) -> None:
    assert refusal_of(name, value) is None


def test_the_lists_of_settings_do_not_overlap() -> None:
    assert not set(streaming_confs()) & other_confs()
    assert all(conf.since.line >= "2.4" for conf in streaming_confs().values())


def test_every_place_is_found(tmp_path: Path) -> None:
    text = """\
title: x
streams: {e: "a INT, t TIMESTAMP"}
query:
  - from: e
  - where: reflect('a', 'b') = 1
  - withColumn: [b, "java_method('a', 'b')"]
  - select: [a, "b + reflect('a', 'b')"]
  - groupBy: ["reflect('a', 'b')"]
    agg: ["count(reflect('a', 'b'))"]
  - join:
      - from: e
      - sql: SELECT * FROM text.passwd
        as: v
    on: reflect('a', 'b')
  - transformWithState: {by: [a], with: number_rows, initialState: SELECT * FROM text.passwd}
  - call: os:getcwd
conf: {spark.sql.extensions: x}
steps:
  - restart:
      how: graceful
      change:
        conf: {spark.jars: x}
        query: [{from: e}, {where: "reflect('a', 'b')"}]
"""
    path = tmp_path / "x.yaml"
    path.write_text(text)
    places = [(one.line, one.column) for one in read_case(path, "x").needs_code]
    assert places == [
        (5, 12), (6, 22), (7, 22), (8, 16), (9, 18), (12, 28), (14, 9), (15, 82), (16, 5), (17, 8), (22, 16), (23, 37)
    ]  # fmt: skip


def _case(query: list[dict[str, object]]) -> dict[str, object]:
    return {"title": "x", "streams": {"e": "a INT"}, "query": query, "steps": [{"idle": {}}]}


@pytest.mark.parametrize(
    "operation",
    [
        {"dropDuplicates": ["_metadata"]},
        {"dropDuplicatesWithinWatermark": ["a", "x._metadata.file_path"]},
        {"applyInPandasWithState": {"by": ["`_METADATA`.file_path"], "with": "count_rows"}},
        {"select": ["_metadata.file_path"]},
        {"select": ["a", "_metadata"]},
        {"drop": ["_metadata.file_size_", "a"]},
        {"dropDuplicates": ["_metadata.file_size", "_metadata.file_size._metadata"]},
    ],
)
def test_the_hidden_column_of_files_is_refused_wherever_a_column_is_named(operation: dict[str, object]) -> None:
    """A case that expects an error names columns that do not exist, so no other check refuses it."""
    expected = {"steps": [{"start": {}, "expect": {"error": {"class": "AnalysisException"}}}]}
    (found,) = case_from(_case([{"from": "e"}, operation]) | expected, "x").needs_code
    assert found.reason == "_metadata shows paths of the engine's machine"


@pytest.mark.parametrize(
    "operation",
    [
        {"select": ["a", "_metadata.file_size", "e.`_metadata`.file_block_start AS b"]},
        {"where": "_metadata.file_block_length > 0"},
        {"sql": "SELECT a, _metadata.file_size FROM e", "as": "e"},
    ],
)
def test_the_fields_of_the_hidden_column_that_show_no_path_are_read(operation: dict[str, object]) -> None:
    assert case_from(_case([{"from": "e"}, {"alias": "e"}, operation]), "x").needs_code == ()


KEY: list[dict[str, object]] = [{"select": ["a", "_metadata"]}, {"dropDuplicatesWithinWatermark": []}]


def test_the_hidden_column_itself_may_be_a_key_of_a_deduplication_that_named_columns_follow() -> None:
    last: list[dict[str, object]] = [{"select": ["a", "_metadata.file_size AS b"]}]
    assert case_from(_case([{"from": "e"}, *KEY, *last]), "x").needs_code == ()
    assert case_from(_case([{"from": "e"}, *KEY, *KEY, *last]), "x").needs_code == ()


@pytest.mark.parametrize(
    "rest",
    [
        [],
        [{"select": ["*"]}],
        [{"select": ["a.*"]}],
        [{"select": ["_metadata"]}],
        [{"select": ["a", "_metadata.file_path AS b"]}],
        [{"where": "a = 1"}, {"select": ["a"]}],
        [{"dropDuplicates": ["_metadata"]}, {"select": ["a"]}],
        [{"select": ["a"]}, {"select": ["to_json(_metadata)"]}],
        # As an alias of YAML writes it: the same text, at the same place.
        [{"select": ["a"]}, KEY[0]],
    ],
)
def test_it_is_refused_where_anything_else_follows(rest: list[dict[str, object]]) -> None:
    expected = {"steps": [{"start": {}, "expect": {"error": {"class": "AnalysisException"}}}]}
    found = case_from(_case([{"from": "e"}, *KEY, *rest]) | expected, "x").needs_code
    assert {each.reason.partition(":")[0] for each in found} & {"_metadata shows paths of the engine's machine"}


def test_a_text_that_an_alias_repeats_is_no_key_alone(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(
        "title: t\nstreams: {e: a INT}\nquery:\n- from: e\n- select: &s [a, _metadata]\n- dropDuplicates: []\n- select: [a]\n- select: *s\n"
        "steps: [{start: {}, expect: {error: {class: AnalysisException}}}]\n"
    )
    assert read_case(file, "x").needs_code


@pytest.mark.parametrize("text", ["'\n'", "'\\n'"])
@pytest.mark.parametrize("reads", ["_metadata.file_size", "`_METADATA` .\t`file_size`"])
def test_a_query_that_reads_them_has_no_text_that_could_look_like_a_line_of_a_plan(text: str, reads: str) -> None:
    selects: list[dict[str, object]] = [{"from": "e"}, {"select": ["a", f"{text} AS b"]}]
    assert case_from(_case(selects), "x").needs_code == ()
    found = case_from(_case([*selects, {"where": f"{reads} > 0"}]), "x").needs_code
    assert {need.reason for need in found} == {
        "a line break or a backslash cannot be checked in a query that reads _metadata"
    }
    named = _case([{"from": "e"}, {"where": f"{reads} > 0"}]) | {"streams": {"e": "a INT, `b\n` INT"}}
    assert len(case_from(named, "x").needs_code) == 1


def test_a_case_as_a_mapping_is_checked_too() -> None:
    """``fuzz`` draws cases and reads them back from JSON."""
    written = json.loads(json.dumps(_case([{"from": "e"}, {"where": "reflect('a', 'b')"}])))
    assert case_from(written, "x").needs_code == (
        NeedsCode(line=0, column=0, reason="the function reflect calls any static method of Java"),
    )
