"""Functions that production queries use beside the time: their values, and what is left to the ANSI mode."""

import pytest

from conformance.model.errors import Unpredictable
from tests.support.model_frames import SECOND, VERSIONS, events, played, watermarked


def value(expression, number=7, text="/api/x"):
    ((row,),), _ = played(events().select(f"{expression} AS v"), [(5, number, text)])
    return row[0]


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("n / 2", 3.5),
        ("-n / 2", -3.5),
        ("abs(-n)", 7),
        ("abs(n - 9)", 2),
        ("round(n / 3, 1)", 2.3),
        ("round(n / 2)", 4.0),
        ("round(-n / 2)", -4.0),
        ("round(CAST(1.005 AS DOUBLE), 2)", 1.01),
        ("s LIKE '/api%'", True),
        ("s LIKE '/api'", False),
        ("s LIKE '%/_'", True),
        ("s LIKE '/a.i/x'", False),
        ("s NOT LIKE '/api%'", False),
        ("NOT s LIKE '/web%'", True),
        ("n NOT IN (1, 2)", True),
        ("n NOT BETWEEN 1 AND 9", False),
        ("concat(s, '-', 'y')", "/api/x-y"),
        ("s || '?' || s", "/api/x?/api/x"),
        ("split(s, '/')[1]", "api"),
        ("split(s, '/')[0]", ""),
        ("hash('ABC')", -757602832),  # this one and the next are in PySpark's documentation
        ("hash('ABC', 'DEF')", 599895104),
        ("hash('ABC', NULL)", -757602832),
        ("hash(n)", 1079293707),  # from here on as Spark 3.5.9 answered
        ("hash('abcdé')", 1633936390),
        ("hash('')", 142593372),
        ("hash(CAST(NULL AS INT))", 42),
        ("n % 3", 1),
        ("-n % 3", -1),
        ("n % -3", 1),
        ("CAST(2.9 AS INT)", 2),
        ("CAST(-2.9 AS INT)", -2),
        ("CAST(t + INTERVAL 500 MILLISECONDS AS STRING)", "1970-01-01 00:00:05.5"),
        ("CASE WHEN n > 9 THEN 'a' WHEN n > 3 THEN 'b' ELSE 'c' END", "b"),
        ("CASE WHEN n > 9 THEN 'a' WHEN n > 8 THEN 'b' ELSE 'c' END", "c"),
        ("CASE WHEN n > 9 THEN 'a' END", None),
        ("s LIKE '[/]api/x'", False),
        ("concat(s, '*b') LIKE '%*b'", True),
        ("concat(s, '?b') LIKE '%*b'", False),
        ("concat(s, '?b') LIKE '%?b'", True),
        ("concat(s, '[b') LIKE '%[b'", True),
        ("t + make_dt_interval(1, 2, 3, 4.5)", 93_789_500_000),
        ("t + (INTERVAL 2 DAYS + INTERVAL 1 HOUR)", 176_405 * SECOND),
        ("unix_timestamp(t + INTERVAL 900 MILLISECONDS)", 5),
        ("CAST(t + INTERVAL 900 MILLISECONDS AS DOUBLE)", 5.9),
        ("n IN (1, NULL)", None),
        ("n <=> NULL", False),
        ("abs(hash(s)) % 4 < 4", True),
        ("if(n > 5, 'many', 'few')", "many"),
        ("nvl(NULL, s)", "/api/x"),
    ],
)
def test_values(expression, found):
    assert value(expression) == found


@pytest.mark.parametrize(
    "expression", ["n / 2", "abs(n)", "round(n / 2, 1)", "s LIKE '%'", "s NOT LIKE '%'", "concat(s, 'x')", "s || 'x'"]
)
def test_of_null_they_are_null(expression):
    assert value(expression, None, None) is None


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("n / 0", "a division by zero"),
        ("split(s, '/')[3]", "an element beyond the end of an array"),
        ("split(s, '[/]')[0]", "split by a regular expression"),
        ("s[0]", "the expression s"),
        ("hash(t)", "hash of other than INT and STRING"),
        ("s LIKE 'a\\\\%'", "LIKE with a pattern that escapes"),
        ("concat(s, n)", "text of string and int"),
        ("round(n, 1)", "the expression ROUND"),
        ("round(n / 2, n)", "the expression ROUND"),
        ("s LIKE n", "a comparison of string and int"),
    ],
)
def test_what_versions_or_modes_decide_is_not_predicted(expression, reason):
    with pytest.raises(Unpredictable, match=reason):
        value(expression)


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("CASE WHEN n > 5 THEN n END", "int"),
        ("CASE WHEN n > 5 THEN n ELSE NULL END", "int"),
        ("if(n > 5, NULL, n)", "int"),
        ("coalesce(NULL, n)", "int"),
        ("n > 5", "boolean"),
        ("n % 3", "int"),
        ("n / 2", "double"),
        ("hash(n)", "int"),
        ("unix_timestamp(t)", "bigint"),
        ("t + INTERVAL 1 SECOND", "timestamp"),
        ("split(s, '/')", "array<string>"),
    ],
)
def test_types(expression, type_):
    assert str(events().select(f"{expression} AS v").plan.columns[0].type) == type_


@pytest.mark.parametrize("choice", ["max_by", "min_by"])
def test_of_rows_that_tie_by_their_order_none_is_chosen(choice):
    """Which row is taken depends on the order of partitions."""
    frame = watermarked().group_by(["window(t, '10 seconds')"], [f"{choice}(s, n) AS v"]).select("v")
    assert played(frame, [(5, None, "x"), (5, 7, "a"), (5, 7, "a")], mode="update")[0] == [[("a",)]]
    assert played(frame, [(5, None, "x")], mode="update")[0] == [[(None,)]]
    chosen = played(frame, [(5, 1, "low"), (5, 7, "high"), (5, 4, "b"), (5, 4, "c")], mode="update")[0]
    assert chosen == [[("high" if choice == "max_by" else "low",)]]
    with pytest.raises(Unpredictable, match="max_by or min_by with equal values"):
        played(frame, [(5, 7, "a"), (6, 7, "b")], mode="update")


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_that_meet_a_condition_are_counted(version):
    frame = watermarked(version).group_by(["window(t, '10 seconds')"], ["count_if(n > 3) AS many"]).select("many")
    batch = [(5, 7, "a"), (6, 2, "a"), (7, None, "a"), (8, 4, "b")]
    assert played(frame, batch, [(15, 1, "a")], mode="update")[0] == [[(2,)], [(0,)]]


def test_a_pattern_filters_below_the_watermark():
    frame = watermarked().where("s NOT LIKE '/health%'")
    rows, watermark = played(frame, [(100, 1, "/x"), (900, 1, "/health"), (901, 1, None)])
    assert (rows, watermark) == ([[(100 * SECOND, 1, "/x")]], 90)


@pytest.mark.parametrize(("share", "found"), [(0.0, 1), (0.5, 3), (0.6, 3), (0.61, 4), (0.99, 9), (1.0, 9)])
def test_a_percentile_of_few_rows_is_exact(share, found):
    frame = watermarked().group_by(["window(t, '10 seconds')"], [f"percentile_approx(n, {share}) AS p"]).select("p")
    batch = [(5, value, "a") for value in (4, 1, 9, 2, 3)]
    assert played(frame, batch, mode="update")[0] == [[(found,)]]


@pytest.mark.parametrize("call", ["percentile_approx(n, 0.5, 100)", "percentile_approx(n, 1)"])
def test_other_percentiles_are_not_predicted(call):
    with pytest.raises(Unpredictable, match="percentile_approx other than of one share"):
        watermarked().group_by(["s"], [f"{call} AS p"])
