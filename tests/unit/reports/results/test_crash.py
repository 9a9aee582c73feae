"""The records of crashes: their lines and their exit code."""

import pytest
from pydantic import ValidationError

from conformance.checkpoints.crash_images import CrashImage, FolderContent
from conformance.core.observation import ErrorSeen
from conformance.judging.checkpoint_verdict import CheckpointVerdict
from reports.results.crash import CRASH_RECORDS, CrashHeader, CrashRecord, CrashRecords

HEADER = CrashHeader(command="conformance maintain crash a.yaml")


def record(outcome="resumed", error="", why="", fault="killed", case="late-drops/a"):
    seen = ErrorSeen(stage="run", classes=(error,), message=why) if error else None
    verdict = CheckpointVerdict(outcome, seen, difference="" if error else why)
    image = CrashImage(fault, 3, "write checkpoint/commits/2", FolderContent(), frozenset())
    return CrashRecord.of(case, "spark-3.5.9", "hdfs", 2, image, verdict)


NOT_RECORDED = CrashRecord.of(
    "late-drops/a", "spark-3.5.9", "hdfs", 2, None, CheckpointVerdict("no answer", reason="it is gone")
)


def test_a_file_is_read_as_it_was_written(tmp_path):
    records = CrashRecords(HEADER, (record(), record("refused", "IllegalStateException", "gone"), NOT_RECORDED))
    text = "".join(line.line for line in (HEADER, *records.records))
    (tmp_path / "crashes.jsonl").write_text(text)
    assert CrashRecords.read(tmp_path / "crashes.jsonl") == records
    assert CRASH_RECORDS.recognizes(text.encode())
    assert not CRASH_RECORDS.recognizes(b'{"format":2,"command":"python -m tools.soak"}')
    (tmp_path / "other.jsonl").write_text('{"kind": "run"}\n')
    with pytest.raises(ValidationError):
        CrashRecords.read(tmp_path / "other.jsonl")
