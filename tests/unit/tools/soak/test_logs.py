"""Which file was read in which micro-batch, out of logs as Spark writes them."""

import json

import pytest

from tools.soak.driver.tables import LogIncomplete, attempts, files_read, micro_batches, progress


def write(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["v1", *(line if isinstance(line, str) else json.dumps(line) for line in lines)]))


def planned(folder, batch, watermark, offset):
    position = "-" if offset is None else {"logOffset": offset}
    write(folder / "offsets" / str(batch), {"batchWatermarkMs": watermark, "batchTimestampMs": 1, "conf": {}}, position)


def committed(folder, batch, watermark):
    write(folder / "commits" / str(batch), {"nextBatchWatermarkMs": watermark})


def noticed(entry, *names):
    return [{"path": f"file:///a%20folder/input/{name}", "timestamp": 1, "batchId": entry} for name in names]


@pytest.fixture
def checkpoint(tmp_path):
    for batch, (watermark, offset) in enumerate([(0, 0), (1000, 1), (5000, 1), (5000, 3)]):
        planned(tmp_path, batch, watermark, offset)
    for batch, left in enumerate([1000, 5000, 5000]):
        committed(tmp_path, batch, left)
    log = tmp_path / "sources" / "0"
    write(log / "1.compact", *noticed(0, "a", "b"), *noticed(1, "c"))
    write(log / "1", *noticed(1, "c"))
    write(log / "2", *noticed(2, "d"))
    write(log / "3", *noticed(3, "e"))
    write(log / "4", *noticed(4, "f"))
    (log / ".4.crc").write_bytes(b"\x00")
    (tmp_path / "offsets" / ".3.crc").write_bytes(b"\x00")
    return tmp_path


def test_watermarks(checkpoint):
    assert micro_batches(str(checkpoint)) == [(0, 0, 1000), (1, 1000, 5000), (2, 5000, 5000), (3, 5000, None)]


def test_a_file_is_read_in_the_first_micro_batch_that_comes_as_far(checkpoint):
    # The second of two entries that one micro-batch has read was noticed by an engine that was killed before it planned anything; the
    # last of all is noticed and not read.
    assert files_read(str(checkpoint)) == [(0, "a"), (0, "b"), (1, "c"), (3, "d"), (3, "e")]


def test_a_micro_batch_before_any_file(checkpoint):
    planned(checkpoint, 0, 0, None)
    assert files_read(str(checkpoint))[0] == (1, "a")


def test_a_log_with_a_hole_tells_nothing(checkpoint):
    (checkpoint / "offsets" / "1").unlink()
    with pytest.raises(LogIncomplete, match=r"micro-batch 1.*minBatchesToRetain"):
        micro_batches(str(checkpoint))


def test_an_attempt_without_its_last_file_does_not_count(tmp_path):
    for batch, attempt, complete in [(0, 0, True), (1, 0, False), (1, 1, True), (10, 1, True)]:
        folder = tmp_path / "output" / f"batch={batch}" / f"attempt={attempt}"
        folder.mkdir(parents=True)
        if complete:
            (folder / "_SUCCESS").touch()
    assert attempts(str(tmp_path)) == [(0, 0), (1, 1), (10, 1)]


def test_progress_of_several_engines(tmp_path):
    def told(batch, **operator):
        entry = {
            "batchId": batch,
            "stateOperators": [{"numRowsTotal": 5, **operator}],
            "eventTime": {"watermark": "1970-01-01T00:00:01.500Z"},
        }
        return json.dumps(entry) + "\n"

    folder = tmp_path / "progress"
    folder.mkdir()
    (folder / "0.jsonl").write_text(told(0) + told(1, numRowsDroppedByWatermark=2) + told(2)[:-10])
    (folder / "1.jsonl").write_text(told(2, numRowsDroppedByWatermark=0))
    assert progress(str(tmp_path)) == [(0, 0, 1500, 5, None), (1, 0, 1500, 5, 2), (2, 1, 1500, 5, 0)]
