"""What `explain --checkpoint` says of the state that waits, alone and beside the progress of the same query."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.checkpoints import QUERY_ID, schema_v2, small, state_file, unsafe_row, write, written_by
from tests.support.commands import answer_of
from tests.unit.conformance.checkpoints.test_state_rows import GOOD, WINDOW, aggregation, columns, key_of, noon
from tests.unit.conformance.query_progress.lines import progress

pytest.importorskip("pyarrow")
Capture = pytest.CaptureFixture[str]


def said(capsys: Capture, root: Path, *arguments: str) -> str:
    """The answer, whose lines may be wrapped, as a single line."""
    code, text, errors = answer_of(capsys, "explain", "--checkpoint", str(root), *arguments)
    assert (code, errors) == (0, "")
    assert len(text.splitlines()) <= 25
    return " ".join(text.split())


def test_windows_and_what_releases_them(tmp_path: Path, capsys: Capture) -> None:
    files = {
        "1.delta": state_file(*((key_of(who, start), unsafe_row(1)) for who in ("ada", "bob") for start in (0, 10, 20)))
    }
    answer = said(capsys, aggregation(tmp_path, files, watermark_minutes=20))
    assert answer == (
        f"state in {tmp_path}: after micro-batch 0; the next has the watermark 1970-01-01T00:20 "
        "operator 0: 6 rows in 3 windows, 1970-01-01T00:00 – 1970-01-01T00:30; the next micro-batch releases 4 (0 in complete mode); "
        "a watermark of 1970-01-01T00:30 releases all"
    )


def test_rows_that_the_watermark_has_passed_and_rows_without_event_time(tmp_path: Path, capsys: Capture) -> None:
    files = {"1.delta": state_file(*((key_of("ada", start), unsafe_row(1)) for start in (None, 0, 10)))}
    answer = said(capsys, aggregation(tmp_path, files, watermark_minutes=20, ran_with=10))
    assert answer.endswith(
        "00:20; the next micro-batch releases at most 1; stay although the watermark has passed them: 1 (the output mode is complete, "
        "or the watermark of this operator is lower); without an event time, never released: 1"
    )


def test_state_without_event_time_is_never_released(tmp_path: Path, capsys: Capture) -> None:
    root = aggregation(tmp_path, {"1.delta": state_file((unsafe_row("ada"), unsafe_row(1)))}, watermark_minutes=20)
    plain = schema_v2(columns(("who", "string", False)), columns(("count", "long", False)))
    answer = said(capsys, write(root, {"state/0/0/_metadata/schema": plain}))
    assert answer.endswith(
        "operator 0: 1 row; no column has an event time with a watermark: no watermark ever releases them"
    )


def test_the_timeouts_of_state_functions_may_be_of_either_clock(tmp_path: Path, capsys: Capture) -> None:
    rows = state_file(
        *((unsafe_row(who), unsafe_row(None, at)) for who, at in (("a", 60_000), ("b", 120_000), ("c", -1)))
    )
    value = columns(
        ("groupState", json.loads(columns(("n", "long", False))), False), ("timeoutTimestamp", "integer", False)
    )
    root = aggregation(tmp_path, {"1.delta": rows}, watermark_minutes=20)
    answer = said(
        capsys, write(root, {"state/0/0/_metadata/schema": schema_v2(columns(("who", "string", False)), value)})
    )
    assert answer.endswith(
        "operator 0: 3 rows, timeout 1970-01-01T00:01 – 1970-01-01T00:02; the checkpoint does not say "
        "whether of event time or of the clock"
    )


def test_state_of_functions_is_not_released_by_the_window_in_its_key(tmp_path: Path, capsys: Capture) -> None:
    root = aggregation(tmp_path, {"1.delta": state_file((unsafe_row((0, 60_000_000)), unsafe_row(None, -1)))})
    state = ("groupState", json.loads(columns(("n", "long", False))), False)
    key, timeout = columns(("window", WINDOW, True)), ("timeoutTimestamp", "integer", False)
    for value, says in (
        ((state, timeout), "1 row; the checkpoint does not say"),
        ((state,), "1 row; no column has an event time"),
    ):
        write(root, {"state/0/0/_metadata/schema": schema_v2(key, columns(*value))})
        assert f"operator 0: {says}" in said(capsys, root)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "outer_join-hdfs",
            "symmetricHashJoin: 3 rows: left 2 rows, event time 2024-01-01T12:30 – 2024-01-01T12:31, right 1 row",
        ),
        (
            "within_watermark-hdfs",
            "dedupeWithinWatermark: 1 row, expiry 2024-01-01T12:40; the next micro-batch releases 0",
        ),
        ("window_aggregation-rocksdb", "stateStoreSave: not read: its state store is RocksDB"),
    ],
)
def test_an_operator_is_named(name: str, says: str, tmp_path: Path, capsys: Capture) -> None:
    assert f"operator 0 {says}" in said(capsys, written_by("4.3.0", name, tmp_path))


def test_a_query_without_state_and_one_that_committed_nothing(tmp_path: Path, capsys: Capture) -> None:
    assert said(capsys, written_by("4.3.0", "filter_only-hdfs", tmp_path)).endswith(" no operator keeps state")
    assert ": no micro-batch is committed" in said(capsys, small(tmp_path / "c", committed=False))


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch, lambda path: None], ids=["empty", "file", "nothing"])
def test_what_is_no_checkpoint_is_refused(make: Callable[[Path], Any], tmp_path: Path, capsys: Capture) -> None:
    make(tmp_path / "dir")
    code, text, errors = answer_of(capsys, "explain", "--checkpoint", str(tmp_path / "dir"))
    assert (code, text) == (2, "")
    assert f"{tmp_path / 'dir'}: " in errors.replace("\n", "")
    assert "Traceback" not in errors


def with_progress(tmp_path: Path, **more: Any) -> tuple[str, str]:
    log = tmp_path / "progress.jsonl"
    log.write_text(json.dumps(progress(0, **{"id": QUERY_ID, **more})) + "\n")
    return "--progress", str(log)


def test_progress_that_counts_other_rows_is_named(tmp_path: Path, capsys: Capture) -> None:
    root = aggregation(tmp_path / "c", {"1.delta": GOOD}, watermark_minutes=5)
    for rows, says in ((1, ""), (4, "; progress counts 4")):
        answer = said(capsys, root, *with_progress(tmp_path, state={"stateStoreSave": rows}))
        assert f" releases all{says} progress does not tell" in answer
        assert answer.startswith('query "orders"')


def test_progress_of_another_micro_batch_or_query_is_not_compared(tmp_path: Path, capsys: Capture) -> None:
    root = aggregation(tmp_path / "c", {"1.delta": GOOD, "2.delta": state_file()})
    answer = said(capsys, root, *with_progress(tmp_path, state={"stateStoreSave": 4}))
    assert "progress ends with micro-batch 0: the rows that progress counts are not compared" in answer
    answer = said(capsys, root, *with_progress(tmp_path, state={"stateStoreSave": 4}, id="other"))
    assert "this progress is not of its query, id 5a1d0000" in answer


def test_programs_and_the_page_get_the_same(tmp_path: Path, capsys: Capture) -> None:
    root = written_by("4.3.0", "window_aggregation-hdfs", tmp_path)
    code, text, _ = answer_of(capsys, "explain", "--checkpoint", str(root), "--json", "-o", str(tmp_path / "page"))
    answer = json.loads(text)
    (operator,) = answer["state"]["operators"]
    assert (code, answer["queries"], answer["state"]["next_watermark"]) == (0, [], noon(21))
    assert (operator["name"], operator["rows"]) == ("stateStoreSave", 2)
    assert (operator["stores"][0]["windows"], operator["stores"][0]["newest_ms"]) == (1, noon(40))
    page = (tmp_path / "page" / "explanation.html").read_text()
    assert "operator 0 stateStoreSave: 2 rows in 1 window, 2024-01-01T12:30 – 2024-01-01T12:40" in page


@pytest.mark.parametrize("also", [("--delays", "--progress", "x"), ("case",), ("jobs.py",)])
def test_a_checkpoint_goes_with_no_other_question(also: tuple[str, ...], capsys: Capture) -> None:
    assert answer_of(capsys, "explain", "--checkpoint", "dir", *also)[0] == 2


def test_a_checkpoint_in_an_object_store_is_read(tmp_path: Path, capsys: Capture) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    root = written_by("4.3.0", "window_aggregation-hdfs", tmp_path)
    for path in (path for path in root.rglob("*") if path.is_file()):
        memory.pipe(f"/waiting/{path.relative_to(root)}", path.read_bytes())
    code, text, _ = answer_of(capsys, "explain", "--checkpoint", "memory://waiting")
    assert (code, text.splitlines()[0][:26]) == (0, "state in memory://waiting:")
    assert "operator 0 stateStoreSave: 2 rows in 1 window" in " ".join(text.split())
    assert answer_of(capsys, "explain", "--checkpoint", "memory://waiting-for-nothing")[0] == 2
