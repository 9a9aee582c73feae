"""What a person has is read: JSON lines, logs, event logs; what is no progress is skipped and counted with its line."""

import gzip
import json
import struct
import tracemalloc
from pprint import pformat

import pyarrow
import pytest

from conformance import explain_progress
from conformance.core.errors import WrongUsage
from conformance.query_progress.reading import Skipped, events, events_in
from conformance.query_progress.wire import instant, milliseconds
from tests.unit.conformance.query_progress.lines import pretty, progress

THREE = [progress(batch, high=batch) for batch in range(3)]
LINES = [json.dumps(one) for one in THREE]
LISTENER = "org.apache.spark.sql.streaming.StreamingQueryListener$"
LOGGED = [json.dumps({"Event": f"{LISTENER}QueryProgressEvent", "progress": one}) for one in THREE]
STAMP = "2026-03-01T12:00:00Z stdout F "


def batches(read):
    return [one.batch_id for one in read]


def read_files(*paths):
    skipped = Skipped()
    return batches(events_in(paths, skipped)), skipped


LOG = "26/03/01 12:00:00 INFO MicroBatchExecution: Streaming query made progress: "
IN_A_LOG = [
    line for one in THREE for line in ("INFO other: Map{", *(LOG + pretty(one)).splitlines(), "INFO x: {} done")
]


@pytest.mark.parametrize(
    "lines",
    [
        LINES,
        [line.encode() for line in LINES],
        THREE,
        [json.dumps(THREE)],
        json.dumps(THREE, indent=2).splitlines(),
        [str(one) for one in THREE],
        [line for one in THREE for line in pformat(one).splitlines()],
        pformat(THREE).splitlines(),
        [json.dumps({"progress": one}) for one in THREE],
        ["progress", *('"' + line.replace('"', '""') + '"' for line in LINES)],
        IN_A_LOG,
        [f"{STAMP}{line}" for one in THREE for line in (LOG + pretty(one)).splitlines()],
        [LOG + line for line in LINES],
        ['{"Event":"SparkListenerJobStart","Job ID":0}', *LOGGED],
        [json.dumps({"log": f"{line}\n", "stream": "stderr"}) for line in IN_A_LOG],
        [
            json.dumps({"level": "INFO", "msg": LOG + pretty(one), "context": {"progress": pretty(one)}})
            for one in THREE
        ],
        [json.dumps({"time": "12:00", "message": LOG + json.dumps(one)}) for one in THREE],
    ],
    ids=[
        "lines",
        "bytes",
        "objects",
        "array",
        "pretty array",
        "dicts of PySpark",
        "printed dicts",
        "printed list of dicts",
        "events of a listener",
        "column of a CSV file",
        "log",
        "log with stamps",
        "in a log",
        "event log",
        "log of a container",
        "structured log",
        "log as JSON",
    ],
)
def test_progress_is_read_from(lines):
    skipped = Skipped()
    assert batches(events(lines, skipped)) == [0, 1, 2]
    assert skipped.count == 0


def test_a_listener_says_why_a_query_ended() -> None:
    names = {"id": THREE[0]["id"], "runId": THREE[0]["runId"]}
    lines = [*LINES, json.dumps({**names, "exception": "boom", "errorClassOnException": None})]
    assert explain_progress(lines).queries[0].query.runs[-1].exception == "boom"


def test_what_is_no_progress_is_skipped_and_counted_with_its_line():
    skipped = Skipped()
    cut = (LOG + pretty(THREE[2])).splitlines()[:9]
    lines = [LINES[0], LINES[1][:100] + "}", LINES[1][:300], '{"other": 1}', *cut, "INFO next", LINES[1], "no JSON"]
    lines += ['{"msg": "started"}', '{"msg": "\\x"}']
    assert batches(events(lines, skipped, "x.log")) == [0, 1]
    assert skipped.count == 5
    assert [where.split(": ")[0] for where in skipped.first] == ["x.log:2", "x.log:3", "x.log:4", "x.log:5", "x.log:18"]
    assert skipped.first[3] == "x.log:5: the progress is cut off"


def lz4_blocks(data):
    """`LZ4BlockOutputStream` of lz4-java."""
    packed = bytes(pyarrow.Codec("lz4_raw").compress(data))
    return (
        b"LZ4Block"
        + struct.pack("<BiiI", 0x26, len(packed), len(data), 0)
        + packed
        + b"LZ4Block"
        + struct.pack("<BiiI", 0x16, 0, 0, 0)
    )


PACKED = {
    "gzip named .json": gzip.compress,
    "zstd": lambda data: bytes(pyarrow.Codec("zstd").compress(data)),
    "lz4 frame": lambda data: bytes(pyarrow.Codec("lz4").compress(data)),
    "lz4": lz4_blocks,
}


def test_a_file_in_utf_16_is_read(tmp_path) -> None:
    file = tmp_path / "progress.txt"
    file.write_text("\n".join(LINES), encoding="utf-16")
    assert read_files(file)[0] == [0, 1, 2]


@pytest.mark.parametrize("name", PACKED)
def test_a_compressed_file_is_read_by_its_content(name, tmp_path):
    file = tmp_path / "progress.json"
    file.write_bytes(PACKED[name]("\n".join(LINES).encode()))
    assert read_files(file)[0] == [0, 1, 2]
    file.write_bytes(PACKED[name]("\n".join(LINES * 50).encode())[:-9])
    read, skipped = read_files(file)
    assert set(read) <= {0, 1, 2}
    assert "damaged or still being written" in skipped.first[-1] or name == "lz4"


def test_a_rolled_event_log_is_read_in_its_order(tmp_path):
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    (folder / "appstatus_app-1").touch()
    for number, line in ((10, LOGGED[2]), (2, LOGGED[1]), (1, LOGGED[0])):
        (folder / f"events_{number}_app-1").write_text(line + "\n")
    assert read_files(tmp_path)[0] == [0, 1, 2]


def test_rotated_logs_are_read_by_time_and_parts_of_an_event_log_by_number(tmp_path):
    rolled = tmp_path / "eventlog_v2_app-1"
    rolled.mkdir()
    other = json.dumps({**progress(1, high=1), "runId": "c" * 8, "batchId": 9, "timestamp": THREE[2]["timestamp"]})
    for name, line in (("events_1_app-1", other), ("events_2_app-1", '{"Event":"SparkListenerJobStart"}')):
        (rolled / name).write_text(line + "\n")
    (tmp_path / "driver.log.1").write_text("no progress\n" + LINES[1] + "\n")
    (tmp_path / "driver.log.2.gz").write_bytes(gzip.compress(LINES[0].encode()))
    (tmp_path / "readme").write_text("\n")
    read, skipped = read_files(rolled, tmp_path / "readme", tmp_path / "driver.log.1", tmp_path / "driver.log.2.gz")
    assert (read, skipped.count) == ([0, 1, 9], 0)
    assert read_files(tmp_path)[0] == [0, 1, 9]


def test_a_codec_that_is_not_read_is_named(tmp_path):
    (tmp_path / "events_1_app.lzf").write_bytes(b"ZV\x01")
    with pytest.raises(WrongUsage, match="lzf is not read; write the event log with"):
        read_files(tmp_path / "events_1_app.lzf")


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "events_1_app.zstd").write_bytes(PACKED["zstd"](b"{}"))
    with pytest.raises(WrongUsage, match=r"pip install 'watermark-conformance\[parquet\]'"):
        read_files(tmp_path / "events_1_app.zstd")


def test_repeated_progress_counts_once_and_queries_are_kept_apart():
    other = [{**one, "id": "c" * 8, "runId": "d" * 8, "name": "other"} for one in THREE]
    answer = explain_progress([THREE[0], other[0], THREE[1], THREE[0], THREE[1], other[1], THREE[2], other[2]])
    assert [(one.query.name, one.query.runs[0].batches) for one in answer.queries] == [("orders", 3), ("other", 3)]
    assert answer.skipped.count == 2


def test_memory_does_not_grow_with_the_lines():
    def many(count):
        for batch in range(count):
            yield json.dumps(progress(batch, high=batch, mark=batch - 10, state={"stateStoreSave": 3}))

    explain_progress(many(10))
    tracemalloc.start()
    explain_progress(many(1_600))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 100_000


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00.000Z", 0),
        ("2026-03-01T12:00:00.123Z", 1_772_366_400_123),
        ("1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_an_instant_of_any_year_is_read_and_shown(text, ms):
    assert milliseconds(text) == ms
    assert milliseconds(instant(ms) + "Z") == ms
