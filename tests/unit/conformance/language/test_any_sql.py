"""Any SQL text: the check answers, and what it lets through is a query over views, as a parser of others reads it too."""

import contextlib

import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from conformance.language.permission import refusals
from conformance.model.errors import Unpredictable
from conformance.model.parsing import syntax
from tests.support.effort import number

VIEWS = ("v", "w")
WORDS = """
    SELECT FROM WHERE JOIN ON WITH AS VALUES TABLE TRANSFORM USING INSERT OVERWRITE DIRECTORY CREATE FUNCTION SET EXISTS IN OVER
    v w x t n * 1 'a' "b" `c` text parquet passwd count sum reflect java_method current_timestamp() `/etc/passwd` text.`/etc/passwd`
    ( ) , . ; = + - -- /* */ ' " ` \\ $ ${env:HOME} {# |> é
"""
FRAGMENTS = (
    *WORDS.split(),
    *("UNION ALL", "GROUP BY", "LATERAL VIEW", "ADD JAR", "window(t, '1 minute')", "INTERVAL 1 DAY", "\u0000", "\n"),
)
TEXTS = st.one_of(
    st.text(max_size=60),
    st.tuples(st.sampled_from(["", " "]), st.lists(st.sampled_from(FRAGMENTS), max_size=14)).map(
        lambda made: made[0].join(made[1])
    ),
    st.lists(st.sampled_from(FRAGMENTS), max_size=10).map(lambda made: " ".join(["SELECT n FROM v", *made])),
)


@settings(max_examples=number(100, 400))
@given(text=TEXTS, statement=st.booleans())
def test_every_text_has_an_answer(text, statement):
    for one in refusals(text, VIEWS, statement=statement):
        assert 0 <= one.offset <= len(text)
        assert one.reason
    with contextlib.suppress(Unpredictable):
        syntax(text)


@settings(max_examples=number(100, 400))
@given(text=TEXTS)
def test_what_is_let_through_reads_views_only(text):
    if any(refusals(text, VIEWS, statement=True)):
        return
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except (sqlglot.errors.SqlglotError, RecursionError):
        return  # that parser cannot read it, and says nothing of it
    assert isinstance(tree, exp.Query | exp.Values), tree
    common = {one.alias.lower() for one in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        assert not table.db, table
        assert not table.name or table.name.lower() in {*VIEWS, *common} or isinstance(table.this, exp.Func), table
