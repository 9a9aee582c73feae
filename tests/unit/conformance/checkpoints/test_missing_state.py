"""A file of the state that the next micro-batch needs is missing: it is found, and what Spark has purged is not missed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from conformance.checkpoints.checkpoint import Checkpoint, read
from conformance.checkpoints.files import Folder
from tests.support.checkpoints import releases_with, small, write, written_by
from tests.support.commands import answer_of

NAMES = ("window_aggregation-hdfs", "outer_join-hdfs", "deduplication-hdfs", "session_window-hdfs", "filter_only-hdfs")
ROCKSDB = ("window_aggregation-rocksdb", "outer_join-rocksdb")


def found(root: Path) -> Checkpoint:
    return read(Folder.open(root))


def missing(root: Path) -> list[str]:
    return list(map(str, found(root).missing))


@pytest.mark.parametrize("name", [*NAMES, *ROCKSDB])
def test_what_spark_wrote_lacks_nothing(name: str, tmp_path: Path) -> None:
    for version in releases_with(name):
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
        (partition / "3.snapshot").touch()
    assert missing(root) == []
    (root / "state/0/1/3.snapshot").unlink()
    assert missing(root) == ["state/0/1/1.delta"]


def test_a_gap_between_changelogs(tmp_path: Path) -> None:
    root = written_by("4.3.0", "window_aggregation-rocksdb", tmp_path)
    for path in root.glob("state/0/[01]/[34].zip"):
        path.rename(path.with_suffix(".changelog"))
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
    assert missing(write(tmp_path, {"metadata": '{"id": "5a1d"}', **logs})) == []


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
    write(small(tmp_path), {f"state/{file}": b"" for file in files})
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
        "missing state/0/1/4.delta No Spark can load version 4 of the state, which the next micro-batch needs. Put back what is missing "
        "from a copy of the checkpoint. Or remove commits/3: micro-batch 3 runs again, and its rows come out again."
        in inspected()
    )
    to = inspected("--to", "4.3")
    assert (
        "refused with CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_NOT_EXISTS: a file is missing without which" in to
    )
    assert "shown by the case recovery/state-delta-gone-is-refused" in to
    assert "no known reason" not in to
    assert json.loads(inspected("--json"))["missing"] == ["state/0/1/4.delta"]
    shutil.rmtree(root / "state")
    assert "Without one, the query needs a new checkpoint." in inspected()
    assert (
        "refused with STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY: the folder `state` is missing"
        in inspected("--to", "4.3")
    )
    assert "refused: the folder `state` is missing" in inspected("--to", "4.1")
