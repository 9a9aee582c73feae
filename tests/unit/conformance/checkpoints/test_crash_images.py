"""The images of a crash, from recordings of a few operations."""

import pytest

from conformance.checkpoints.crash_images import (
    FAULTS,
    FileContent,
    FileOperation,
    FolderContent,
    Recording,
    crash_images,
    images_between,
)

STATE, COMMIT = "checkpoint/state/0/0/2.delta", "checkpoint/commits/1"


def file(text):
    return FileContent(text.encode(), 7)


def put(path, text, temporary):
    """What Spark does to write a file: under a temporary name, then renamed."""
    return [
        FileOperation("create", temporary),
        FileOperation("write", temporary, file(text)),
        FileOperation("rename", temporary, to=path),
    ]


def batch(id, rows):
    """The operations of a micro-batch whose rows arrive before."""
    log = [("offsets", rows), ("state", rows), ("commits", "done")]
    paths = {"offsets": f"checkpoint/offsets/{id}", "state": f"checkpoint/state/0/0/{id + 1}.delta"}
    paths["commits"] = f"checkpoint/commits/{id}"
    arrival = FileOperation("rename", "streams/.staging/1.json", to=f"streams/events/{id}.json")
    found = [arrival]
    for name, text in log:
        path = paths[name]
        folder, _, last = path.rpartition("/")
        found += put(path, text, f"{folder}/.{last}.1a2b.tmp")
    return found


BEFORE = FolderContent({"streams/.staging/1.json": file("{}"), "checkpoint/metadata": file("id")})


@pytest.fixture
def recording():
    return Recording(BEFORE, (*batch(0, "a"), *batch(1, "bb"), *batch(2, "c")))


def images(recording, **wanted):
    window = recording.window(1, 1)
    found = crash_images(recording, window, recording.next_rows(window))
    return [one for one in found if all(getattr(one, name) == value for name, value in wanted.items())]


def test_a_window_reaches_from_the_arrival_of_its_rows_to_that_of_the_next(recording):
    window = recording.window(1, 1)
    assert (window.start, window.stop) == (11, 20)
    assert recording.operations[window][0].path.startswith("checkpoint/offsets/.1.")
    assert recording.operations[window][-1].to == COMMIT
    assert recording.window(2, 2).stop == len(recording.operations)


def test_a_window_without_arrivals_reaches_from_the_commit_before_to_the_next_plan():
    """Records of a topic leave no file."""
    operations = [one for id in range(3) for one in batch(id, "r")[1:]]
    recording = Recording(BEFORE, tuple(operations))
    window = recording.window(1, 1)
    expected = ["checkpoint/commits/0", COMMIT]
    assert [recording.operations[at].result for at in (window.start - 1, window.stop - 1)] == expected
    assert recording.window(0, 1) == slice(0, window.stop)
    assert recording.window(2, 2) == slice(window.stop, len(operations))


def test_a_micro_batch_that_is_not_there_is_named(recording):
    with pytest.raises(ValueError, match="no micro-batch 9"):
        recording.window(1, 9)


def test_every_prefix_is_an_image(recording):
    killed = images(recording, fault="killed")
    assert [one.number for one in killed] == list(range(10))
    assert COMMIT not in killed[8].content.files
    assert killed[9].content.files[COMMIT] == file("done")
    # What a process did before it was killed is all there.
    assert killed[4].content.files["checkpoint/offsets/1"] == file("bb")
    assert killed[4].content.files["checkpoint/state/0/0/.2.delta.1a2b.tmp"].content == b""
    # Neither an earlier nor a later micro-batch is touched.
    assert all("checkpoint/commits/0" in one.content.files for one in killed)
    assert not any("streams/events/2.json" in one.content.files for one in killed)


def test_a_sink_has_had_the_rows_once_the_commit_is_begun(recording):
    killed = images(recording, fault="killed")
    assert [sorted(one.emitted) for one in killed] == [[0]] * 7 + [[0, 1]] * 3


def test_the_last_file_may_be_torn_or_empty(recording):
    torn = {one.operation: one for one in images(recording, fault="torn")}
    (renamed,) = (one for operation, one in torn.items() if operation.endswith(f"to {COMMIT}"))
    assert renamed.content.files[COMMIT].content == b"do"
    (empty,) = (one for one in images(recording, fault="empty") if one.operation.endswith(f"to {STATE}"))
    assert empty.content.files[STATE].content == b""
    assert COMMIT not in empty.content.files


def test_a_lost_or_cut_off_file_is_missed_after_the_commit(recording):
    for fault, content in (("lost", None), ("unsynced", b"b")):
        (image,) = (one for one in images(recording, fault=fault) if one.operation.endswith(f"to {STATE}"))
        found = image.content.files.get(STATE)
        assert (found and found.content) == content
        assert COMMIT in image.content.files
        # Without the commit it is a prefix, and with half of it the last file is torn.
        assert len(images(recording, fault=fault)) == 2


def test_a_stale_file_takes_the_place_of_the_replays(recording):
    (image,) = images(recording, fault="stale")
    assert image.overlay.files == {STATE: file("bb")}
    assert COMMIT not in image.content.files
    assert STATE in image.content.files


OTHER = "checkpoint/state/0/1/2.delta"
"""Of another partition, written after ``STATE``."""


@pytest.fixture
def two_partitions():
    operations = batch(1, "bb")
    at = next(number for number, one in enumerate(operations) if one.result == STATE) + 1
    other = put(OTHER, "c", "checkpoint/state/0/1/.2.delta.1a2b.tmp")
    return Recording(BEFORE, (*batch(0, "a"), *operations[:at], *other, *operations[at:]))


def test_a_file_that_was_not_created_is_missed_before_the_commit(two_partitions):
    (image,) = images(two_partitions, fault="failed")
    assert {STATE, OTHER, COMMIT} & image.content.files.keys() == {OTHER}
    # Without the last file of the state it is a prefix.
    assert image.operation.endswith(f"to {STATE}")


def test_only_files_of_the_micro_batch_that_failed_are_of_its_first_attempt(recording):
    """Those of a micro-batch that is committed would be lost."""
    found = list(crash_images(recording, recording.window(1, 2)))
    for fault in ("late", "stale"):
        of_file = {one.operation.rpartition(" ")[2]: one for one in found if one.fault == fault}
        assert of_file.keys() == {STATE, "checkpoint/state/0/0/3.delta"}
        assert [sorted(one.emitted) for one in of_file.values()] == [[0], [0, 1]]
        assert [COMMIT in one.content.files for one in of_file.values()] == [False, True]
        assert STATE in of_file["checkpoint/state/0/0/3.delta"].content.files
    assert not [one for one in found if one.fault == "failed"]  # each is a prefix


def test_a_file_that_is_closed_late_takes_the_place_of_the_replays(two_partitions):
    late = {one.operation.rpartition(" ")[2]: one for one in images(two_partitions, fault="late")}
    assert late.keys() == {STATE, OTHER}
    assert late[STATE].overlay == FolderContent({STATE: file("bb")})
    assert {STATE, OTHER, COMMIT} & late[STATE].content.files.keys() == {OTHER}


def test_checksums_of_spark_are_files_of_their_own_and_those_of_hadoop_go_with_theirs(recording):
    """Spark: ``2.delta.crc`` (``ChecksumCheckpointFileManager``); Hadoop: ``.2.delta.crc`` (``ChecksumFileSystem``)."""
    folder = STATE.rpartition("/")[0]
    of_spark, of_hadoop = f"{STATE}.crc", f"{folder}/.2.delta.crc"
    operations = list(recording.operations)
    at = next(number for number, one in enumerate(operations) if one.result == STATE) + 1
    operations[at:at] = [
        *put(of_hadoop, "h", f"{folder}/..2.delta.1a2b.tmp.crc"),
        *put(of_spark, "s", f"{folder}/.2.delta.crc.3c4d.tmp"),
    ]
    found = Recording(BEFORE, tuple(operations))
    stale = {one.operation.rpartition(" ")[2]: set(one.overlay.files) for one in images(found, fault="stale")}
    assert stale == {STATE: {STATE, of_hadoop}, of_spark: {of_spark}}
    lost = {one.operation.rpartition(" ")[2]: one.content.files for one in images(found, fault="lost")}
    assert lost.keys() == {"checkpoint/offsets/1", STATE, of_spark}
    assert {STATE, of_hadoop, of_spark} & lost[STATE].keys() == {of_spark}


def test_equal_directories_are_one_image(two_partitions):
    found = images(two_partitions)
    assert {one.fault for one in found} == set(FAULTS) - {"arrived"}
    assert len({(one.content.digest, one.overlay and one.overlay.digest) for one in found}) == len(found)


def test_between_two_micro_batches_a_query_may_stop_without_a_crash(recording):
    (image,) = images_between(recording, recording.window(1, 1))
    assert COMMIT in image.content.files
    both = list(images_between(recording, recording.window(1, 2)))
    assert [sorted(one.emitted) for one in both] == [[0, 1], [0, 1, 2]]


def test_a_folder_is_written_as_it_was_read(tmp_path):
    content = FolderContent({"a/b": FileContent(b"\x00x", 1_000_000_007)}, frozenset({"a", "empty"}))
    content.write(tmp_path / "copy")
    assert FolderContent.read(tmp_path / "copy") == content
    assert FolderContent.read(tmp_path / "nothing") == FolderContent()


def test_operations_change_what_is_below_a_folder():
    content = FolderContent({"a/b/c": file("1"), "a/bc": file("2")}, frozenset({"a", "a/b"}))
    moved = content.after(FileOperation("rename", "a/b", to="d"))
    assert moved == FolderContent({"d/c": file("1"), "a/bc": file("2")}, frozenset({"a", "d"}))
    assert content.after(FileOperation("remove", "a/b")) == FolderContent({"a/bc": file("2")}, frozenset({"a"}))
    made = content.after(FileOperation("make-folder", "e"))
    assert made.folders == {"a", "a/b", "e"}


def test_a_power_failure_damages_any_of_the_files_that_were_written(recording):
    found = images(recording, fault="power")
    assert 3 <= len(found) <= 12
    start = recording.window(1, 1).start
    damaged = [
        [
            name
            for name, whole in recording.content_after(start + one.number).files.items()
            if one.content.files.get(name) != whole
        ]
        for one in found
    ]
    assert max(map(len, damaged)) > 1
    assert all(path.startswith("checkpoint/") for paths in damaged for path in paths)
    assert {1 in one.emitted for one in found} == {True, False}
    # Of what earlier micro-batches wrote, at most one file is damaged, and in most images none.
    earlier = recording.content_after(start).files
    damaged_earlier = [{name for name in earlier if one.content.files.get(name) != earlier[name]} for one in found]
    assert 0 < sum(map(len, damaged_earlier)) < len(found) / 2
    assert max(map(len, damaged_earlier)) == 1


def test_a_power_failure_may_undo_the_removal_of_a_file(recording):
    """Spark purges its logs once a micro-batch is planned."""
    purged = "checkpoint/offsets/0"
    at = next(number for number, one in enumerate(recording.operations) if one.result == "checkpoint/offsets/1") + 1
    operations = recording.operations[:at], recording.operations[at:]
    removed = Recording(BEFORE, (*operations[0], FileOperation("remove", purged), *operations[1]))
    found = [one for one in images(removed, fault="power") if one.number > 4]
    again = [one for one in found if purged in one.content.files]
    assert 0 < len(again) < len(found)
    assert all(f"{purged} there again" in one.operation for one in again)


@pytest.fixture
def placed():
    """Rows that are staged and put in place, as the driver does."""
    operations = []
    for id in range(3):
        staged = f"streams/.staging/{id}.json"
        arrival = [FileOperation("write", staged, file(f"row {id}")), *batch(id, "r")]
        arrival[1] = FileOperation("rename", staged, to=f"streams/events/{id}.json")
        operations += arrival
    return Recording(FolderContent(), tuple(operations))


def test_the_next_rows_may_arrive_before_the_restart(placed):
    killed, arrived = (images(placed, fault=fault) for fault in ("killed", "arrived"))
    assert len(killed) == len(arrived) > 5
    for without, with_them in zip(killed, arrived, strict=True):
        assert "streams/events/2.json" not in without.content.files
        assert with_them.content == without.content.with_file("streams/events/2.json", file("row 2"))
        assert (with_them.number, with_them.emitted) == (without.number, without.emitted)


def test_the_last_rows_are_followed_by_none(placed):
    window = placed.window(2, 2)
    assert not placed.next_rows(window)
    assert "arrived" not in {one.fault for one in crash_images(placed, window, placed.next_rows(window))}


def test_where_rows_arrive_a_query_may_also_stop_before_the_first_micro_batch(placed):
    window = placed.window(1, 1)
    between = list(images_between(placed, window, placed.next_rows(window)))
    expected = [("arrived", [0]), ("killed", [0, 1]), ("arrived", [0, 1])]
    assert [(one.fault, sorted(one.emitted)) for one in between] == expected


def test_power_failures_are_drawn_from_one_seed(recording):
    assert [one.content.digest for one in images(recording, fault="power")] == [
        one.content.digest for one in images(recording, fault="power")
    ]
