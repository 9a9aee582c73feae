"""What the model leaves open, by the name it gives to it, beside the nearest query that it does predict."""

import pytest

from conformance.model import sql
from conformance.model.errors import Unpredictable
from tests.support.model_frames import SECOND, events, played, two_views, watermarked

BATCH = [(5, 7, "/api/x"), (6, 8, "b")]


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("n % 0", "a remainder of a division by zero"),
        ("CAST(s AS TIMESTAMP)", "CAST of text that is not an instant"),
        ("TIMESTAMP'12:05'", "CAST of a time without a date"),
        ("CAST(n > 1 AS STRING)", "CAST AS STRING of other than whole numbers"),
        ("CAST(n / 2 AS STRING)", "CAST AS STRING of other than whole numbers"),
        ("CAST(s AS INT)", "CAST AS INT or BIGINT of other than numbers"),
        ("CAST(s AS DOUBLE)", "CAST AS DOUBLE of other than numbers"),
        ("CAST(n > 1 AS DOUBLE)", "CAST AS DOUBLE of other than numbers"),
        ("CAST(n AS DATE)", "CAST AS DATE"),
        ("CAST(n AS BOOLEAN)", "CAST AS BOOLEAN"),
        ("n + s", "arithmetic over int and string"),
        ("1 + NULL", "arithmetic over int and void"),
        ("n +", "the syntax of"),
        ("n DIV 2", "the expression n DIV 2"),
        ("soundex(s)", "the expression SOUNDEX"),
        ("n IS TRUE", "the expression n IS TRUE"),
        ("CASE n WHEN 1 THEN 2 END", "CASE with an operand"),
        ("INTERVAL 'x' DAY", "the interval"),
        ("date_format(s, 'HH')", "date_format of string"),
        ("date_format(t, 'EEEE')", "date_format by parts other than"),
        ("to_timestamp(n, 'HH')", "to_timestamp with a pattern of int"),
        ("to_timestamp(s, 'yyyy')", "to_timestamp of text that its pattern does not read"),
        ("unix_timestamp(s)", "unix_timestamp of string"),
        ("split(s, '/')[n > 2]", "the expression SPLIT"),
        ("window(n, '1 second')", "a window over int"),
        ("window(t)", "the call"),
        ("window(t, 'x')", "the interval 'x'"),
        ("window(t, '2 seconds', '0 seconds')", "the lengths in"),
        ("window(t, '2 seconds', '3 seconds')", "the lengths in"),
        ("window_time(n)", "window_time of a column that is not a window"),
        ("session_window(t)", "the call"),
        ("session_window(t, '1 second')", "session_window outside groupBy"),
        ("s > n", "a comparison of string and int"),
        ("2147483647 + n", "a result beyond int"),
        ("-2147483647 - n", "a result beyond int"),
        ("hash(n > 1)", "hash of other than INT and STRING"),
        ("max(n)", "max in this place"),
        ("rand()", "rand, whose value is another in each run"),
        ("concat('" + "x" * 9_995 + "', s)", "a text of more than 10,000 characters"),
    ],
    ids=lambda text: text[:40],
)
def test_expressions(expression, reason):
    with pytest.raises(Unpredictable, match=reason):
        played(events().select(f"{expression} AS v"), BATCH)


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("concat('" + "x" * 9_994 + "', s)", "x" * 9_994 + "/api/x"),
        ("2147483640 + n", 2**31 - 1),
        ("-2147483641 - n", -(2**31)),
        ("window(t, '2 seconds', '2 seconds')", (4 * SECOND, 6 * SECOND)),
        ("window(t, '2 seconds', '2 seconds', '1 second')", (5 * SECOND, 7 * SECOND)),
    ],
    ids=["text", "the largest int", "the smallest int", "a slide as long as the window", "an offset"],
)
def test_expressions_at_the_limit(expression, found):
    assert played(events().select(f"{expression} AS v"), BATCH[:1])[0] == [[(found,)]]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("SELECT n FROM v SORT BY n", "SORT in SQL"),
        ("SELECT n FROM v QUALIFY n > 1", "QUALIFY in SQL"),
        ("SELECT n FROM v LATERAL VIEW explode(split(s, '/')) AS p", "LATERALS in SQL"),
        ("SELECT 1", "a SELECT without FROM"),
        ("SELECT n FROM x", "the table x"),
        ("SELECT n FROM v, w", "a join in SQL other than"),
        ("SELECT v.n FROM v CROSS JOIN w", "a join in SQL other than"),
        ("SELECT v.n FROM v JOIN w USING (n)", "a join in SQL other than"),
        ("SELECT v.n FROM v NATURAL JOIN w", "a join in SQL other than"),
        ("SELECT v.n FROM v LEFT ANTI JOIN w ON v.n = w.n", "a join in SQL other than"),
        ("SELECT n FROM v EXCEPT SELECT n FROM w", "the statement"),
        ("SELECT n, s FROM v UNION ALL SELECT n FROM w", "a union of frames of different widths"),
        ("SELECT * FROM v JOIN range(1) AS r ON v.n = r.id", "range other than of two numbers"),
        ("SELECT * FROM v JOIN range(0, 1000001) AS r ON v.n = r.id", "range of more than 1,000,000 numbers"),
        ("SELECT * FROM v JOIN VALUES (7, 'x') AS k(a) ON v.n = k.a", "VALUES of other than constants"),
        ("SELECT * FROM v JOIN VALUES (rand()) AS k(a) ON v.n = k.a", "VALUES of other than constants"),
        ("SELECT * FROM v RIGHT JOIN VALUES (7) AS k(a) ON v.n = k.a", "a rightOuter join with static rows"),
        ("SELECT * FROM v JOIN VALUES (7) AS k(a) ON v.n = k.a LIMIT 1", "a limit above a join with static rows"),
        ("SELECT * FROM v JOIN (SELECT a FROM VALUES (7) AS k(a) LIMIT 1) AS d ON v.n = d.a", "of a batch frame"),
        ("SELECT v.n FROM v JOIN VALUES (7) AS k(a) ON v.n = k.a", "an event time in the input of a join that nothing"),
        ("SELECT n FROM v LIMIT 2147483648", "a limit beyond int"),
        ("SELECT n FROM v JOIN w ON v.t = w.t", "the ambiguous name n"),
    ],
)
def test_statements(statement, reason):
    with pytest.raises(Unpredictable, match=reason):
        played(sql.run(statement, two_views()), BATCH)


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("SELECT t, n, id FROM v JOIN range(6, 8) AS r ON v.n = r.id", [(5 * SECOND, 7, 7)]),
        ("SELECT t, b FROM v JOIN VALUES (7, 'x'), (9, 'y') AS k(a, b) ON v.n = k.a", [(5 * SECOND, "x")]),
        ("SELECT t, b FROM v JOIN VALUES (7, 'x'), (7, 'y') AS k(a, b) ON v.n = k.a AND b > 'x'", [(5 * SECOND, "y")]),
        ("SELECT n FROM v LIMIT 2147483647", [(7,), (8,)]),
        ("SELECT n FROM v LIMIT 1", [(7,)]),
    ],
)
def test_static_rows_join_every_micro_batch_and_keep_no_state(statement, rows):
    assert played(sql.run(statement, two_views()), BATCH)[0] == [rows]


def test_a_gap_of_months_has_no_length():
    frame = watermarked().group_by(["session_window(t, '1 month')", "n"], ["count(*) AS c"])
    with pytest.raises(Unpredictable, match="a gap of months"):
        played(frame, BATCH)


def test_a_text_that_is_no_gap_makes_no_session():
    frame = watermarked().group_by(["session_window(t, s)", "n"], ["count(*) AS c"]).select("n", "c")
    expected = ([[], [(7, 1)]], 50)
    assert played(frame, [(5, 7, "1 second"), (5, 8, "no gap"), (5, 9, None)], [(60, 1, "1 second")]) == expected


def test_several_windows_at_once_are_not_predicted_and_the_same_twice_are_one():
    with pytest.raises(Unpredictable, match="several time windows at once"):
        played(events().select("window(t, '1 second') AS a", "window(t, '2 seconds') AS b"), BATCH)
    twice = events().select("window(t, '2 seconds') AS a", "window(t, '2 seconds') AS b")
    assert played(twice, BATCH[:1])[0] == [[((4 * SECOND, 6 * SECOND), (4 * SECOND, 6 * SECOND))]]


def test_the_time_of_a_window_is_of_the_window_wherever_its_column_stands():
    """SPARK-40821: the last microsecond of the window."""
    frame = watermarked().group_by(["window(t, '10 seconds')"], ["count(*) AS c"]).select("c", "window")
    assert played(frame.select("c", "window_time(window) AS at"), BATCH, mode="update")[0] == [[(2, 10 * SECOND - 1)]]
    with pytest.raises(Unpredictable, match="window_time of a column that is not a window"):
        frame.select("window_time(c)")


def test_columns_are_replaced_and_dropped_without_regard_to_case():
    frame = events()
    assert played(frame.with_column("N", "n + 1").drop("S"), BATCH[:1])[0] == [[(5 * SECOND, 8)]]
    assert [column.name for column in frame.with_column("m", "n").plan.columns] == ["t", "n", "s", "m"]


def test_an_event_time_in_a_struct_in_a_struct_is_not_predicted():
    inner = watermarked().select("struct(t, n) AS p", "n")
    with pytest.raises(Unpredictable, match="an event time in a struct in a struct"):
        inner.select("struct(p, n) AS q")


def test_a_union_has_the_names_of_its_first_input_and_both_its_rows():
    views = two_views()
    frame = views["v"].select("n", "s").union(views["w"].select("n + 10 AS m", "s"))
    assert [column.name for column in frame.plan.columns] == ["n", "s"]
    assert sorted(played(frame, BATCH[:1])[0][0]) == [(7, "/api/x"), (17, "/api/x")]
