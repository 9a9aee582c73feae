"""Spark's own notation, as sqlglot gets it."""

import pytest
from sqlglot import exp

from conformance.query.syntax import (
    NotReadable,
    WatermarkClause,
    called,
    expression,
    statement,
    watermark_of,
    window_call,
    written,
)


def clauses(text: str) -> list[tuple[str, WatermarkClause]]:
    tables = statement(text).find_all(exp.Table, exp.Subquery)
    return [(table.alias_or_name, clause) for table in tables if (clause := watermark_of(table))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT * FROM e WATERMARK t DELAY OF INTERVAL 10 MINUTES",
            [("e", WatermarkClause("t", None, "INTERVAL 10 MINUTES"))],
        ),
        (
            "SELECT * FROM e WATERMARK f(s) AS t DELAY OF INTERVAL 1 DAY AS x WHERE a",
            [("x", WatermarkClause("f(s)", "t", "INTERVAL 1 DAY"))],
        ),
        (
            "SELECT * FROM (SELECT * FROM a) WATERMARK t DELAY OF INTERVAL 1 DAY AS x JOIN b watermark u delay of interval 2 days ON i",
            [("x", WatermarkClause("t", None, "INTERVAL 1 DAY")), ("b", WatermarkClause("u", None, "interval 2 days"))],
        ),
        ("SELECT * FROM e", []),
    ],
)
def test_watermark_clauses(text: str, expected: list[tuple[str, WatermarkClause]]) -> None:
    assert sorted(clauses(text)) == sorted(expected)


def test_a_sample_is_no_watermark() -> None:
    text = (
        "SELECT * FROM e WATERMARK t DELAY OF INTERVAL 1 DAY JOIN f TABLESAMPLE (0 ROWS) JOIN g TABLESAMPLE (5 PERCENT)"
    )
    assert clauses(text) == [("e", WatermarkClause("t", None, "INTERVAL 1 DAY"))]


def test_group_by_window_is_a_call() -> None:
    group = statement("SELECT count(*) FROM e GROUP BY window(t, '1 hour')").args["group"]
    assert [window_call(key) is not None for key in group.expressions] == [True]


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("Window(t, '1 hour')", True),
        ("session_window(t, concat(a, ')'))", True),
        ("window(t, '1 hour').start", False),
        ("window(t, '1 hour') AS w", False),
        ("window_time(w)", False),
        ("window", False),
    ],
)
def test_a_bare_window(text: str, bare: bool) -> None:
    assert (window_call(expression(text)) is not None) == bare


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("FIRST(v) + last ( v )", {"first", "last"}),
        ("first(v, true)", {"first"}),
        ("max_by(a, b)", {"max_by"}),
        ("to_timestamp(x) > '2024' AND a IN (1, 2)", {"to_timestamp"}),
        ("date_format(`t`, 'HH:mm')", {"date_format"}),
        ("CASE WHEN a THEN b END", set()),
    ],
)
def test_called_functions(text: str, names: set[str]) -> None:
    assert set(called(expression(text))) == names


def test_functions_are_written_as_they_were() -> None:
    assert written(expression("window(t, '1 hour') AS w")) == "window(t, '1 hour') AS w"


@pytest.mark.parametrize("text", ["SELECT (", "SELECT '", "(" * 3000 + "id" + ")" * 3000])
def test_what_sqlglot_cannot_parse(text: str) -> None:
    with pytest.raises(NotReadable):
        statement(text)
