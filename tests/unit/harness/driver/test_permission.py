"""The driver refuses by Spark's own plans what the host's check of the text should have refused. The plans are those of Spark 3.5."""

from types import SimpleNamespace

import pytest

from harness.driver.errors import NotPermitted, reason_of
from harness.driver.permission import (
    analysed_plan,
    check_plan,
    check_statement,
    refused_plan,
    refused_statement,
)

STREAM = """\
Project [window#27.start AS start#31, total#24L]
+- Aggregate [window#28], [window#28 AS window#27, sum(count#1) AS total#24L]
   +- Filter isnotnull(event_time#0)
      +- EventTimeWatermark event_time#0: timestamp, 25 minutes
         +- StreamingRelation DataSource(org.apache.spark.sql.SparkSession@1,json), FileSource[/w/events], [event_time#0, count#1]
"""
CONSTANTS = """\
Join Inner, (key#1 = letter#2)
:- SubqueryAlias events
:  +- View (`events`, [event_time#0,key#1])
:     +- StreamingRelationV2 org.apache.spark.sql.execution.streaming.FileStreamSource, json, [event_time#0, key#1]
+- SubqueryAlias names
   +- LocalRelation [letter#2, name#3]
"""
SCRIPT = """\
ScriptTransformation sh -c id, [b#1], ScriptInputOutputSchema(List(),List(),None,None,List(),List(),None,None,false)
+- Project [a AS a#2]
   +- OneRowRelation
"""
FILE = """\
Project [value#0]
+- Relation [value#0] text
"""
FILE_ON_3_0 = "Project [value#0]\n+- Relation[value#0] text\n"
FILE_IN_A_SUBQUERY = """\
Filter key#1 IN (list#5 [])
:  +- Project [value#0]
:     +- Relation [value#0] text
+- StreamingRelation DataSource(x), FileSource[/w/events], [key#1]
"""
REFLECTION = "Project [reflect(java.lang.System, getenv, HOME, true) AS home#1]\n+- OneRowRelation\n"
NAMES = "Project [input_file_name() AS f#1]\n+- StreamingRelation DataSource(x), FileSource[/w], [a#1]\n"
USER = "Project [current_user() AS current_user()#1]\n+- OneRowRelation\n"
SCRIPT_OF_A_STREAM = "~ScriptTransformation sh -c id, [b#1]\n+- StreamingRelation FileSource[/w], [a#1]\n"
"""As Spark 4.3 shows it."""
PATHS = (
    "Project [_metadata#5.file_path AS p#1]\n+- StreamingRelation DataSource(x), FileSource[/w], [a#1, _metadata#5]\n"
)
RELATION = "StreamingRelation FileSource[/w], [time#0, a#1, _metadata#5], name=<Unassigned>"
"""As 4.2 shows it; 3.5 shows the ``DataSource`` before it."""
SIZES = f"""\
~Project [a#1, isnotnull(_metadata#5.file_size) AS b#6]
+- ~DeduplicateWithinWatermark [time#0-T600000ms, a#1, _metadata#5]
   +- ~Project [concat(a#1, x) AS a#1, time#0-T600000ms, _METADATA#5]
      +- ~Project [_metadata#5, a#1, _metadata#5.file_block_start AS c#9L, time#0-T600000ms]
         +- ~EventTimeWatermark time#0: timestamp, 10 minutes
            +- {RELATION}
"""
SHOWN_PATHS = tuple(
    f"{operator}\n+- ~Project [a#1, _metadata#5]\n   +- {RELATION}\n"
    for operator in (
        "Project [_metadata#5 AS p#6]",
        "Project [_METADATA#5.file_path AS p#6]",
        "Project [_metadata#5.file_size AS s#6, _metadata#5.file_name AS p#7]",
        "Project [_metadata#5.file_size.file_path AS p#6]",
        "Project [_metadata#5.file_size_of AS p#6]",
        "Project [to_json(_metadata#5) AS p#6]",
        "Project [a#1, to_json(struct(a, a#1, _metadata, _metadata#5), Some(UTC)) AS p#6]",
        "Project [transform(array(_metadata#5), lambdafunction(lambda x#7.file_path, lambda x#7, false)) AS p#6]",
        "Project [a#1, _metadata#5, b#2]",
        "Filter (_metadata#5 = b#2)",
        "Aggregate [_metadata#5], [first(a#1) AS p#6, _metadata#5]",
        "Aggregate [a#1], [a#1, _metadata#5]",
        "FlatMapGroupsInPandasWithState count_rows(a#1, _metadata#5), [a#1, _metadata#5]",
        "Generate explode(array(_metadata#5)), false, [p#6]",
        "Union false, false",
        "'Except false",
        "Union false, false\n:- Project [b#2]\n:  +- LocalRelation [b#2]",
        "~Union false, false\n+- ~Filter (a#1 > 1)",
        "~Union false, false\n+- ~Deduplicate [_metadata#5]",
        "Deduplicate [to_json(_metadata#5)]",
    )
)
XML = "Project [xpath_string(c#2, a/b) AS b#3]\n+- LocalRelation [c#2]\n"
XML_OF_ROWS = (
    "Project [from_xml(StructField(a,IntegerType,true), c#4, Some(UTC)) AS from_xml(c)#5]\n+- LocalRelation [c#4]\n"
)
CATALOG = "Project [current_schema() AS current_schema()#10]\n+- OneRowRelation\n"


@pytest.mark.parametrize(
    "plan",
    [
        STREAM,
        CONSTANTS,
        "Range (1, 5, step=1, splits=None)",
        "'Distinct\n+- 'Project [*]",
        "UpdateEventTimeWatermarkColumn t#1",
    ],
)
def test_queries_over_streams_and_constants_may_run(plan: str) -> None:
    assert refused_plan(plan) is None
    assert refused_statement(plan) is None


@pytest.mark.parametrize(
    "plan",
    [
        SCRIPT,
        SCRIPT_OF_A_STREAM,
        FILE,
        FILE_ON_3_0,
        FILE_IN_A_SUBQUERY,
        REFLECTION,
        NAMES,
        USER,
        PATHS,
        *SHOWN_PATHS,
        XML,
        XML_OF_ROWS,
        CATALOG,
    ],
)
def test_plans_that_run_or_read_something_are_refused(plan: str) -> None:
    assert refused_plan(plan) is not None


def test_the_fields_of_the_hidden_column_that_show_no_path_are_read() -> None:
    written = [[{"select": ['concat(a, "x") AS a']}], ["time TIMESTAMP, a STRING"]]
    assert refused_plan(SIZES, ["a", "b"], written) is None


def test_a_union_of_what_was_read_of_them_is_allowed() -> None:
    below = "\n".join("   " + line for line in SIZES.splitlines())
    assert (
        refused_plan(f"Union false, false\n:- Project [b#2, true AS d#3]\n:  +- LocalRelation [b#2]\n+- {below[3:]}")
        is None
    )


@pytest.mark.parametrize("text", ["x\n+- Project [a#1", "'\\n'", "'\\u000a'"])
def test_a_text_that_could_look_like_a_line_of_a_plan_is_refused_with_the_hidden_column(text: str) -> None:
    assert refused_plan(STREAM, ["a"], [{"select": [text]}]) is None
    for written in ([{"select": [text]}], [[], [f"`{text}` INT"]]):
        assert refused_plan(SIZES, ["a"], written) == "the query reads the hidden column _metadata, which shows paths"


def test_the_hidden_column_itself_is_no_column_of_a_result() -> None:
    below = f"~Filter (a#1 > 1)\n+- ~Project [a#1, _metadata#5]\n   +- {RELATION}\n"
    assert refused_plan(below, ["a"]) is None
    assert refused_plan(below, ["a", "_Metadata"]) is not None


@pytest.mark.parametrize(
    "plan",
    [
        "AddJarsCommand /x.jar",
        # Of 4.3; Spark 4.0 says ExecuteImmediateQuery.
        "'UnresolvedExecuteImmediate SELECT 1\n",
        "Call cat.p(1)\n+- 'UnresolvedProcedure [cat, p]\n",
        "SetCommand (a,Some(b))",
        "'CreateFunction x, [FunctionResource(jar,/x.jar)], false, false",
        "InsertIntoDir false, Storage(Location: /tmp/x), text, true\n+- 'Project [1]",
        "CTE [x]\n:  +- 'SubqueryAlias x\n+- 'InsertIntoStatement 'UnresolvedRelation [y], [], false, false, false\n   +- 'Project [*]",
        SCRIPT,
    ],
)
def test_statements_other_than_queries_are_never_executed(plan: str) -> None:
    assert refused_statement(plan) is not None


class Session:
    """As much of a session as the check asks for."""

    def __init__(self, plan: str) -> None:
        self.conf = SimpleNamespace(set=lambda *_: None, unset=lambda *_: None)
        parser = SimpleNamespace(parsePlan=lambda text: SimpleNamespace(toString=lambda: f"{plan} of {text}"))
        self._jsparkSession = SimpleNamespace(sessionState=lambda: SimpleNamespace(sqlParser=lambda: parser))


def test_the_host_hears_why() -> None:
    with pytest.raises(
        NotPermitted, match="the statement is not a query: AddJarsCommand; only --allow-code permits"
    ) as caught:
        check_statement(Session("AddJarsCommand"), "ADD JAR '/x'")
    assert reason_of(caught.value) == "not-permitted"
    analysed = SimpleNamespace(toString=lambda: FILE)
    frame = SimpleNamespace(_jdf=SimpleNamespace(queryExecution=lambda: SimpleNamespace(analyzed=lambda: analysed)))
    with pytest.raises(NotPermitted, match="reads a table or a file"):
        check_plan(analysed_plan(Session(""), frame))


EXPLAINED = """\
== Parsed Logical Plan ==
{parsed}

== Analyzed Logical Plan ==
Address: string
{analysed}

== Optimized Logical Plan ==
org.apache.spark.sql.AnalysisException: Queries with streaming sources must be executed with writeStream.start().;
FileSource[/w/events]
"""


class ConnectSession:
    """A session without a JVM, whose ``EXPLAIN`` shows these plans; it keeps what it is asked to run."""

    def __init__(self, parsed: str = "", analysed: str = "") -> None:
        self.explained = EXPLAINED.format(parsed=parsed, analysed=analysed)
        self.conf = SimpleNamespace(set=lambda *_: None, unset=lambda *_: None)
        self.ran: list[str] = []

    def sql(self, text: str) -> SimpleNamespace:
        self.ran.append(text)
        return SimpleNamespace(collect=lambda: [[self.explained]])

    def frame(self) -> SimpleNamespace:
        return SimpleNamespace(_explain_string=lambda *, extended: self.explained)


@pytest.mark.parametrize("parsed", ["AddJarsCommand /x.jar", SCRIPT, "'UnresolvedExecuteImmediate SELECT 1"])
def test_through_connect_a_statement_is_explained_and_not_executed(parsed: str) -> None:
    session = ConnectSession(parsed, "Project")
    with pytest.raises(NotPermitted):
        check_statement(session, "ADD JAR '/x.jar'")
    assert session.ran == ["EXPLAIN EXTENDED ADD JAR '/x.jar'"]


def test_a_text_in_a_statement_hides_nothing_behind_a_heading() -> None:
    heading = "\n== Analyzed Logical Plan ==\n"
    with pytest.raises(NotPermitted, match="AddJarsCommand"):
        check_statement(ConnectSession(f"'Project [{heading} AS a]\n+- AddJarsCommand"), "")


@pytest.mark.parametrize("plan", [FILE, REFLECTION, PATHS])
def test_through_connect_the_plan_of_a_query_is_checked_before_it_starts(plan: str) -> None:
    session = ConnectSession(analysed=plan)
    with pytest.raises(NotPermitted):
        check_plan(analysed_plan(session, session.frame()))


@pytest.mark.parametrize("plan", [STREAM, CONSTANTS])
def test_through_connect_a_query_that_only_computes_may_run(plan: str) -> None:
    session = ConnectSession(plan, plan)
    check_statement(session, "SELECT 1")
    check_plan(analysed_plan(session, session.frame()))


def test_a_server_that_explains_in_another_way_is_checked_whole() -> None:
    session = ConnectSession()
    session.explained = f"the plan:\n{FILE}"
    with pytest.raises(NotPermitted):
        check_plan(analysed_plan(session, session.frame()))
