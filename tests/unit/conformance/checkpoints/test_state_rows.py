"""Rows in the state of checkpoints: those that real Sparks wrote, drawn ones, and files that are damaged or not known."""

import json
import os
import struct
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.checkpoints import state_rows
from conformance.checkpoints.checkpoint import read
from conformance.checkpoints.files import MOST_BYTES, MOST_BYTES_OF_STATE, DamagedCheckpoint, Folder, NoSuchCheckpoint
from conformance.checkpoints.state_rows import OperatorRows, TimesInState, rows_in_state
from tests.support.checkpoints import releases_with, schema_v2, small, state_file, unsafe_row, utf, write, written_by

pytest.importorskip("pyarrow")

MINUTE_US = 60_000_000
NOON_MS = 1_704_110_400_000
"""2024-01-01 12:00, of `tools.checkpoint_queries`."""


def found(root: Path) -> tuple[OperatorRows, ...]:
    files = Folder.open(root)
    return tuple(rows_in_state(files, read(files)))


def noon(minutes: int) -> int:
    return NOON_MS + minutes * 60_000


@pytest.mark.parametrize("version", ["3.1.3", "3.2.4", "3.3.4", "3.4.4", "3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0"])
@pytest.mark.parametrize(
    ("query", "stores"),
    [
        ("window_aggregation", [TimesInState("default", 2, "window", 1, noon(30), noon(40), 0, 0)]),
        ("session_window", [TimesInState("default", 2, "window", 2, noon(30), noon(36), 0, 0)]),
        ("deduplication", [TimesInState("default", 2, "event time", None, noon(30), noon(31), 0, 0)]),
        ("within_watermark", [TimesInState("default", 1, "expiry", None, noon(40), noon(40), 0, 0)]),
        (
            "outer_join",
            [
                TimesInState("left", 2, "event time", None, noon(30), noon(31)),
                TimesInState("right", 1, "event time", None, noon(29), noon(29)),
            ],
        ),
    ],
)
def test_what_spark_wrote_is_read(query: str, stores: list[TimesInState], version: str, tmp_path: Path) -> None:
    if version not in releases_with(f"{query}-hdfs"):
        pytest.skip(f"{version} has no such query")
    (operator,) = found(written_by(version, f"{query}-hdfs", tmp_path))
    assert [*operator.stores] == stores
    assert operator.unread == ""


@pytest.mark.parametrize(("query", "rows"), [("window_aggregation", 2), ("deduplication", 2), ("outer_join", 3)])
@pytest.mark.parametrize("version", ["2.4.8", "3.0.3"])
def test_rows_without_a_schema_are_counted_and_their_times_are_not_known(
    version: str, query: str, rows: int, tmp_path: Path
) -> None:
    (operator,) = found(written_by(version, f"{query}-hdfs", tmp_path))
    assert operator.rows == rows
    assert {store.times for store in operator.stores} == {"not known"}


def test_rocksdb_is_not_read(tmp_path: Path) -> None:
    (operator,) = found(written_by("4.3.0", "window_aggregation-rocksdb", tmp_path))
    assert (operator.rows, operator.unread.partition(",")[0]) == (None, "its state store is RocksDB")


def columns(*listed: tuple[str, object, bool]) -> str:
    """A schema of (name, type, whether it has the watermark)."""
    fields = [
        {"name": name, "type": type_, "nullable": True, "metadata": {"spark.watermarkDelayMs": 1} if timed else {}}
        for name, type_, timed in listed
    ]
    return json.dumps({"type": "struct", "fields": fields})


WINDOW = json.loads(columns(("start", "timestamp", False), ("end", "timestamp", False)))
WIDE = 65
"""Columns of a key whose nulls take two words."""


def aggregation(root: Path, files: dict[str, bytes], *, watermark_minutes: int = 0, ran_with: int = 0) -> Path:
    """A checkpoint after the micro-batches of files: `1.delta` …; the key is a window among ``WIDE`` columns."""
    last = max(int(name.split(".")[0]) for name in files) - 1
    key = columns(
        ("who", "string", False), ("window", WINDOW, True), *((f"c{n}", "long", False) for n in range(WIDE - 2))
    )
    offsets = json.dumps(
        {"batchWatermarkMs": ran_with * 60_000, "batchTimestampMs": 1, "conf": {"spark.sql.shuffle.partitions": "1"}}
    )
    small(root, committed=False)
    logs = {
        f"offsets/{last}": f'v1\n{offsets}\n{{"logOffset":0}}',
        f"commits/{last}": f'v1\n{{"nextBatchWatermarkMs":{watermark_minutes * 60_000}}}',
    }
    state = {f"state/0/0/{name}": content for name, content in files.items()}
    return write(
        root, {**logs, **state, "state/0/0/_metadata/schema": schema_v2(key, columns(("count", "long", False)))}
    )


def key_of(who: str, start: int | None) -> bytes:
    window = None if start is None else (start * MINUTE_US, (start + 10) * MINUTE_US)
    return unsafe_row(who, window, *[None] * (WIDE - 2))


keys = st.tuples(st.sampled_from(["", "ada", "a longer name"]), st.none() | st.integers(-3, 60))
changes = st.lists(st.tuples(keys, st.booleans()), max_size=6)


@given(st.lists(changes, min_size=1, max_size=4), st.sets(st.integers(1, 4)), st.integers(1, 70), st.integers(0, 70))
def test_drawn_changes_leave_the_rows_that_they_leave(
    tmp_path_factory: pytest.TempPathFactory,
    micro_batches: list[list[tuple[tuple[str, int | None], bool]]],
    snapshots: set[int],
    watermark: int,
    ran_with: int,
) -> None:
    ran_with = min(ran_with, watermark)
    files, left = {}, set[tuple[str, int | None]]()
    for version, micro_batch in enumerate(micro_batches, 1):
        files[f"{version}.delta"] = state_file(
            *((key_of(*key), unsafe_row(1) if put else None) for key, put in micro_batch)
        )
        for key, put in micro_batch:
            (left.add if put else left.discard)(key)
        if version in snapshots:
            files[f"{version}.snapshot"] = state_file(*((key_of(*key), unsafe_row(1)) for key in sorted(left, key=str)))
    root = aggregation(tmp_path_factory.mktemp("c"), files, watermark_minutes=watermark, ran_with=ran_with)
    (operator,) = found(root)
    (store,) = operator.stores
    starts = [start for _, start in left if start is not None]
    assert (operator.unread, store.rows, store.windows) == ("", len(left), len(set(starts)))
    assert store.untimed == len(left) - len(starts)
    expected = (min(starts) * 60_000, (max(starts) + 10) * 60_000) if starts else (None, None)
    assert (store.oldest_ms, store.newest_ms) == expected
    overdue = sum(start + 10 <= ran_with for start in starts) if ran_with else 0
    assert (store.overdue, store.released) == (overdue, sum(start + 10 <= watermark for start in starts) - overdue)


GOOD = state_file((key_of("ada", 0), unsafe_row(1)))


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"1.delta": GOOD[:-30]}, "state/0/0/1.delta: it is cut off or damaged"),
        ({"1.delta": GOOD[:30]}, "state/0/0/1.delta: it is cut off or damaged"),
        ({"1.delta": state_file(end=b"")}, "state/0/0/1.delta: it is cut off or damaged"),
        ({"1.delta": state_file(end=struct.pack(">i", 2**31 - 1))}, "state/0/0/1.delta: it is cut off or damaged"),
        ({"1.delta": b"\x82SNAPPY\0" + GOOD}, "it is damaged, or of a codec other than lz4 and zstd"),
        ({"1.delta": b"LZ4Block" + struct.pack("<Biii", 0x25, 4, 400, 0) + b"\0\1\2\3"}, "it is cut off or damaged"),
        ({"1.delta": state_file((b"\0" * 8, b""))}, "state/0: a row does not fit the schema"),
        ({"1.delta": GOOD, "3.delta": GOOD}, "state/0/0/2.delta: it is missing"),
        ({"3.delta": GOOD}, "state/0/0/1.delta: it is missing"),
        ({"1.delta": GOOD, "2.delta": b""}, "state/0/0/2.delta: it is cut off or damaged: it has 0 bytes"),
        ({"1_77abc.delta": GOOD}, "state/0: a partition has no file 1.delta"),
    ],
)
def test_what_cannot_be_read_is_named_and_nothing_is_counted(files: dict[str, bytes], why: str, tmp_path: Path) -> None:
    numbered = {name: content for name, content in files.items() if "_" not in name}
    root = aggregation(tmp_path, numbered or {"1.delta": GOOD})
    if not numbered:
        (root / "state/0/0/1.delta").rename(root / "state/0/0" / next(iter(files)))
    (operator,) = found(root)
    assert (operator.rows, operator.stores) == (None, ())
    assert why in operator.unread


def test_an_unknown_format_of_the_schema_is_named(tmp_path: Path) -> None:
    root = write(aggregation(tmp_path, {"1.delta": GOOD}), {"state/0/0/_metadata/schema": utf("v9")})
    with pytest.raises(DamagedCheckpoint, match="the format of this state schema is 'v9'; known are v1 to v3"):
        found(root)


def test_a_file_that_unpacks_to_too_much_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_rows, "_MOST", 64)
    (operator,) = found(aggregation(tmp_path, {"1.delta": GOOD}))
    assert "it is cut off or damaged (it unpacks to more than 0 MiB)" in operator.unread


def test_files_of_the_state_may_be_larger_than_those_of_logs(tmp_path: Path) -> None:
    for name, most in (("state/0/0/1.sst", MOST_BYTES_OF_STATE), ("offsets/0", MOST_BYTES)):
        root = write(tmp_path, {name: b""})
        os.truncate(root / name, MOST_BYTES + 1)
        if most > MOST_BYTES:
            assert len(Folder.open(root).read(PurePosixPath(name))) == MOST_BYTES + 1
            os.truncate(root / name, most + 1)  # takes no room
        with pytest.raises(NoSuchCheckpoint, match=f"{name}: this file has more than {most // 1024**2} MiB"):
            Folder.open(root).read(PurePosixPath(name))
