"""A file of the state that the next micro-batch needs is missing: it is found, and what Spark has purged is not missed."""

import json
import os
import shutil
import zlib
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path, PurePosixPath
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from conformance.checkpoints import state
from conformance.checkpoints.checkpoint import Checkpoint, read
from conformance.checkpoints.files import MOST_BYTES, DamagedCheckpoint, Folder, NoSuchCheckpoint
from tests.support.checkpoints import QUERY_ID, releases_with, small, write, written_by
from tests.support.commands import answer_of

NAMES = ("window_aggregation-hdfs", "outer_join-hdfs", "deduplication-hdfs", "session_window-hdfs", "filter_only-hdfs")
ROCKSDB = ("window_aggregation-rocksdb", "outer_join-rocksdb")


def found(root: Path) -> Checkpoint:
    return read(Folder.open(root))


def missing(root: Path) -> list[str]:
    return [str(file.path) for file in found(root).missing]


WITH_ZIPS = ("3.5.9", "4.3.0")
"""The releases whose zips of RocksDB are kept as they wrote them; of the others, only their sizes are."""


@pytest.mark.parametrize("name", [*NAMES, *ROCKSDB])
def test_what_spark_wrote_lacks_nothing(name: str, tmp_path: Path) -> None:
    for version in WITH_ZIPS if name in ROCKSDB else releases_with(name):
        assert missing(written_by(version, name, tmp_path / version)) == [], version


@pytest.mark.parametrize("name", [name for name in (*NAMES, *ROCKSDB) if name != "filter_only-hdfs"])
def test_each_file_that_is_needed_is_missed_and_no_other(name: str, tmp_path: Path) -> None:
    root = written_by("4.3.0", name, tmp_path)
    state = [path for path in root.glob("state/0/*/**/[0-9]*.*") if path.suffix in (".delta", ".zip")]
    assert {path.suffix for path in state} == {".zip" if name in ROCKSDB else ".delta"}
    for path in state:
        content = path.read_bytes()
        path.unlink()
        # Each version of RocksDB is whole; a version of HDFS-backed state is all its changes.
        needed = name not in ROCKSDB or path.stem == "4"
        assert missing(root) == ([path.relative_to(root).as_posix()] if needed else [])
        assert found(root).replayable is (path.stem == "4")
        path.write_bytes(content)


def test_versions_that_spark_has_purged_are_not_missed(tmp_path: Path) -> None:
    root = written_by("3.5.9", "window_aggregation-hdfs", tmp_path)
    for partition in root.glob("state/0/[01]"):
        for version in "123":
            (partition / f"{version}.delta").unlink()
        (partition / "3.snapshot").write_bytes(b"x")
    assert missing(root) == []
    (root / "state/0/1/3.snapshot").unlink()
    assert missing(root) == ["state/0/1/1.delta"]


def test_a_gap_between_changelogs(tmp_path: Path) -> None:
    root = written_by("4.3.0", "window_aggregation-rocksdb", tmp_path)
    for path in root.glob("state/0/[01]/[34].zip"):
        path.unlink()
        path.with_suffix(".changelog").write_bytes(b"x")
    assert missing(root) == []
    (root / "state/0/0/3.changelog").unlink()
    assert missing(root) == ["state/0/0/3.changelog"]


def test_a_micro_batch_that_was_not_committed_needs_the_version_before(tmp_path: Path) -> None:
    root = written_by("4.3.0", "window_aggregation-hdfs", tmp_path)
    (root / "state/0/0/4.delta").unlink()
    (root / "commits/3").unlink()
    assert missing(root) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_logs_tell_that_the_state_folder_is_missing(name: str, tmp_path: Path) -> None:
    for version in releases_with(name):
        root = written_by(version, name, tmp_path / version)
        shutil.rmtree(root / "state", ignore_errors=True)
        assert missing(root) == ([] if name == "filter_only-hdfs" else ["state"]), version


def test_the_commit_may_name_the_stores(tmp_path: Path) -> None:
    root = small(tmp_path, commits__0='v2\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{"0":[["a"]]}}')
    assert missing(root) == ["state"]


def test_epochs_of_continuous_processing_are_not_micro_batches_without_data(tmp_path: Path) -> None:
    logs = {
        f"{log}/{epoch}": 'v1\n\n{"0":1}' if log == "offsets" else "v1\n{}"
        for log in ("offsets", "commits")
        for epoch in (0, 1)
    }
    assert missing(write(tmp_path, {"metadata": f'{{"id": "{QUERY_ID}"}}', **logs})) == []


@pytest.mark.parametrize(
    ("files", "lacks"),
    [
        (["1/0/1.delta", "1/1/1.delta"], ["state/0"]),
        (["0/0/1.delta"], []),
        (["0/1/1.delta"], ["state/0/0/1.delta"]),
        (["0/0/1.delta", "0/1/1.delta", "0/2/9.delta"], []),
        (["0/0/left/1.delta", "0/1/left/1.delta", "0/0/right/1.delta"], ["state/0/1/right/1.delta"]),
    ],
    ids=["operator", "one partition", "partition", "left over", "store"],
)
def test_folders_that_are_missing(files: list[str], lacks: list[str], tmp_path: Path) -> None:
    """Two partitions are pinned; an operator without a key has one, and a third is left from before a repartition."""
    write(small(tmp_path), {f"state/{file}": b"x" for file in files})
    assert missing(tmp_path) == lacks


def test_inspect_says_what_is_missing_what_follows_and_how_to_mend_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = written_by("3.5.9", "window_aggregation-hdfs", tmp_path)
    (root / "state/0/1/4.delta").unlink()

    def inspected(*arguments: str) -> str:
        code, out, _ = answer_of(capsys, "checkpoint", "inspect", str(root), *arguments)
        assert code == 1
        return " ".join(out.split())

    assert (
        "missing state/0/1/4.delta: it is missing; the next micro-batch needs version 4 of the state Put back what is missing "
        "from a copy of the checkpoint. Or remove commits/3: micro-batch 3 runs again, and its rows come out again."
        in inspected()
    )
    to = inspected("--to", "4.3")
    assert (
        "refused with CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_NOT_EXISTS: a file is missing without which" in to
    )
    assert "shown by the case" not in to
    assert "shown by the case recovery/state-delta-gone-is-refused" in inspected("--to", "4.3", "--verbose")
    assert "no known reason" not in to
    assert json.loads(inspected("--json"))["missing"] == ["state/0/1/4.delta"]
    shutil.rmtree(root / "state")
    assert "Without one, the query needs a new checkpoint." in inspected()
    assert (
        "refused with STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY: the folder `state` is missing"
        in inspected("--to", "4.3")
    )
    assert "refused: the folder `state` is missing" in inspected("--to", "4.1")


@pytest.mark.parametrize("version", WITH_ZIPS)
@pytest.mark.parametrize("name", ROCKSDB)
def test_each_file_that_the_newest_zip_names_is_looked_for_and_its_size_compared(
    name: str, version: str, tmp_path: Path
) -> None:
    root = written_by(version, name, tmp_path)
    ssts = {path.relative_to(root): path for path in root.glob("state/0/*/**/SSTs/*")}
    named = {
        zipped.parent.relative_to(root) / "SSTs" / file["dfsSstFileName"]: file["sizeBytes"]
        for zipped in root.glob("state/0/*/**/4.zip")
        for file in json.loads(ZipFile(zipped).read("metadata").partition(b"\n")[2])["sstFiles"]
    }
    assert named
    for relative, path in ssts.items():
        content = path.read_bytes()
        path.unlink()
        assert missing(root) == ([str(relative)] if relative in named else []), relative
        path.write_bytes(content[:-1])
        lacks = [str(file) for file in found(root).missing]
        assert len(lacks) == (relative in named)
        if relative in named:
            assert (
                f"{relative}: it is cut off or damaged: it has {len(content) - 1:,} bytes, not {named[relative]:,}; "
                in lacks[0]
            )
            assert "4.zip names it, and the next micro-batch needs version 4 of the state" in lacks[0]
        path.write_bytes(content)


@pytest.mark.parametrize("path", ["state/0/0/4.zip", "offsets/1"])
def test_what_this_machine_cannot_read_is_not_taken_for_damaged(path: str, tmp_path: Path) -> None:
    """``offsets/1`` says whether the query kept state, which only a checkpoint without its folder ``state`` is asked."""
    root = written_by("3.5.9", ROCKSDB[0], tmp_path)
    if path.startswith("offsets"):
        shutil.rmtree(root / "state")
    (root / path).rename(tmp_path / "elsewhere")
    (root / path).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NoSuchCheckpoint, match=f"{path}: this is a link, which is not followed"):
        found(root)


def zipped(metadata: bytes) -> bytes:
    written = BytesIO()
    with ZipFile(written, "w") as target:
        target.writestr("metadata", metadata)
    return written.getvalue()


@pytest.mark.parametrize(
    "damage",
    [b"", b"PK", b"no zip", zipped(b"v1\n[]"), zipped(b"v1\n{"), zipped(b'v1\n{"sstFiles": [{"sizeBytes": "x"}]}')],
)
def test_a_zip_that_cannot_be_unpacked_is_named(damage: bytes, tmp_path: Path) -> None:
    root = written_by("4.3.0", ROCKSDB[0], tmp_path)
    (root / "state/0/0/4.zip").write_bytes(damage)
    assert {*missing(root)} == {"state/0/0/4.zip"}
    (root / "state/0/0/3.zip").write_bytes(damage)
    assert {*missing(root)} == {"state/0/0/4.zip"}


def test_a_zip_without_end_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = written_by("4.3.0", ROCKSDB[0], tmp_path)
    monkeypatch.setattr(state, "MOST_UNPACKED", 2**20)
    with ZipFile(root / "state/0/0/4.zip", "a", ZIP_DEFLATED) as archive:
        archive.writestr("000001.log", bytes(2**20))
    assert {*missing(root)} == {"state/0/0/4.zip"}


def test_a_file_is_compared_with_the_checksums_beside_it(tmp_path: Path) -> None:
    root = written_by("4.3.0", NAMES[0], tmp_path)
    delta, content = root / "state/0/0/2.delta", b"some state" * 100
    delta.write_bytes(content)
    crcs = b"".join(zlib.crc32(content[at : at + 512]).to_bytes(4, "big") for at in (0, 512))
    delta.with_name(".2.delta.crc").write_bytes(b"crc\0" + (512).to_bytes(4, "big") + crcs)
    assert missing(root) == []
    for damaged in (content[:-1], content[:500], b"other" + content[5:]):
        delta.write_bytes(damaged)
        assert missing(root) == ["state/0/0/2.delta"]
    delta.with_name(".2.delta.crc").unlink()
    for size, lacks in ((999, ["state/0/0/2.delta"]), (1000, [])):
        delta.with_name("2.delta.crc").write_text(f'{{"algorithm":"CRC32C","value":1,"mainFileSize":{size}}}')
        delta.write_bytes(content)
        assert missing(root) == lacks


def test_a_schema_is_missed_where_its_checksum_is_left(tmp_path: Path) -> None:
    """Seen on 3.5.9: with the checksum left behind the query fails; without it, too, Spark writes the schema again and goes on."""
    root = written_by("3.5.9", NAMES[0], tmp_path)
    (root / "state/0/0/_metadata/schema").unlink()
    assert missing(root) == []
    (root / "state/0/0/_metadata/.schema.crc").write_bytes(b"crc")
    assert missing(root) == ["state/0/0/_metadata/schema"]


@pytest.mark.parametrize("file", ["state/0/0/_metadata/schema", "metadata"])
def test_a_file_that_spark_always_reads_fits_its_checksum(file: str, tmp_path: Path) -> None:
    root = written_by("3.5.9", NAMES[0], tmp_path)
    path, sums = root / file, (root / file).with_name(f".{PurePosixPath(file).name}.crc")
    sums.write_bytes(b"crc\0" + (512).to_bytes(4, "big") + zlib.crc32(path.read_bytes()).to_bytes(4, "big"))
    assert missing(root) == []
    sums.write_bytes(b"crc\0" + (512).to_bytes(4, "big") + bytes(4))
    assert missing(root) == [file]


def test_the_ids_of_the_commits_say_which_attempt_counts(tmp_path: Path) -> None:
    """Checkpoint format 2: a file of an attempt that was not committed does not stand for that of the one that was."""
    ids = ["94678c57-9f67-431b-b1a5-d2b2324c3310", "03bdd045-62ed-4b6e-ad75-3b6e2c863937"]
    commit = f'v2\n{{"nextBatchWatermarkMs":0,"stateUniqueIds":{{"0":[["{ids[0]}"],["{ids[1]}"]]}}}}'
    root = small(tmp_path, commits__0=commit)
    for partition, id in enumerate(ids):
        write(
            root, {f"state/0/{partition}/1_{id}.changelog": "x", f"state/0/{partition}/1_of-an-attempt.changelog": "x"}
        )
    assert missing(root) == []
    (root / f"state/0/1/1_{ids[1]}.changelog").unlink()
    assert missing(root) == ["state/0/1/1_*.changelog"]


def _log(numbers: Iterable[object], folder: str = "sources/0") -> dict[str, str | bytes]:
    return {f"{folder}/{number}": 'v1\n{"path":"file:///in/a.json"}' for number in numbers}


@pytest.mark.parametrize(
    ("entries", "upto", "lacks"),
    [
        (range(4), 3, []),
        ((0, 1, 3), 3, ["sources/0/2"]),
        (range(3), 3, ["sources/0/3"]),
        (range(5), 3, []),
        (("9.compact", 10, 11), 11, []),
        (("9.compact", 11), 11, ["sources/0/10"]),
        ((10, 11), 11, ["sources/0/9.compact"]),
        (("2.compact", 3, 4, "5.compact", 6), 6, []),
        (("5.compact", 6, 7, 9), 9, ["sources/0/8"]),
        (("2.compact", "5.compact", 6, 7, 9), 9, ["sources/0/8.compact"]),
        (range(3), 10**17, [f"sources/0/{10**17}"]),
    ],
)
def test_the_log_of_a_source_of_files_has_every_entry_from_the_newest_compacted_one(
    entries: Iterable[object], upto: int, lacks: list[str], tmp_path: Path
) -> None:
    root = small(tmp_path, offsets__0=f'v1\n{{"batchTimestampMs":1}}\n{{"logOffset":{upto}}}')
    (root / "sources/0/0").unlink()
    assert missing(write(root, _log(entries))) == lacks
    (root / "commits/0").unlink()
    assert missing(root) == lacks


def test_the_log_of_a_source_that_has_read_many_files_is_not_refused_for_its_size(tmp_path: Path) -> None:
    root = small(tmp_path)
    os.truncate(root / "sources/0/0", MOST_BYTES + 1)
    assert missing(root) == []


def test_an_entry_of_the_offset_log_whose_commit_is_there_is_missed(tmp_path: Path) -> None:
    root = written_by("3.5.9", "window_aggregation-hdfs", tmp_path)
    for batch in (3, 2):
        content = (root / f"offsets/{batch}").read_bytes()
        (root / f"offsets/{batch}").unlink()
        assert missing(root) == [f"offsets/{batch}"]
        (root / f"offsets/{batch}").write_bytes(content[:20])
        with pytest.raises(DamagedCheckpoint, match=f"offsets/{batch}"):
            found(root)
        (root / f"offsets/{batch}").write_bytes(content)


def test_the_log_of_a_sink_and_each_file_that_it_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def entry(*names: str, action: str = "add") -> str:
        return "\n".join(
            ["v1", *(json.dumps({"path": f"file:///there/{name}", "size": 3, "action": action}) for name in names)]
        )

    root = small(tmp_path / "cp")
    files = {
        "_spark_metadata/1.compact": entry("a.json", "d=1%252/b.json") + "\n" + entry("gone", action="delete")[3:],
        "_spark_metadata/2": entry("c.json"),
        "_spark_metadata/0": entry("purged.json"),
        **dict.fromkeys(("a.json", "d=1%2/b.json", "c.json"), "abc"),
    }
    out = write(tmp_path / "out", files)

    def lacks() -> list[str]:
        code, shown, _ = answer_of(capsys, "checkpoint", "inspect", str(root), "--sink", str(out), "--json")
        paths = json.loads(shown).get("missing", [])
        assert code == bool(paths)
        return paths

    assert lacks() == []
    (out / "c.json").write_text("ab")
    (out / "d=1%2/b.json").unlink()
    assert {*lacks()} == {"c.json", "b.json"}
    write(out, files)
    (out / "_spark_metadata/1.compact").unlink()
    assert lacks()[0] == "_spark_metadata/1"
    with pytest.raises(NoSuchCheckpoint, match="it has no log _spark_metadata"):
        read(Folder.open(root), Folder.open(root))


def test_files_of_the_state_whose_content_is_not_checked_are_counted(tmp_path: Path) -> None:
    root = written_by("4.3.0", "outer_join-hdfs", tmp_path)
    deltas = [*root.rglob("*.delta")]
    assert found(root).unchecked == len(deltas) > 0
    for path in deltas:
        crc = zlib.crc32(content := path.read_bytes()).to_bytes(4, "big")
        path.with_name(f".{path.name}.crc").write_bytes(b"crc\0" + len(content).to_bytes(4, "big") + crc)
    assert (found(root).unchecked, missing(root)) == (0, [])


def test_a_zip_whose_entry_does_not_fit_its_checksum_is_damaged(tmp_path: Path) -> None:
    root = written_by("4.3.0", "window_aggregation-rocksdb", tmp_path)
    zipped = root / "state/0/0/4.zip"
    with ZipFile(zipped, "a") as whole:
        whole.writestr("OPTIONS-000007", "[Version]")
    assert missing(root) == []
    zipped.write_bytes(zipped.read_bytes().replace(b"[Version]", b"[version]"))
    assert missing(root) == ["state/0/0/4.zip"]


@pytest.mark.parametrize("partition", [0, 1])
@pytest.mark.parametrize("name", ["session_window-hdfs", "outer_join-hdfs"])
def test_a_partition_of_which_nothing_is_left_is_missing_where_the_state_has_a_key(
    name: str, partition: int, tmp_path: Path
) -> None:
    root = written_by("3.5.9", name, tmp_path)
    shutil.rmtree(root / f"state/0/{partition}")
    assert missing(root)
    assert {path.split("/")[2] for path in missing(root)} == {str(partition)}
