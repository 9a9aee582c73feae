"""What is compared of the checkpoints of two releases."""

import json
from pathlib import Path

import pytest

from tools.checkpoints import compared

ID, OTHER_ID = "5f0c9a6e-0000-4000-8000-0123456789ab", "5f0c9a6e-0000-4000-8000-ba9876543210"
OFFSETS = 'v1\n{{"batchWatermarkMs":1704109260000,"batchTimestampMs":{at},"conf":{{"a":"{a}"}}}}\n{{"logOffset":0}}'


def left(
    folder: Path, *, id: str = ID, at: int = 1795924561590, a: str = "1", state: bytes = b"\x00state"
) -> dict[str, object]:
    files = {
        "metadata": json.dumps({"id": id}).encode(),
        "offsets/0": OFFSETS.format(at=at, a=a).encode(),
        "sources/0/0": json.dumps(
            {"path": f"file://{folder}/clicks/0.json", "timestamp": at}, separators=(",", ":")
        ).encode(),
        "state/0/0/1.delta": state,
        "state/0/0/.1.delta.crc": id.encode(),
    }
    for name, content in files.items():
        path = folder / "count-hdfs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return compared(folder)


@pytest.mark.parametrize(
    ("change", "same_files", "settings"),
    [
        ({"id": OTHER_ID, "at": 1795924999999}, True, ["a=1"]),
        ({"a": "2"}, True, ["a=2"]),
        ({"state": b"\x00other"}, False, ["a=1"]),
    ],
)
def test_files_are_the_same_but_for_ids_times_folders_and_settings(
    tmp_path: Path, change: dict[str, object], same_files: bool, settings: list[str]
) -> None:
    one, other = left(tmp_path / "one"), left(tmp_path / "other", **change)  # type: ignore[arg-type]
    assert (one["digests"] == other["digests"], other["settings"]) == (same_files, settings)


def test_a_file_more_is_another_checkpoint(tmp_path: Path) -> None:
    one = left(tmp_path)
    (tmp_path / "count-hdfs" / "state" / "0" / "0" / "2.delta").write_bytes(b"")
    assert compared(tmp_path) != one
