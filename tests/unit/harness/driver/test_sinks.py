"""What a sink of Spark's own has: which micro-batch wrote which file, and what its reader finds."""

import json

import pytest

from harness.driver.files import LocalFiles
from harness.driver.sinks import DeltaSink, FileSink, RowsChanged, SinkUnreadable


@pytest.fixture
def log(tmp_path):
    """Writes an entry of a log: lines, each an object."""

    def write(name, *lines):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))

    return write


def added(name):
    return {"path": f"file:///sink/{name}", "action": "add"}


def test_a_compacted_log_says_which_micro_batch_wrote_each_file(log, tmp_path):
    log("_spark_metadata/0", "v1", added("a"))
    log("_spark_metadata/1.compact", "v1", added("a"), added("b"))
    log("_spark_metadata/2", "v1")
    log("_spark_metadata/.3.tmp", "v1", added("c"))
    sink = FileSink(str(tmp_path), LocalFiles(), None)
    assert sink.batches() == {"a": 0, "b": 1}


def test_a_torn_entry_has_the_files_of_its_whole_lines(log, tmp_path):
    log("_spark_metadata/0", "v1", added("a"), '{"path":"file:///sink/b')
    assert FileSink(str(tmp_path), LocalFiles(), None).batches() == {"a": 0}


def test_a_transaction_of_delta_names_the_micro_batch(log, tmp_path):
    log("_delta_log/00000000000000000000.json", {"metaData": {}}, {"txn": {"version": 0}}, {"add": {"path": "a"}})
    log(
        "_delta_log/00000000000000000001.json",
        {"txn": {"version": 1}},
        {"remove": {"path": "a"}},
        {"add": {"path": "b"}},
    )
    sink = DeltaSink(str(tmp_path), LocalFiles(), None)
    assert sink.batches() == {"a": 0, "b": 1}


class Found(FileSink):
    """A sink whose reader finds what a test says."""

    found: dict

    def _found(self):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.fixture
def sink(log, tmp_path):
    log("_spark_metadata/0", "v1")
    sink = Found(str(tmp_path), LocalFiles(), None)
    sink.found = {0: [["a"]]}
    assert sink.content() == {0: [["a"]]}
    log("_spark_metadata/1", "v1")
    return sink


def test_what_the_sink_has_is_read_again_when_its_log_has_more(sink):
    sink.found = {0: [["a"]], 1: [["b"]]}
    assert sink.content() == {0: [["a"]], 1: [["b"]]}


@pytest.mark.parametrize("found", [{1: [["b"]]}, {0: [["a"], ["a"]]}, {0: [["a"]], -1: [["c"]]}])
def test_rows_that_are_gone_or_double_or_of_no_micro_batch_are_said(sink, found):
    sink.found = found
    with pytest.raises(SinkUnreadable, match="a reader") as raised:
        sink.content()
    assert isinstance(raised.value.cause, RowsChanged)


def test_in_complete_mode_rows_are_replaced(sink):
    sink.appends = False
    sink.found = {1: [["b"]]}
    assert sink.content() == {1: [["b"]]}


def test_the_error_of_the_reader_passes(sink):
    sink.found = ValueError("no entry 0")
    with pytest.raises(SinkUnreadable) as raised:
        sink.content()
    assert raised.value.cause is sink.found
