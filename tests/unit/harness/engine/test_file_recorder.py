"""The recorder sees real operations on real files, in their order."""

import os
import shutil
import sys
import threading
from functools import partial

import pytest

from conformance.checkpoints.crash_images import FileContent, FolderContent
from harness.engine import file_recorder
from harness.engine.file_recorder import CannotRecord, FileRecorder, RecordingIncomplete

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")


@pytest.fixture
def root(tmp_path):
    (tmp_path / "root" / "commits").mkdir(parents=True)
    (tmp_path / "root" / "metadata").write_text("id")
    return tmp_path / "root"


@pytest.fixture
def record(root, tmp_path):
    def during(what):
        keep = tmp_path / "keep"
        shutil.rmtree(keep, ignore_errors=True)
        keep.mkdir()
        before = FolderContent.read(root)
        with FileRecorder(root, keep) as recorder:
            what()
        return before, recorder.operations()

    return during


def test_a_file_that_is_renamed_into_its_place(root, record):
    def write():
        (root / "commits" / ".0.tmp").write_text("done")
        (root / "commits" / ".0.tmp").rename(root / "commits" / "0")

    _, found = record(write)
    assert [str(one) for one in found] == [
        "create commits/.0.tmp",
        "write commits/.0.tmp",
        "rename commits/.0.tmp to commits/0",
    ]
    assert found[1].file.content == b"done"
    assert found[1].file.modified == (root / "commits" / "0").stat().st_mtime_ns


def test_a_file_has_the_time_that_its_writer_sets_after_it_was_recorded(root, tmp_path):
    """A source reads a file again whose time differs from that in its log, once later files are a week younger."""
    (tmp_path / "keep").mkdir()
    written = threading.Event()

    class Watched(FileRecorder):
        def _written(self, path, *, guessed=False):
            super()._written(path, guessed=guessed)
            written.set()

    with Watched(root, tmp_path / "keep") as recorder:
        (root / "rows").write_text("a row")
        assert written.wait(60)
        os.utime(root / "rows", (7, 7))
        (root / "rows").rename(root / "visible")
    _, write, _ = recorder.operations()
    assert write.file == FileContent(b"a row", 7 * 10**9)


def test_a_file_that_was_there_before_may_be_written_again(root, record):
    _, found = record(lambda: (root / "metadata").write_text("other"))
    assert [str(one) for one in found] == ["write metadata"]
    assert found[0].file.content == b"other"


def test_a_file_that_is_removed_at_once_stays_empty_until_then(root, tmp_path):
    keep = tmp_path / "keep"
    keep.mkdir()
    with FileRecorder(root, keep) as recorder:
        for mask in (0x100, 0x08, 0x200):  # created, written and removed before anybody could look
            recorder._event("commits/.0.tmp.crc", mask, 0)
    assert [str(one) for one in recorder.operations()] == ["create commits/.0.tmp.crc", "remove commits/.0.tmp.crc"]


def test_new_folders_are_watched(root, record):
    def write(attempt):
        for number in range(20):
            folder = root / f"state-{attempt}" / "0" / str(number)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / ".1.tmp").write_text(str(number))
            (folder / ".1.tmp").rename(folder / "1.delta")

    # The recorder is as fast as the writer, or it says which folders should be there before.
    for attempt in range(8):
        try:
            before, found = record(partial(write, attempt))
        except RecordingIncomplete as incomplete:
            folders = incomplete.folders
            before, found = record(partial(write, attempt))
            assert f"state-{attempt}/0" in folders
        content = before
        for operation in found:
            content = content.after(operation)
        assert content == FolderContent.read(root)


def test_the_folder_itself_may_be_renamed(root, record, tmp_path):
    def write():
        (root / "commits" / "0").write_text("done")
        root.rename(tmp_path / "elsewhere")

    _, found = record(write)
    assert [str(one) for one in found] == ["create commits/0", "write commits/0"]
    assert found[1].file.content == b"done"


def test_operations_of_several_writers_lead_to_what_is_there(root, record):
    def write():
        threads = [threading.Thread(target=write_many, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def write_many(number):
        for version in range(50):
            part = root / "commits" / f".{number}-{version}.tmp"
            part.write_text(f"{number} {version}")
            part.rename(root / "commits" / f"{number}-{version % 5}")

    before, found = record(write)
    content = before
    for operation in found:
        content = content.after(operation)
    assert content == FolderContent.read(root)


def test_a_renamed_folder_goes_on_being_watched(root, record):
    def write():
        (root / "commits").rename(root / "done")
        (root / "done" / "1").write_text("x")

    _, found = record(write)
    assert [str(one) for one in found] == ["rename commits to done", "create done/1", "write done/1"]


def test_lost_events_are_not_passed_over(root, tmp_path):
    keep = tmp_path / "keep"
    keep.mkdir()
    recorder = FileRecorder(root, keep)
    with recorder:
        recorder._event("commits/0", 0x80, 7)  # its old name was never seen
    with pytest.raises(RecordingIncomplete, match="commits/0 was renamed from a folder that was not watched"):
        recorder.operations()
    with FileRecorder(root, keep) as recorder:
        recorder._event("commits/gone", 0x100, 0)
        recorder._event("commits/gone", 0x08, 0)
    with pytest.raises(RecordingIncomplete, match="commits/gone was gone too soon"):
        recorder.operations()


def test_another_system_says_what_is_needed(root, tmp_path, monkeypatch):
    monkeypatch.setattr(file_recorder.sys, "platform", "darwin")
    with pytest.raises(CannotRecord, match=r"this is darwin\. Linux"):
        FileRecorder(root, tmp_path)
