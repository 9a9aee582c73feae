"""Rows on their way into the engine as commits to tables: what is appended, when, and what the offsets say was read."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.driver import tables
from harness.driver.arrivals import FIRST_MODIFIED_S
from harness.driver.files import LocalFiles
from harness.driver.request import StreamRequest
from harness.driver.tables import DeltaTables, TableArrivals

STREAM = StreamRequest("at TIMESTAMP, v INT", 1, table="delta")


class Recorded(DeltaTables):
    """Tables of Delta that are kept as lists of the rows of each commit."""

    def create(self, path, _frame, **settings):
        self.settings = settings
        self._spark.tables[path] = []
        LocalFiles().make_directory(path + "/_delta_log")
        self._log(path)

    def _log(self, path, action="add"):
        log = Path(path, "_delta_log")
        version = len(list(log.iterdir()))
        (log / f"{version:020d}.json").write_text(
            json.dumps({"commitInfo": {}}) + "\n" + json.dumps({action: {"path": "a"}})
        )

    def add_column(self, path, _field):
        self._log(path, "metaData")

    def append(self, path, files):
        self._log(path)
        self._spark.tables[path].append(
            [[json.loads(line) for line in Path(file).read_text().splitlines()] for file in files]
        )


@pytest.fixture
def spark(monkeypatch):
    monkeypatch.setitem(tables._FORMATS, "delta", Recorded)
    monkeypatch.setattr(TableArrivals, "_frame", lambda _self, _stream, files: files)
    monkeypatch.setattr(tables, "_with_columns", lambda files, _schema: files)
    schema = SimpleNamespace(schema=SimpleNamespace(fields=[SimpleNamespace(name="extra")]))
    read = SimpleNamespace(
        format=lambda _: SimpleNamespace(load=lambda _: SimpleNamespace(schema=SimpleNamespace(fields=[])))
    )
    return SimpleNamespace(tables={}, createDataFrame=lambda _rows, _ddl: schema, read=read)


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


def test_commits_to_delta_are_an_hour_apart_and_options_name_their_times(arrivals, tmp_path):
    arrivals.place(arrivals.stage([{"a": [[{"v": 1}]]}, {"a": [[{"v": 2}]]}]))
    log = sorted((tmp_path / "a" / "_delta_log").iterdir())
    assert [file.stat().st_mtime - FIRST_MODIFIED_S for file in log] == [0, 3600, 7200]
    reader = Reader()
    arrivals._tables["a"].read(reader, "/a", {"startingTimestamp": "2", "skipChangeCommits": "true"})
    assert reader.given == {"startingTimestamp": "2026-01-01T02:00:00Z", "skipChangeCommits": "true"}
    arrivals._tables["a"].read(reader, "/a", None)
    assert reader.given["startingVersion"] == "0"


class Reader:
    def __init__(self):
        self.given = {}

    def format(self, _name):
        return self

    def options(self, **given):
        self.given.update(given)
        return self

    def load(self, _path):
        return self


def test_of_a_change_feed_the_table_gets_the_rows_that_it_has_in_the_end(spark, tmp_path):
    stream = StreamRequest("v INT, _change_type STRING", 1, table="delta", options={"readChangeFeed": "true"})
    arrivals = TableArrivals(str(tmp_path), {"a": stream}, LocalFiles(), spark)
    kinds = ("insert", "update_preimage", "update_postimage", "delete", None)
    arrivals.place(arrivals.stage([{"a": [[{"v": at, "_change_type": kind} for at, kind in enumerate(kinds)]]}]))
    assert [row["v"] for row in spark.tables[f"{tmp_path}/a"][0][0]] == [0, 2, 4]
    assert arrivals._tables["a"].settings == {"delta.enableChangeDataFeed": "true"}
    assert arrivals.waits


def test_a_table_without_options_waits_for_nothing_and_has_no_change_feed(arrivals):
    assert not arrivals.waits
    assert arrivals._tables["a"].settings == {}


def test_all_rows_of_delta_are_written_again_by_an_update_that_changes_none(spark, arrivals, tmp_path):
    said = []
    spark.sql = said.append
    arrivals.rewrite()
    assert said == [f"UPDATE delta.`{tmp_path}/a` SET conformance_row = conformance_row"]


def test_a_table_that_is_made_again_has_only_the_commit_of_its_rows_and_the_columns_of_its_stream(
    arrivals, spark, tmp_path
):
    arrivals.place(arrivals.stage([{"a": [[{"v": 1}]]}]))
    arrivals.alter("a", "extra STRING")
    arrivals.recreate({"a": [[{"v": 2}]]})
    assert spark.tables == {f"{tmp_path}/a": [[[{"v": 2, "conformance_row": True}]]]}
    assert len(list((tmp_path / "a" / "_delta_log").iterdir())) == 2
    assert arrivals._altered == set()


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
    for _ in range(3):
        arrivals.place(arrivals.stage([{"a": [[{"v": 1}]]}]))
    source = {"description": f"DeltaSource[file:{tmp_path}/a]", "startOffset": start, "endOffset": end}
    assert arrivals.records(source) == [commits]


def test_a_commit_that_changes_the_columns_is_no_arrival(arrivals, tmp_path):
    arrivals.place(arrivals.stage([{"a": [[{"v": 1}]]}]))
    arrivals.alter("a", "extra STRING")
    arrivals.place(arrivals.stage([{"a": [[{"v": 2}]]}]))
    source = {"description": f"DeltaSource[file:{tmp_path}/a]", "startOffset": offset(1, 0)}
    assert arrivals.records({**source, "endOffset": offset(3, -1)}) == [0]
    assert arrivals.records({**source, "endOffset": offset(3, 0)}) == [1]


def test_another_source_reads_no_commits(arrivals):
    assert arrivals.records({"description": "FileStreamSource[file:/elsewhere/b]"}) is None


class Catalog:
    """Tables of Iceberg, each as the ids of its snapshots in order."""

    def __init__(self, *_):
        self.tables = {}

    def create(self, _schema, _spec, settings, path):
        assert settings == {"format-version": "2"}
        self.tables[path] = []
        LocalFiles().make_directory(path)
        return SimpleNamespace(newAppend=lambda: SimpleNamespace(commit=lambda: self.commit(path)))

    def commit(self, path):
        self.tables[path].append(1000 * len(self.tables) + len(self.tables[path]))

    def load(self, path):
        ids = self.tables[path]

        def snapshot(id):
            return SimpleNamespace(sequenceNumber=lambda: ids.index(id) + 1) if id in ids else None

        return SimpleNamespace(snapshot=snapshot)


@pytest.fixture
def catalog(spark, monkeypatch):
    catalog = Catalog()
    iceberg = SimpleNamespace(
        hadoop=SimpleNamespace(HadoopTables=lambda _: catalog),
        spark=SimpleNamespace(SparkSchemaUtil=SimpleNamespace(convert=str)),
        PartitionSpec=SimpleNamespace(unpartitioned=lambda: None),
    )
    jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(iceberg=iceberg)))
    hadoop = SimpleNamespace(hadoopConfiguration=lambda: None)
    spark.sparkContext = SimpleNamespace(_jvm=jvm, _jsc=hadoop)
    monkeypatch.setattr(TableArrivals, "_frame", lambda *_: SimpleNamespace(_jdf=SimpleNamespace(schema=str)))
    monkeypatch.setattr(tables.IcebergTables, "append", lambda _self, path, _frame: catalog.commit(path))
    return catalog


def test_the_sources_of_iceberg_are_known_by_their_snapshots(spark, catalog, tmp_path):
    """Their descriptions are the same for every table: the name of a class and a number."""
    streams = {name: StreamRequest("v INT", 1, table="iceberg") for name in "ab"}
    arrivals = TableArrivals(str(tmp_path), streams, LocalFiles(), spark)
    for _ in range(2):
        arrivals.place(arrivals.stage([{"b": [[{"v": 1}]]}]))
    of_a, of_b = (catalog.tables[f"{tmp_path}/{name}"] for name in "ab")
    assert (len(of_a), len(of_b)) == (1, 3)

    def source(start, end):
        offsets = [
            None if at is None else {"version": 1, "snapshot_id": at[0], "position": at[1]} for at in (start, end)
        ]
        return {"description": "SparkMicroBatchStream@1", "startOffset": offsets[0], "endOffset": offsets[1]}

    def read(start, end):
        return arrivals.stream_of(source(start, end)), arrivals.records(source(start, end))

    assert read(None, (of_a[0], 0)) == ("a", [0])
    assert read(None, (of_b[1], 1)) == ("b", [1])
    assert read((of_b[0], 0), (of_b[2], 1)) == ("b", [2])
    assert read((of_b[1], 2), (of_b[2], 0)) == ("b", [0])
    assert read(None, (999, 0)) == (None, None)
    assert arrivals.stream_of({"description": "FileStreamSource[file:/b]", "endOffset": {"logOffset": 0}}) is None


def test_a_stream_of_iceberg_begins_at_the_time_of_a_commit(spark, catalog, tmp_path):
    arrivals = TableArrivals(str(tmp_path), {"a": StreamRequest("v INT", 1, table="iceberg")}, LocalFiles(), spark)
    snapshots = [
        SimpleNamespace(sequenceNumber=lambda at=at: at, timestampMillis=lambda at=at: at * 10) for at in (1, 2, 3)
    ]
    catalog.load = lambda _path: SimpleNamespace(snapshots=lambda: snapshots)
    reader = Reader()
    arrivals._tables["a"].read(reader, "/a", {"startingTimestamp": "2", "maxFilesPerTrigger": "4"})
    assert reader.given == {"stream-from-timestamp": "30", "streaming-max-files-per-micro-batch": "4"}


def test_the_rows_of_every_table_and_the_versions_that_had_them_are_removed(spark, catalog, tmp_path, monkeypatch):
    removed = []
    spark._jsparkSession = None
    table = SimpleNamespace(delete=lambda: removed.append("delete"), vacuum=removed.append)
    delta = SimpleNamespace(DeltaTable=SimpleNamespace(forPath=lambda _session, path: removed.append(path) or table))
    spark.sparkContext._jvm.io = SimpleNamespace(delta=SimpleNamespace(tables=delta))
    monkeypatch.setattr(tables.IcebergTables, "age_out", lambda _self, path: removed.append(path))
    streams = {"a": STREAM, "b": StreamRequest("v INT", 1, table="iceberg")}
    TableArrivals(str(tmp_path), streams, LocalFiles(), spark).age_out()
    assert removed == [f"{tmp_path}/a", "delete", 0.0, f"{tmp_path}/b"]
