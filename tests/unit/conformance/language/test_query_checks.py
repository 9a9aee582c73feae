"""Mistakes in queries are found without an engine, and nothing that Spark takes is called one. `invalid/` has the mistakes."""

import pytest

from conformance.core.case import Case
from conformance.core.spark_types import parse_type
from conformance.language import InvalidCase, case_from
from conformance.language.sql_expression import (
    Mistake,
    made_of,
    readable,
    references,
    syntax_mistakes,
    unknown_functions,
)
from tests.unit.conformance.language.test_permission import EXPRESSIONS, QUERIES

STREAM = (
    "t TIMESTAMP, s TIMESTAMP, a INT, b INT, c BOOLEAN, d BOOLEAN, key STRING, status STRING, xs ARRAY<INT>, m MAP<STRING, INT>, "
    "p STRUCT<x: INT, y: STRUCT<z: STRING>>, `odd name` INT, value STRING, e STRUCT<window: STRUCT<start: TIMESTAMP>>"
)
RIGHT = (
    "t + INTERVAL 1 HOUR 30 MINUTES",
    "t + INTERVAL '1:30' MINUTE TO SECOND > s",
    "t - INTERVAL '10' MINUTES",
    "CASE status WHEN 'a' THEN 1 WHEN 'b' THEN 2 ELSE 0 END AS n",
    "CASE WHEN a > 1 THEN b END n",
    "date_format(window(t, '10 minutes').start, 'HH:mm') begin",
    "count(1) FILTER (WHERE a > 1)",
    "named_struct('x', a, 'y', b) AS payload",
    "element_at(m, 'k') + m['k'] + xs[0]",
    "status NOT LIKE '%a%' ESCAPE '!' OR status RLIKE 'a' OR status IS NOT NULL",
    "-a + ~b - -1 * +2 % 3 DIV 2 = 0",
    "key || '-' || status",
    "NULL AS x",
    "1.5D + 1e3 + 2L + 0.5BD",
    "p.y.z = 'x' AND e.window.start < t",
    "`odd name` + 1 AS `another name`",
    "from_json(value, 'a INT, t TIMESTAMP') AS j",
    "posexplode(xs) AS (i, x)",
    "explode(m) AS (k, v)",
    "p.*",
    "first(a, true)",
    "collect_list(struct(a, b AS bb))",
    "sum(DISTINCT a)",
    "max_by(key, t)",
    "a BETWEEN 1 AND 2 AND (c OR NOT d)",
    "try_cast(status AS ARRAY<STRUCT<q: INT>>)",
    "CAST(t AS LONG) * 1000 + status::INT",
    "EXTRACT(HOUR FROM t)",
    "TRIM(LEADING '0' FROM status)",
    "timestampadd(MINUTE, 5, t)",
    "TIMESTAMP'2024-01-01 00:00:00' < t AND DATE '2024-01-01' < CAST(t AS DATE)",
    "X'1F'",
    "filter(xs, x -> x > 1 AND x < a)",
    "aggregate(xs, 0, (sum, x) -> sum + x)",
    "a IN (1, 2) AND b NOT IN (3)",
    "session_window(t, CASE WHEN status = 'a' THEN '5 seconds' ELSE '10 seconds' END)",
    "window(t, '1 hour', '15 minutes', '5 minutes')",
    "row_number() OVER (PARTITION BY key ORDER BY t DESC NULLS LAST ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
    "current_timestamp() > t OR current_date < CAST(t AS DATE)",
    "if(a > 1, 'x', 'y')",
    "'it''s' 'two'",
    "a <=> b",
    "(a, b)",
    "count(*)",
    "array(1, 2)[0]",
    "left(status, 2) = right(key, 2)",
)
STATEMENTS = (
    *QUERIES,
    "SELECT a x, b y FROM e WHERE a > 1 GROUP BY a, b",
    "SELECT key, max(t) latest FROM (SELECT * FROM e WHERE c) inner_e GROUP BY key HAVING max(t) > TIMESTAMP'2024-01-01' LIMIT 1",
    "SELECT * FROM e l JOIN e r ON l.key = r.key AND l.t BETWEEN r.t - INTERVAL 1 HOUR AND r.t",
    "SELECT window.start, count(*) n FROM e GROUP BY window(t, '10 minutes'), key ORDER BY n DESC",
    "SELECT count(DISTINCT key), sum(CASE WHEN c THEN 1 ELSE 0 END) FROM e GROUP BY key WITH ROLLUP",
)


def case_with(streams: dict[str, str], *operations: dict[str, object], step: dict[str, object] | None = None) -> Case:
    query = [{"from": next(iter(streams))}, *operations]
    return case_from({"title": "x", "streams": streams, "query": query, "steps": [step or {"idle": {}}]}, "x")


@pytest.mark.parametrize("text", [*RIGHT, *EXPRESSIONS])
def test_no_right_expression_is_called_wrong(text: str) -> None:
    assert list(syntax_mistakes(text, alias=True)) == []
    assert list(unknown_functions(text)) == []


@pytest.mark.parametrize("text", RIGHT)
def test_no_column_of_a_right_expression_is_unknown(text: str) -> None:
    case_with({"r": STREAM}, {"select": [text]})


@pytest.mark.parametrize("text", STATEMENTS)
def test_no_right_statement_is_called_wrong(text: str) -> None:
    assert list(syntax_mistakes(text, alias=False, statement=True)) == []
    case_with({"r": f"{STREAM}, x INT, x_a INT, id INT, `update` INT"}, {"sql": text, "as": "e"})


@pytest.mark.parametrize(
    "text",
    [
        "status COLLATE UNICODE = 'a'",
        "status COLLATE system.builtin.UTF8_LCASE = 'a'",
        "substring(status FROM 1 FOR 2) = 'a'",
        "overlay(status PLACING 'x' FROM 1 FOR 1) = 'a'",
        "(a >> 1) = 2 AND (a >>> 1) = 2 AND (a << 1) = 2",
        "a !< 1 AND a !> b",
        "CAST(xs AS ARRAY<ARRAY<INT>>) IS NULL",
        "(a = 1) IS UNKNOWN OR (a = 1) IS NOT UNKNOWN",
        r"status RLIKE r'\d' AND status <> R'\w\n'",
        "localtime < TIME'12:00'",
    ],
)
def test_the_grammar_of_newer_versions_is_known(text: str) -> None:
    """Each is refused by no check, and none is left to Spark; Spark's own examples are in ``tests/engine``."""
    case = case_with({"r": STREAM}, {"where": text})
    assert (case.not_checked, case.needs_code) == ((), ())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("status RESEMBLES 'a'", "unexpected 'RESEMBLES' in 'status RESEMBLES'"),
        ("a NEWOP b > 0", "unexpected 'NEWOP' in 'a NEWOP'"),
        ("status = GEOMETRY '00'", "unexpected \"'00'\" in \"GEOMETRY '00'\""),
        ("a = 1 /* one */", "a comment"),
        ("a = ?", "unexpected '?' in Spark SQL"),
        (r"status = r'\' OR status = '\'", "a raw string with a backslash before a quote"),
    ],
)
def test_syntax_that_is_not_known_is_a_warning_that_names_the_text(text: str, shown: str) -> None:
    case = case_with({"r": STREAM}, {"where": text})
    ((_, warning),) = case.not_checked
    assert warning.startswith(f"not checked: {text!r}: ")
    assert shown in warning


@pytest.mark.parametrize("text", ["a b > 0", "a > 0 amd b < 5", "status 'a'", "concat(key status) = 'a'", "a > 5 b"])
def test_a_missing_operator_between_what_is_known_stays_a_mistake(text: str) -> None:
    with pytest.raises(InvalidCase, match="is an operator or a comma missing"):
        case_with({"r": STREAM}, {"where": text})


@pytest.mark.parametrize("call", ["reflect('a', 'b')", "java_method('a', 'b')", "input_file_name()", "xpath(key, 'a')"])
@pytest.mark.parametrize(
    "around",
    [
        "{} NEWOP b",
        "a NEWOP {} > 0",
        "status COLLATE {}",
        "(a >> {}) > 0",
        "overlay(status PLACING {} FROM 1)",
        "r'\\d' || {}",
        "(a = 1) IS UNKNOWN OR {}",
        r"r'\' || {} || '\'",
        r"r'\' || ' || {} || ''",
        "/* */ {}",
    ],
)
def test_what_is_not_checked_lets_no_function_run_without_permission(around: str, call: str) -> None:
    assert case_with({"r": STREAM}, {"where": around.format(call)}).needs_code


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("SELECT * FORM events", "FORM", "unexpected 'FORM' after '*': expected FROM"),
        ("SELECT a, * things events", "things", "unexpected 'things' after '*': expected FROM"),
        ("SELECT key FROM events GROUP key", "GROUP", "BY is missing after 'GROUP'"),
        ("SELECT key FROM events WHERE a > 1 order key", "order", "BY is missing after 'order'"),
        ("SELECT key AS FROM events", "FROM", "a name is missing after 'AS'"),
        ("SELECT DISTINCT FROM events", "FROM", "a column is missing before 'FROM'"),
    ],
)
def test_a_clause_that_is_not_finished(text: str, at: str, message: str) -> None:
    assert list(syntax_mistakes(text, alias=False, statement=True)) == [Mistake(text.index(at), message)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a AS order, b AS group FROM e",
        "SELECT * EXCEPT (a) FROM e",
        "SELECT key, * FROM e ORDER BY order",
        "SELECT e.order FROM e",
        "SELECT a * b FROM e",
        "SELECT key AS from FROM e",
        "SELECT a IS DISTINCT FROM b FROM e",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM e",
    ],
)
def test_words_of_clauses_may_be_names(text: str) -> None:
    assert list(syntax_mistakes(text, alias=False, statement=True)) == []


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a", [("a", "int")]),
        ("p.y.z", [("z", "string")]),
        ("p.*", [("x", "int"), ("y", "struct<z:string>")]),
        ("max(t) AS latest", [("latest", "timestamp")]),
        ("max(t) latest", [("latest", "timestamp")]),
        ("count(*) AS `n`", [("n", "bigint")]),
        ("CAST(a AS STRING) AS n", [("n", "string")]),
        ("window(t, '10 minutes')", [("window", "struct<start:timestamp,end:timestamp>")]),
        ("a + 1", [("", None)]),
        ("explode(xs) AS x", None),
        ("posexplode(xs) AS (i, x)", None),
    ],
)
def test_the_columns_that_an_expression_makes(text: str, columns: list[tuple[str, str | None]] | None) -> None:
    scope = {
        "a": parse_type("int"),
        "t": parse_type("timestamp"),
        "p": parse_type("struct<x:int,y:struct<z:string>>"),
        "xs": parse_type("array<int>"),
    }
    made = made_of(readable(text), scope)
    assert (made if made is None else [(one.name, one.type and str(one.type)) for one in made]) == columns


@pytest.mark.parametrize(
    "text", ["CREATE TABLE made AS SELECT 1 AS n", "SELECT * FROM e TABLESAMPLE (5 PERCENT) REPEATABLE (2) x"]
)
def test_a_statement_that_needs_permission_may_be_of_any_kind(text: str) -> None:
    assert case_with({"r": "a INT"}, {"sql": text, "as": "e"}).needs_code


def test_the_columns_that_an_expression_reads() -> None:
    found = [str(one) for one in references("CASE WHEN e.Key = 'a' THEN `b` ELSE sum(x.y[z]) END AS n")]
    assert found == ["e.key", "b", "x.y", "z"]


def test_a_query_that_the_case_expects_to_be_refused_is_not_checked() -> None:
    """Such cases ask what Spark says."""
    step = {"start": {}, "expect": {"error": {"class": "X"}}}
    query = {"withWatermark": ["t", "10 minuts"]}, {"select": ["nothing"]}, {"where": "n >"}
    case_with({"e": "t TIMESTAMP"}, *query, step=step)
