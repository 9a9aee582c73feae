"""Rows on their way into the engine as commits to tables: what is appended, when, and what the offsets say was read."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.driver import tables
from harness.driver.arrivals import FileArrivals, MixedArrivals
from harness.driver.files import LocalFiles
from harness.driver.request import Stream
from harness.driver.tables import DeltaTables, TableArrivals

STREAM = Stream("at TIMESTAMP, v INT", 1, table="delta")


class Recorded(DeltaTables):
    """Tables of Delta that are kept as lists of the rows of each commit."""

    def create(self, path, _frame):
        self._spark.tables[path] = []
        LocalFiles().make_directory(path)

    def append(self, path, files):
        self._spark.tables[path].append(
            [[json.loads(line) for line in Path(file).read_text().splitlines()] for file in files]
        )


@pytest.fixture
def spark(monkeypatch):
    monkeypatch.setitem(tables._FORMATS, "delta", Recorded)
    monkeypatch.setattr(TableArrivals, "_frame", lambda _self, _stream, files: files)
    schema = SimpleNamespace(schema=SimpleNamespace(fields=[]))
    return SimpleNamespace(tables={}, createDataFrame=lambda _rows, _ddl: schema)


@pytest.fixture
def arrivals(spark, tmp_path):
    return TableArrivals(str(tmp_path), {"a": STREAM}, LocalFiles(), spark)


def test_an_arrival_is_one_commit_with_a_file_for_each_partition_that_has_rows(arrivals, spark, tmp_path):
    staged = arrivals.stage([{"a": [[{"v": 1}, {"v": 2}], [], [{"v": 3}]]}, {"a": [[{"v": 4}]]}])
    assert spark.tables == {f"{tmp_path}/a": []}
    arrivals.place(staged)
    row = {"conformance_row": True}
    assert spark.tables == {
        f"{tmp_path}/a": [[[{"v": 1, **row}, {"v": 2, **row}], [{"v": 3, **row}]], [[{"v": 4, **row}]]]
    }


def test_an_arrival_without_rows_is_a_commit_too(arrivals, spark, tmp_path):
    arrivals.place(arrivals.stage([{"a": [[], []]}]))
    assert spark.tables == {f"{tmp_path}/a": [[[{"conformance_row": False}]]]}


def test_another_process_finds_the_tables_and_nothing_that_was_not_placed(arrivals, spark, tmp_path):
    arrivals.stage([{"a": [[{"v": 1}]]}])
    arrivals.place(arrivals.stage([{"a": [[{"v": 2}]]}]))
    again = TableArrivals(str(tmp_path), {"a": STREAM}, LocalFiles(), spark)
    again.place(again.stage([{"a": [[{"v": 3}]]}]))
    commits = spark.tables[f"{tmp_path}/a"]
    assert [[row["v"] for row in file] for commit in commits for file in commit] == [[2], [3]]


def test_files_and_commits_arrive_together(spark, tmp_path):
    files = FileArrivals(str(tmp_path), {"b": Stream("v INT", 1)}, LocalFiles())
    arrivals = MixedArrivals(files, TableArrivals(str(tmp_path), {"a": STREAM}, LocalFiles(), spark))
    arrivals.place(arrivals.stage([{"a": [[{"v": 1}]], "b": [[{"v": 2}]]}]))
    assert len(spark.tables[f"{tmp_path}/a"]) == 1
    assert [path.read_text() for path in (tmp_path / "b").iterdir()] == ['{"v": 2}\n']
    assert arrivals.stream_of(f"DeltaSource[file:{tmp_path}/a]") == "a"
    assert arrivals.stream_of(f"FileStreamSource[file:{tmp_path}/b]") == "b"


def offset(version, index):
    return {"sourceVersion": 1, "reservoirVersion": version, "index": index, "isStartingVersion": False}


@pytest.mark.parametrize(
    ("start", "end", "commits"),
    [
        pytest.param(None, offset(1, 0), 1, id="the first commit, after the one that made the table"),
        pytest.param(None, offset(2, -1), 1, id="up to the beginning of the next version"),
        pytest.param(offset(2, -1), offset(3, -100), 1, id="from one beginning to the next"),
        pytest.param(offset(1, 1), offset(3, 0), 2, id="two commits"),
        pytest.param(offset(2, -1), offset(2, -1), 0, id="nothing"),
        pytest.param(None, offset(1, -1), 0, id="only the commit that made the table"),
        pytest.param(json.dumps(offset(1, 0)), json.dumps(offset(2, 0)), 1, id="as text"),
    ],
)
def test_how_many_commits_a_micro_batch_read(arrivals, tmp_path, start, end, commits):
    source = {"description": f"DeltaSource[file:{tmp_path}/a]", "startOffset": start, "endOffset": end}
    assert arrivals.records(source) == [commits]


def test_another_source_reads_no_commits(arrivals):
    assert arrivals.records({"description": "FileStreamSource[file:/elsewhere/b]"}) is None
