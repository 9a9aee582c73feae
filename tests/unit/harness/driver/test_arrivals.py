"""Rows on their way into the engine: files of micro-batches, in an order that follows from nothing but their places."""

import pytest

from harness.driver import arrivals as module
from harness.driver.arrivals import FileArrivals, stream_at
from harness.driver.files import LocalFiles, keep
from harness.driver.request import StepRequest, StreamRequest

STREAMS = {"a": StreamRequest("v INT", 2), "b": StreamRequest("v INT", 1)}


def placed(folder, stream):
    """Name, time and text of the files of a stream, in the order in which Spark reads them."""
    files = [path for path in (folder / stream).iterdir() if path.is_file()]
    return sorted((int(path.stat().st_mtime), path.name, path.read_text()) for path in files)


def test_a_micro_batch_is_always_the_same_number_of_files(tmp_path):
    arrivals = FileArrivals(str(tmp_path), STREAMS, LocalFiles())
    staged = arrivals.stage([{"a": [[{"v": 1}]], "b": [[]]}, {"a": [[{"v": 2}], [{"v": None}]], "b": [[{"v": 4}]]}])
    assert placed(tmp_path, "a") == []
    arrivals.place(staged)
    assert [text for _, _, text in placed(tmp_path, "a")] == ['{"v": 1}\n', "\n", '{"v": 2}\n', '{"v": null}\n']
    assert [text for _, _, text in placed(tmp_path, "b")] == ["\n", '{"v": 4}\n']


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (None, {"maxFilesPerTrigger": "2"}),
        ({"latestFirst": "true"}, {"latestFirst": "true"}),
        ({"cleanSource": "archive"}, {"cleanSource": "archive", "sourceArchiveDir": "ROOT/.archive"}),
    ],
)
def test_a_stream_reads_as_many_files_as_an_arrival_has_unless_it_chooses_itself(tmp_path, given, options):
    class Reader(dict):
        format = schema = lambda self, _: self

        def options(self, **options):
            self.update(options)
            return self

        def load(self, path):
            return path, self

    arrivals = FileArrivals(str(tmp_path), {"a": StreamRequest("v INT", 2, options=given)}, LocalFiles())
    path, said = arrivals.read(Reader(), "a")
    assert path == str(tmp_path / "a")
    assert said == {
        **module.JSON_OPTIONS,
        **{key: value.replace("ROOT", str(tmp_path)) for key, value in options.items()},
    }


def test_times_are_those_of_micro_batches_and_go_on_after_another_process(tmp_path):
    arrivals = FileArrivals(str(tmp_path), STREAMS, LocalFiles())
    arrivals.place(arrivals.stage([{"a": [[], []]}, {"a": [[], []]}]))
    (tmp_path / ".staging" / "000009.json").write_text("of a process that was killed")
    again = FileArrivals(str(tmp_path), STREAMS, LocalFiles())
    again.place(again.stage([{"a": [[], []]}]))
    times = [time for time, _, _ in placed(tmp_path, "a")]
    assert [time - times[0] for time in times] == [0, 0, 1, 1, 2, 2]
    assert len({name for _, name, _ in placed(tmp_path, "a")}) == 6
    assert list((tmp_path / ".staging").iterdir()) == []


def test_files_that_are_made_again_have_the_names_of_the_first_and_are_younger_than_all_before(tmp_path):
    arrivals = FileArrivals(str(tmp_path), STREAMS, LocalFiles())
    arrivals.place(arrivals.stage([{"a": [[{"v": 1}], []], "b": [[]]}, {"a": [[{"v": 2}], []]}]))
    before, of_b = placed(tmp_path, "a"), placed(tmp_path, "b")
    arrivals.recreate({"a": [[{"v": 3}]]})
    after = placed(tmp_path, "a")
    assert [(name, text) for _, name, text in after] == [(before[0][1], '{"v": 3}\n'), (before[1][1], "\n")]
    assert min(after)[0] > max(before)[0]
    assert placed(tmp_path, "b") == of_b
    arrivals.recreate({"b": [[{"v": 4}], [{"v": 5}]]})
    names = [name for _, name, _ in placed(tmp_path, "b")]
    assert of_b[0][1] in names
    assert len({*names, *(name for _, name, _ in after)}) == 4


class Timeless(LocalFiles):
    """As an object store: a file is as old as its writing."""

    keeps_times = False

    def set_modified(self, path, seconds): ...


def test_where_times_are_those_of_writing_a_second_passes_between_micro_batches(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(module.time, "sleep", lambda seconds: seen.append((seconds > 1, len(placed(tmp_path, "a")))))
    arrivals = FileArrivals(str(tmp_path), STREAMS, Timeless())
    arrivals.place(arrivals.stage([{"a": [[], []], "b": [[]]}, {"a": [[], []], "b": [[]]}, {"a": [[], []]}]))
    assert seen == [(True, 2), (True, 4)]


@pytest.mark.parametrize(
    ("root", "described"),
    [
        ("/tmp/x/streams", "FileStreamSource[file:/tmp/x/streams/b]"),
        ("/tmp/a[1]?/streams", "FileStreamSource[file:/tmp/a[1]?/streams/b]"),
        ("file:///tmp/x/streams", "FileStreamSource[file:/tmp/x/streams/b]"),
        ("hdfs://host/x/streams", "FileStreamSource[hdfs://host:8020/x/streams/b]"),
        ("dbfs:/Volumes/x/streams", "FileStreamSource[dbfs:/Volumes/x/streams/b]"),
    ],
)
def test_whose_progress_it_is(root, described):
    assert stream_at(described, lambda name: f"{root}/{name}", ["a", "b", "ab"]) == "b"
    assert stream_at(described.replace("/b]", "/cb]"), lambda name: f"{root}/{name}", ["a", "b"]) is None


def test_rows_of_a_file_arrive_as_a_copy_of_it_and_are_not_copied_with_a_checkpoint(tmp_path):
    given, case = tmp_path / "many.jsonl", tmp_path / "case"
    given.write_text('{"v": 1}\n' * 200_000)
    step = StepRequest.parse({"action": "add", "batches": [{"b": [[{"v": 1}]]}], "files": {"b": str(given)}})
    arrivals = FileArrivals(str(case / "streams"), STREAMS, LocalFiles())
    arrivals.place(arrivals.stage(step.batches))
    (there,) = (path for path in (case / "streams" / "b").iterdir())
    assert there.read_bytes() == given.read_bytes()
    assert there.stat().st_mtime != given.stat().st_mtime
    (case / "checkpoint").mkdir()
    (case / "checkpoint" / "metadata").write_text("{}")
    keep(str(case), str(tmp_path / "kept"))
    kept = tmp_path / "kept"
    assert (kept / "streams" / "b" / there.name).samefile(there)
    assert not (kept / "checkpoint" / "metadata").samefile(case / "checkpoint" / "metadata")
