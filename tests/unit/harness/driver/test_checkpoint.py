"""Damage to a checkpoint: what is spoilt, and that nothing else is."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.driver.checkpoint import CheckpointLogs, NothingToDamage, newest_path, state_as_constants
from harness.driver.files import LocalFiles

OFFSETS = 'v1\n{"batchWatermarkMs":1000,"conf":{}}\n{"logOffset":0}'


@pytest.fixture
def checkpoint(tmp_path):
    folder = tmp_path / "checkpoint"
    for name, content in {
        "metadata": '{"id":"x"}',
        "offsets/0": OFFSETS,
        "offsets/1": OFFSETS,
        "offsets/.1.crc": "sum",
        "commits/0": 'v1\n{"nextBatchWatermarkMs":1000}',
        "state/0/0/1.delta": "12345678",
        "state/0/0/2.delta": "12345678",
        "state/0/1/2.delta": "12345678",
        "state/0/1/_metadata/schema": "schema",
        "state/1/0/left-keyToNumValues/2.changelog": "12345678",
        "state/1/0/left-keyToNumValues/10.zip": "12345678",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return CheckpointLogs(str(folder), LocalFiles())


def files(checkpoint):
    root = Path(checkpoint.path)
    return {str(path.relative_to(root)): path.stat().st_size for path in root.rglob("*") if path.is_file()}


def damaged(checkpoint, how, part):
    before = files(checkpoint)
    checkpoint.damage(how, part)
    after = files(checkpoint)
    return {name: after.get(name) for name in before if after.get(name) != before[name]}


NEWEST = ("state/0/0/2.delta", "state/0/1/2.delta", "state/1/0/left-keyToNumValues/10.zip")


@pytest.mark.parametrize(
    ("how", "part", "changed"),
    [
        ("empty", "offsets", {"offsets/1": 0, "offsets/.1.crc": None}),  # the checksum would tell
        ("truncated", "commit", {"commits/0": len('v1\n{"nextBatchWatermarkMs":1000}') // 2}),
        ("gone", "metadata", {"metadata": None}),
        ("gone", "delta", dict.fromkeys(NEWEST)),
    ],
)
def test_only_the_newest_of_what_is_named_is_damaged(checkpoint, how, part, changed):
    assert damaged(checkpoint, how, part) == changed


def test_the_newest_snapshot_of_every_state_store(checkpoint):
    (Path(checkpoint.path) / "state/0/0/1.snapshot").write_text("12345678")
    (Path(checkpoint.path) / "state/1/0/left-keyToNumValues/9.zip").write_text("12345678")
    assert damaged(checkpoint, "truncated", "snapshot") == {
        "state/0/0/1.snapshot": 4,
        "state/1/0/left-keyToNumValues/10.zip": 4,
    }


def test_all_state_and_nothing_else(checkpoint):
    before = files(checkpoint)
    gone = damaged(checkpoint, "gone", "state")
    assert gone == {name: None for name in before if name.startswith("state/")}
    assert len(gone) == 6


def test_what_is_not_there_cannot_be_damaged(tmp_path):
    with pytest.raises(NothingToDamage, match="has no commit to damage"):
        CheckpointLogs(str(tmp_path), LocalFiles()).damage("gone", "commit")


def test_a_moved_checkpoint_is_in_another_folder_alone(checkpoint):
    before = files(checkpoint)
    there = checkpoint.moved(copied=False)
    assert there.path != checkpoint.path
    assert files(there) == before
    assert not Path(checkpoint.path).exists()
    again = there.moved(copied=False)
    assert newest_path(str(Path(checkpoint.path).parent), LocalFiles()) == again.path


def test_a_copy_has_every_file_but_the_checksums(checkpoint):
    before = files(checkpoint)
    copy = checkpoint.moved(copied=True)
    assert files(checkpoint) == before
    assert files(copy) == {name: size for name, size in before.items() if not name.endswith(".crc")}
    assert newest_path(str(Path(checkpoint.path).parent), LocalFiles()) == copy.path


def test_a_checkpoint_is_set_aside_in_place_of_the_one_before(checkpoint):
    before = files(checkpoint)
    aside = Path(checkpoint.path).parent / "before"
    aside.mkdir()
    (aside / "metadata").write_text("older")
    checkpoint.set_aside(str(aside))
    assert files(CheckpointLogs(str(aside), LocalFiles())) == before
    assert checkpoint.watermark() == 0


def test_the_folder_of_a_query_that_has_never_run_is_the_first(tmp_path):
    assert newest_path(str(tmp_path), LocalFiles()) == str(tmp_path / "checkpoint")


def test_the_state_is_read_as_constants():
    read = SimpleNamespace(collect=lambda: ["row"], schema="schema")
    session = SimpleNamespace(
        read=SimpleNamespace(
            format=lambda name: SimpleNamespace(
                load=lambda path: read if (name, path) == ("statestore", "/c") else None
            )
        ),
        createDataFrame=lambda rows, schema: (rows, schema),
    )
    assert state_as_constants(session, "/c") == (["row"], "schema")


def test_directories_are_made_for_a_new_query_only(tmp_path):
    new = CheckpointLogs(str(tmp_path / "checkpoint"), LocalFiles())
    new.make_directories()
    made = {str(path.relative_to(new.path)) for path in Path(new.path).rglob("*")}
    assert made == {"commits", "offsets", "sources", "sources/0", "state"}
    new.damage("gone", "state")
    new.make_directories()
    assert not (Path(new.path) / "state").exists()
    assert new.watermark() == 0
