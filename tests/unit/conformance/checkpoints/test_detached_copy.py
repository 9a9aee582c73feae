"""A copy of a checkpoint keeps state and watermark, has sources that read nothing, and leaves the original as it is."""

import hashlib
import json
import zipfile
from pathlib import Path

import fsspec
import pytest

from conformance.checkpoints import checkpoint
from conformance.checkpoints.checkpoint import NO_FILE_READ, Checkpoint, copy_detached, read
from conformance.checkpoints.files import DamagedCheckpoint, NoSuchCheckpoint, open_files
from tests.support.checkpoints import releases_with, small, written_by


def copied(root: Path, into: Path) -> Checkpoint:
    return copied_from(str(root), into)


def copied_from(where: str, into: Path) -> Checkpoint:
    files = open_files(where)
    copy_detached(files, read(files), into)
    return read(open_files(str(into)))


def digests(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path.stat().st_mtime_ns}"
        for path in root.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("name", ["outer_join-hdfs", "outer_join-rocksdb"])
def test_of_every_release(tmp_path: Path, name: str) -> None:
    for version in releases_with(name):
        original = written_by(version, name, tmp_path / version)
        before, known = digests(original), read(open_files(str(original)))
        copy = copied(original, tmp_path / version / "copy")
        assert digests(original) == before
        of_both = [(one.watermark_ms, one.operators, one.settings) for one in (copy, known)]
        assert of_both[0] == of_both[1]
        assert [source.offset for source in copy.sources] == [NO_FILE_READ] * len(known.sources)
        assert not (tmp_path / version / "copy" / "sources").exists()


def test_a_micro_batch_that_is_not_committed_is_left_out(tmp_path: Path) -> None:
    planned = 'v1\n{"batchWatermarkMs":500,"batchTimestampMs":1}\n{"orders":{"0":5}}'
    root = small(tmp_path / "root", watermark_ms=1000, offsets__1=planned)
    copy = copied(root, tmp_path / "copy")
    assert (copy.unfinished, copy.watermark_ms) == (False, 1000)


def test_the_offsets_of_kafka_become_those_of_files_and_names_stay(tmp_path: Path) -> None:
    root = small(tmp_path / "root", offsets__0='v2\n{"batchTimestampMs":1}\norders:{"orders":{"0":5}}')
    assert [(one.name, one.offset) for one in copied(root, tmp_path / "copy").sources] == [("orders", NO_FILE_READ)]


@pytest.mark.parametrize(
    ("name", "size", "why"),
    [
        ("../../outside", 1, "a snapshot of RocksDB has no folders"),
        ("/outside", 1, "a snapshot of RocksDB has no folders"),
        ("000001.log", 2**21, "it unpacks to more than 1 MiB"),
    ],
)
def test_a_zip_that_would_unpack_elsewhere_or_without_end_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, size: int, why: str
) -> None:
    monkeypatch.setattr(checkpoint, "MOST_UNPACKED", 2**20)
    zipped = tmp_path / "root/state/0/0/1.zip"
    zipped.parent.mkdir(parents=True)
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, bytes(size))
    with pytest.raises(DamagedCheckpoint, match=f"state/0/0/1.zip: {why}"):
        copied(small(tmp_path / "root"), tmp_path / "copy")


def rocksdb(root: Path, list_of_files: str, **entries: bytes) -> Path:
    zipped = root / "state/0/0/1.zip"
    zipped.parent.mkdir(parents=True)
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata", f"v1\n{list_of_files}")
        for name, content in entries.items():
            archive.writestr(name, content)
    return zipped


def test_what_spark_reads_of_a_zip_is_what_was_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark reads a zip from its beginning; the list at its end may name other entries and sizes."""
    monkeypatch.setattr(checkpoint, "MOST_UNPACKED", 2**20)
    zipped = rocksdb(tmp_path / "root", "{}", log=bytes(2**21))
    content = bytearray(zipped.read_bytes())
    at = content.rindex(b"log") - 46
    assert content[at : at + 4] == b"PK\x01\x02"
    content[at + 24 : at + 28] = (10).to_bytes(4, "little")  # the size of the entry
    zipped.write_bytes(content)
    with pytest.raises(DamagedCheckpoint, match=r"state/0/0/1\.zip: this zip is damaged"):
        copied(small(tmp_path / "root"), tmp_path / "copy")
    zipped.write_bytes(content[: content.index(b"PK\x01\x02")])
    with pytest.raises(DamagedCheckpoint, match=r"state/0/0/1\.zip: this zip is damaged"):
        copied(small(tmp_path / "root"), tmp_path / "other")


@pytest.mark.parametrize(
    "listed",
    [
        '{"sstFiles": [{"localFileName": "../../../1.sst", "dfsSstFileName": "1-a.sst"}]}',
        '{"sstFiles": [{"localFileName": "1.sst", "dfsSstFileName": "/etc/passwd"}]}',
        '{"logFiles": [{"localFileName": "../1.log", "localFileName": "1.log", "dfsLogFileName": "1.log"}]}',
        '{"sstFiles": [{"localFileName": "../1.sst", "dfsSstFileName": "1.sst"}]} trailing',
    ],
)
def test_a_list_of_files_that_names_some_elsewhere_is_not_copied(tmp_path: Path, listed: str) -> None:
    """Spark 4.3.0 copies each from the second name to the first, wherever they are."""
    rocksdb(tmp_path / "root", listed)
    with pytest.raises(DamagedCheckpoint, match=r"1\.zip: (it names the file|its list of files cannot be read)"):
        copied(small(tmp_path / "root"), tmp_path / "copy")


@pytest.mark.parametrize("key", checkpoint.CLASSES)
def test_a_class_that_the_checkpoint_names_is_not_loaded(tmp_path: Path, key: str) -> None:
    for name in checkpoint.CLASSES[key]:
        copied(small(tmp_path / name, offsets__0=pinning({key: name})), tmp_path / f"copy of {name}")
    root = small(tmp_path / "root", offsets__0=pinning({key: "org.example.Boom"}))
    with pytest.raises(DamagedCheckpoint, match=f"offsets/0: {key} names 'org.example.Boom'"):
        copied(root, tmp_path / "copy")
    files = open_files(str(root))
    copy_detached(files, read(files), tmp_path / "trusted", {key: "org.example.Boom"})


def test_of_two_values_of_a_key_the_one_that_was_checked_is_in_the_copy(tmp_path: Path) -> None:
    key = "spark.sql.streaming.stateStore.providerClass"
    hostile = pinning({}).replace('"conf": {}', f'"conf": {{"{key}": "org.example.Boom"}}, "conf": {{}}')
    copied(small(tmp_path / "root", offsets__0=hostile), tmp_path / "copy")
    assert "Boom" not in (tmp_path / "copy" / "offsets" / "0").read_text()


def pinning(settings: dict[str, str]) -> str:
    return f'v1\n{json.dumps({"batchTimestampMs": 1, "conf": settings})}\n{{"logOffset":0}}'


def test_a_name_in_an_object_store_does_not_lead_out_of_the_copy(tmp_path: Path) -> None:
    store = fsspec.filesystem("memory")
    store.store.clear()
    for path in small(tmp_path / "root").rglob("*"):
        if path.is_file():
            store.pipe_file(f"/orders/{path.relative_to(tmp_path / 'root').as_posix()}", path.read_bytes())
    store.pipe_file("/orders/state/harmless", b"")
    store.store["/orders/state/../../../outside"] = store.store["/orders/state/harmless"]
    with pytest.raises(NoSuchCheckpoint, match=r"outside: a file of a checkpoint has no `\.\.` in its name"):
        copied_from("memory://orders", tmp_path / "copies" / "copy")
    assert not (tmp_path / "outside").exists()


def test_a_checksum_of_an_entry_that_changed_is_not_copied(tmp_path: Path) -> None:
    copied(small(tmp_path / "root", **{"offsets__.0.crc": b"\0"}), tmp_path / "copy")
    assert not (tmp_path / "copy" / "offsets" / ".0.crc").exists()


def test_without_a_committed_micro_batch_there_is_nothing_to_resume(tmp_path: Path) -> None:
    with pytest.raises(NoSuchCheckpoint, match="no micro-batch is committed"):
        copied(small(tmp_path / "root", committed=False), tmp_path / "copy")
