"""The records of crashes: their lines, their table and their exit code."""

from io import StringIO

import pytest
from pydantic import ValidationError
from rich.console import Console

from conformance.checkpoints.crash_images import CrashImage
from conformance.checkpoints.file_operations import FolderContent
from conformance.judging.crash_verdict import CrashVerdict
from reports.results.crash import CRASH_RECORDS, CrashHeader, CrashRecord, CrashRecords, show

HEADER = CrashHeader(command="conformance crash a.yaml")


def record(status="continues", error="", why="", fault="killed", case="late-drops/a"):
    image = CrashImage(fault, 3, "write checkpoint/commits/2", FolderContent(), frozenset())
    return CrashRecord.of(case, "spark-3.5.9", "hdfs", 2, image, CrashVerdict(status, error, why))


NOT_RECORDED = CrashRecord.not_recorded("late-drops/a", "spark-3.5.9", "hdfs", 2, "it is gone")


def shown(*records):
    text = StringIO()
    show(CrashRecords(HEADER, records), Console(file=text, width=200))
    return text.getvalue()


def test_a_file_is_read_as_it_was_written(tmp_path):
    records = CrashRecords(HEADER, (record(), record("refused", "IllegalStateException", "gone"), NOT_RECORDED))
    text = "".join(line.line for line in (HEADER, *records.records))
    (tmp_path / "crashes.jsonl").write_text(text)
    assert CrashRecords.read(tmp_path / "crashes.jsonl") == records
    assert CRASH_RECORDS.recognizes(text.encode())
    assert not CRASH_RECORDS.recognizes(b'{"format":1,"command":"conformance soak"}')
    (tmp_path / "other.jsonl").write_text('{"kind": "run"}\n')
    with pytest.raises(ValidationError):
        CrashRecords.read(tmp_path / "other.jsonl")


@pytest.mark.parametrize(
    ("records", "code"),
    [
        ([record(), record("refused", "A")], 0),
        ([record("unclear", "NullPointerException")], 0),
        ([record(), record("violates"), NOT_RECORDED], 1),
        ([record(), NOT_RECORDED], 3),
        ([], 3),
    ],
)
def test_only_other_rows_fail(records, code):
    assert CrashRecords(HEADER, tuple(records)).exit_code == code


def test_the_table_counts_by_case_and_by_fault():
    text = shown(record(), record(), record("refused", "IllegalStateException", fault="lost"))
    assert "spark-3.5.9 hdfs late-drops/a" in text
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    assert rows["killed"] == ["2", "2", "0"]
    assert rows["lost"] == ["1", "0", "1"]
    assert "3 images: 2 continues with the same rows, 1 refused with a named error" in text
    assert "refused with: IllegalStateException 1" in text


def test_what_must_not_be_is_shown_once_of_each_kind():
    text = shown(
        record("violates", why="micro-batch 4: 1 row lost"),
        record("unclear", "EOFException", "Stream ended prematurely", fault="torn"),
        record("unclear", "EOFException", "Stream ended prematurely", fault="unsynced"),
        NOT_RECORDED,
    )
    assert "✗ spark-3.5.9 hdfs late-drops/a, killed at write checkpoint/commits/2: micro-batch 4: 1 row lost" in text
    assert "▲ spark-3.5.9 hdfs late-drops/a, torn at write checkpoint/commits/2: EOFException: Stream ended" in text
    assert "; and 1 more like this" in text
    assert "! spark-3.5.9 hdfs late-drops/a, not recorded: it is gone" in text
