"""A file of SQL as a job: its statements, the tables that they read, and what is wrong with it."""

import re
from pathlib import Path

import pytest

from conformance.core.errors import WrongUsage
from conformance.own_job.job_case import write_job
from conformance.own_job.named_job import kind_of
from conformance.own_job.sample import Sample, read_sample, silent
from conformance.own_job.sql_file import SqlFile, for_the_runner, is_sql_file
from conformance.query import read_query

TEXT = """-- clicks; and what they led to
CREATE OR REPLACE TEMPORARY VIEW paid AS
  SELECT order_time, who FROM Orders WHERE who <> ';'; -- not the end of a text

SET spark.sql.ansi.enabled = true;
/* the query; */ WITH c AS (SELECT * FROM clicks)
SELECT c.who, window(order_time, '10 minutes') FROM c JOIN paid ON c.who = paid.who;
"""


def file(folder: Path, text: str) -> SqlFile:
    path = folder / "job.sql"
    path.write_text(text)
    (read,) = SqlFile.read(str(path))
    return read


def sample(folder: Path, stream: str, row: str) -> Sample:
    path = folder / f"{stream}.jsonl"
    path.write_text(row + "\n")
    return read_sample(stream, path)


def test_the_statements_are_those_of_the_file(tmp_path: Path) -> None:
    assert [is_sql_file(name) for name in ("a/job.sql", "job.py", "sql:build")] == [True, False, False]
    statements = file(tmp_path, TEXT).query.called["sql"]
    assert statements[0].startswith("CREATE OR REPLACE TEMPORARY VIEW paid")
    assert statements[0].endswith("WHERE who <> ';'")
    assert statements[1] == "SET spark.sql.ansi.enabled = true"
    assert statements[2].startswith("WITH c AS")
    assert statements[2].endswith("paid.who")
    assert len(statements) == 3


def test_the_case_has_the_statements_and_the_watermarks(tmp_path: Path) -> None:
    samples = [
        sample(tmp_path, "orders", '{"order_time": "2026-03-01 12:00:00", "who": "ada"}'),
        sample(tmp_path, "clicks", '{"who": "ada"}'),
    ]
    job = file(tmp_path, TEXT)
    job.check_streams(["orders", "clicks"])
    assert job.notes() == (f"{job.path}: no stream has a watermark; --watermark STREAM='10 minutes' gives it one",)
    with pytest.raises(
        WrongUsage, match="--watermark: clicks has no event time: give it by --event-time clicks=COLUMN"
    ):
        job.with_watermarks({"clicks": "1 hour"}, samples)
    with pytest.raises(WrongUsage, match="--watermark: unknown stream 'order': did you mean 'orders'"):
        job.with_watermarks({"order": "1 hour"}, samples)
    without_rows = job.with_watermarks({"orders": "1 hour"}, [silent("orders", "n INT, t TIMESTAMP")])
    assert without_rows.watermarks == {"orders": ("t", "1 hour")}
    job = job.with_watermarks({"orders": "10 minutes"}, samples)
    assert job.notes() == ()
    case = write_job(job.query, samples, tmp_path / "out")
    (operation,) = case.query.wire()
    assert operation == {
        "call": {**file(tmp_path, TEXT).query.called, "watermarks": {"orders": ["order_time", "10 minutes"]}},
        "with": ["orders", "clicks"],
    }
    assert case.path.name == "job.yaml"
    assert read_query(case.query, case.streams).unread == ("own SQL",)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("-- nothing\n;", "job.sql has no statement: the last one must be the query"),
        ("SELECT 'a", "job.sql: a text or a comment in it has no end"),
        ("CREATE TEMP VIEW a AS SELECT 1;\nINSERT INTO b SELECT 1", "job.sql:2: INSERT INTO b SELECT … is not a query"),
        ("CREATE TEMP VIEW a AS SELECT 1;", "job.sql:1: CREATE TEMP VIEW a … is not a query"),
        (
            "CREATE STREAMING TABLE a;\nCREATE FLOW f AS AUTO CDC INTO a FROM b KEYS (c)",
            "job.sql: no stream fills a table of this pipeline, so nothing is tried: read a STREAM",
        ),
        ("CREATE FLOW f AS MERGE INTO a", "job.sql:1: CREATE FLOW f AS … in a declarative pipeline is not tried"),
        (
            "CREATE MATERIALIZED VIEW a AS SELECT 1",
            "job.sql: no stream fills a table of this pipeline, so nothing is tried: read a STREAM",
        ),
        ("CREATE STREAMING TABLE a;\nSELECT 1", "job.sql:2: SELECT 1 in a declarative pipeline is not tried"),
        ("\nDROP TABLE a;\nSELECT 1", "job.sql:2: DROP TABLE a is neither CREATE TEMPORARY VIEW name AS … nor SET"),
        ("CREATE VIEW live AS SELECT 1;\nSELECT 1", "job.sql:1: CREATE VIEW live AS … is neither"),
        ("CREATE VIEW a AS SELECT 1;\nSELECT 1", "job.sql:1: CREATE VIEW a AS … is neither"),
        ("CREATE TABLE a AS SELECT 1;\nSELECT 1", "job.sql:1: CREATE TABLE a AS … is neither"),
    ],
)
def test_what_is_no_job_is_refused_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(WrongUsage) as refused:
        file(tmp_path, text)
    assert str(refused.value).startswith(f"{tmp_path}/{says}")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match=r"cannot read gone\.sql: No such file"):
        SqlFile.read("gone.sql")
    (tmp_path / "latin.sql").write_bytes(b"SELECT '\xe4'")
    with pytest.raises(WrongUsage, match=r"latin\.sql: it is not UTF-8"):
        SqlFile.read(str(tmp_path / "latin.sql"))


def test_streams_are_the_tables_that_no_statement_makes(tmp_path: Path) -> None:
    job = file(tmp_path, TEXT)
    with pytest.raises(WrongUsage) as without:
        job.check_streams([])
    assert str(without.value).splitlines() == [
        f"{job.path} reads 2 tables; give a sample of each:",
        "  --sample Orders=Orders.jsonl",
        "  --sample clicks=clicks.jsonl",
    ]
    with pytest.raises(
        WrongUsage, match=r"job.sql:6: unknown table 'clicks': .*--sample clicks=FILE if it is a stream"
    ):
        job.check_streams(["orders"])
    with pytest.raises(WrongUsage, match=r"job.sql does not read visits; it reads Orders, clicks"):
        job.check_streams(["orders", "clicks", "visits"])


@pytest.mark.parametrize(
    ("streams", "said"),
    [
        (
            [],
            r"job.sql reads no table that is known: read a stream by its name, as FROM orders, and give --sample orders=FILE",
        ),
        (["orders"], r"job.sql does not read orders; it reads none$"),
    ],
)
def test_a_query_that_reads_no_table_says_so(tmp_path: Path, streams: list[str], said: str) -> None:
    with pytest.raises(WrongUsage, match=said):
        file(tmp_path, "SELECT 1").check_streams(streams)


def test_a_view_is_known_only_after_its_statement(tmp_path: Path) -> None:
    job = file(
        tmp_path, "CREATE TEMP VIEW a AS SELECT * FROM b;\nCREATE TEMP VIEW b AS SELECT * FROM s;\nSELECT * FROM a"
    )
    with pytest.raises(WrongUsage, match=r"job.sql:1: unknown table 'b'"):
        job.check_streams(["s"])


def test_what_the_text_does_not_tell_is_left_to_spark(tmp_path: Path) -> None:
    for text in ("SELECT * FROM STREAM orders", "SELECT * FROM catalog.db.t, orders", "TABLE orders"):
        file(tmp_path, text).check_streams(["orders"])


PIPELINE = """
SET a = 1;
CREATE TEMPORARY STREAMING LIVE VIEW raw AS SELECT * FROM STREAM(readings);
CREATE OR REFRESH STREAMING TABLE per_minute (sensor STRING, n BIGINT) COMMENT 'counts' AS
WITH seen AS (SELECT sensor, ts FROM STREAM LIVE.raw) SELECT sensor, count(*) AS n FROM seen GROUP BY sensor;
CREATE STREAMING TABLE late;
CREATE FLOW f AS INSERT INTO late BY NAME SELECT * FROM STREAM other;
CREATE MATERIALIZED VIEW totals AS SELECT sum(n) FROM per_minute;
"""


def test_each_flow_of_a_pipeline_is_a_query_behind_its_views(tmp_path: Path) -> None:
    (tmp_path / "job.sql").write_text(PIPELINE)
    flows = SqlFile.read(str(tmp_path / "job.sql"))
    assert [(flow.flow, [part.text for part in flow.parts[2:]]) for flow in flows] == [
        (
            "per_minute",
            ["WITH seen AS (SELECT sensor, ts FROM raw) SELECT sensor, count(*) AS n FROM seen GROUP BY sensor"],
        ),
        ("f", ["SELECT * FROM other"]),
    ]
    assert flows[0].parts[1].text == "CREATE OR REPLACE TEMPORARY VIEW raw AS SELECT * FROM readings"
    assert [(flow.query.stem, flow.query.output_mode, flow.query.trigger) for flow in flows] == [
        ("job-per_minute", "append", "availableNow"),
        ("job-f", "append", "availableNow"),
    ]
    assert "no streaming query of Spark fills it: totals" in flows[0].query.statements[1].text
    with pytest.raises(WrongUsage, match="appends: omit the output mode update"):
        SqlFile.read(str(tmp_path / "job.sql"), "update")


def test_sparks_own_runner_gets_a_pipeline_in_the_spelling_of_spark(tmp_path: Path) -> None:
    (tmp_path / "job.sql").write_text(
        """SET a = b;
        CREATE OR REFRESH STREAMING TABLE raw COMMENT 'x' AS SELECT * FROM STREAM read_files('/in/orders', format => 'json');
        CREATE STREAMING LIVE TABLE big (CONSTRAINT p EXPECT (n > 1) ON VIOLATION DROP ROW) AS
          SELECT * FROM STREAM(LIVE.raw) WATERMARK t DELAY OF INTERVAL 1 MINUTE WHERE n < 9;
        CREATE TEMPORARY STREAMING LIVE VIEW seen AS SELECT * FROM STREAM raw;
        CREATE STREAMING TABLE kept;
        CREATE FLOW f AS INSERT INTO kept BY NAME SELECT n FROM STREAM seen;
        APPLY CHANGES INTO kept FROM STREAM raw KEYS (n) SEQUENCE BY t;
        CREATE OR REFRESH LIVE TABLE top AS SELECT max(n) AS n FROM LIVE.big;"""
    )
    text = for_the_runner(tmp_path / "job.sql", {"raw": "raw_of_its_flows"})
    assert [" ".join(line.split()) for line in text.replace("\n)", ")").split(";\n")][:-1] == [
        "SET a = b",
        "CREATE STREAMING TABLE raw_of_its_flows AS SELECT * FROM STREAM orders",
        "CREATE STREAMING TABLE big AS SELECT * FROM (SELECT * FROM STREAM raw WATERMARK t DELAY OF INTERVAL 1 MINUTE WHERE n < 9) "
        "WHERE (n > 1)",
        "CREATE TEMPORARY VIEW seen AS SELECT * FROM STREAM raw",
        "CREATE STREAMING TABLE kept",
        "CREATE FLOW f AS INSERT INTO kept BY NAME SELECT n FROM STREAM seen",
        "CREATE MATERIALIZED VIEW top AS SELECT max(n) AS n FROM big",
    ]


@pytest.mark.parametrize(
    ("script", "queries"),
    [
        (
            "CREATE OR REFRESH STREAMING TABLE a (x INT, CONSTRAINT p EXPECT (x > 0) ON VIOLATION DROP ROW, CONSTRAINT q "
            "EXPECT (x IN (1, 2)) ON VIOLATION FAIL UPDATE, CONSTRAINT r EXPECT (y IS NOT NULL) ON VIOLATION DROP ROW) AS SELECT * FROM s",
            ["SELECT * FROM (SELECT * FROM s\n) WHERE (x > 0) AND (y IS NOT NULL)"],
        ),
        (
            "CREATE STREAMING TABLE a (CONSTRAINT p EXPECT (x > 0) ON VIOLATION DROP ROW);\n"
            "CREATE FLOW f AS INSERT INTO a BY NAME SELECT * FROM STREAM s; CREATE STREAMING TABLE b AS SELECT 1 FROM s",
            ["SELECT * FROM (SELECT * FROM s\n) WHERE (x > 0)", "SELECT 1 FROM s"],
        ),
        (
            "CREATE STREAMING TABLE a AS SELECT x FROM STREAM read_files('/Volumes/raw/clicks/*.json', format => 'json', "
            "schema => concat('x ', 'INT')) WHERE x > 0; CREATE STREAMING LIVE TABLE b AS SELECT x "
            "FROM cloud_files('s3://in/orders/', 'csv');"
            "CREATE STREAMING TABLE c AS SELECT v FROM STREAM(read_kafka(bootstrapServers => 'h:1', subscribe => 'web.hits')) GROUP BY v",
            ["SELECT x FROM clicks WHERE x > 0", "SELECT x FROM orders", "SELECT v FROM web_hits GROUP BY v"],
        ),
    ],
    ids=["rows that a table drops", "of its flows too", "functions that read files and topics"],
)
def test_what_databricks_writes_otherwise_is_written_as_spark_does(
    tmp_path: Path, script: str, queries: list[str]
) -> None:
    (tmp_path / "job.sql").write_text(f"-- Databricks notebook source\n{script}")
    assert kind_of(str(tmp_path / "job.sql")) == "a file of SQL"
    written = [flow.parts[-1].text for flow in SqlFile.read(str(tmp_path / "job.sql"))]
    assert [re.sub(" +", " ", text) for text in written] == queries


def test_what_only_looks_like_a_stream_in_a_flow_stays(tmp_path: Path) -> None:
    text = (
        "SELECT a, stream, 'from stream b, LIVE.x' AS c, `from` FROM STREAM(LIVE.readings) WHERE a > 0 -- of stream b"
    )
    (tmp_path / "job.sql").write_text(f"CREATE STREAMING TABLE t COMMENT 'as select' AS {text}")
    (flow,) = SqlFile.read(str(tmp_path / "job.sql"))
    assert flow.parts[0].text == text.replace("STREAM(LIVE.readings)", "readings").partition(" --")[0]


def test_what_databricks_alone_does_with_changes_is_named_beside_the_flows(tmp_path: Path) -> None:
    changes = "apply changes into a from b keys (c);\nCREATE FLOW f AS AUTO CDC INTO d.e FROM STREAM b KEYS (c);\n"
    flow = file(tmp_path, changes + "CREATE FLOW changes AS INSERT INTO x SELECT * FROM STREAM b")
    assert (flow.flow, flow.batch) == ("changes", ("a (apply changes)", "d.e (AUTO CDC)"))


def test_flows_of_qualified_names_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "job.sql").write_text(
        "CREATE STREAMING TABLE lake.sales.a (CONSTRAINT c EXPECT (n > 0) ON VIOLATION DROP ROW);\n"
        "CREATE STREAMING TABLE lake.sales.b AS SELECT * FROM STREAM orders;\n"
        "CREATE FLOW f AS INSERT INTO lake.sales.a BY NAME SELECT n FROM STREAM orders"
    )
    flows = SqlFile.read(str(tmp_path / "job.sql"))
    assert [flow.flow for flow in flows] == ["lake.sales.b", "f"]
    assert flows[1].parts[-1].text.endswith("WHERE (n > 0)")
