"""What waits in the state of checkpoints that an engine wrote, against Spark's own reader of the state, its progress and its event log."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from operator import gt
from pathlib import Path

import pytest

from conformance.checkpoints.files import open_files
from conformance.checkpoints.state_rows import OperatorRows, SparkReader, TimesInState
from conformance.query_progress.answer import explain_files
from conformance.query_progress.waiting import waiting_state
from conformance.runner.resources import EngineUse
from conformance.runner.state_reader import spark_reader
from harness.environments.provision import prepare
from harness.targets.targets import Targets
from tests.support.checkpoints import written_by
from tests.support.effort import FULL
from tools.checkpoints import write_checkpoints

CODECS = {"4.3.0": ["", "zstd", "lz4", "rolled"], "3.5.9": ["zstd", "lz4"], "3.0.3": [""]}
RUNS = [(version, codec) for version, codecs in CODECS.items() for codec in codecs]


@pytest.mark.parametrize(("version", "codec"), RUNS if FULL else [("4.3.0", "zstd")])
def test_the_state_is_what_spark_itself_reads_and_counts(version: str, codec: str, tmp_path: Path) -> None:
    (target,) = Targets.load().select([version])
    environment = prepare(target)
    command = [environment.python, Path(__file__).with_name("waiting_here.py"), tmp_path / "run", codec]
    done = subprocess.run(command, cwd=tmp_path, env=environment.environ(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    run = tmp_path / "run"
    logged = explain_files([run / "events"], lambda path: path.open("rb"))
    assert logged.skipped.count == 0
    by_spark, wrong = json.loads((run / "seen.json").read_text()), {}
    for progress in sorted(run.glob("*.jsonl")):
        name, files = progress.stem, open_files(str(run / progress.stem))
        answer = explain_files([progress], lambda path: path.open("rb"))
        (query,) = (each.query for each in answer.queries)
        waiting = waiting_state(files, [query])
        counted = [track.rows for track in waiting.progress or ()]
        rows = [operator.rows for operator in waiting.operators]
        ends = [
            (
                operator.rows,
                min((store.oldest_ms for store in operator.stores if store.oldest_ms is not None), default=None),
                max((store.newest_ms for store in operator.stores if store.newest_ms is not None), default=None),
            )
            for operator in waiting.operators
        ]
        if name in by_spark and ends != [tuple(each) for each in by_spark[name]]:
            wrong[name] = ends, by_spark[name]
        if rows != counted:
            wrong[f"{name} by progress"] = rows, counted
        (of_log,) = (each for each in logged.queries if each.query.name == name)
        if [cause.id for cause in of_log.causes] != [cause.id for cause in answer.queries[0].causes]:
            wrong[f"{name} by event log"] = of_log.causes, answer.queries[0].causes
        if name not in ("join", "complete") and version != "3.0.3":
            for batch, with_rows, released, removed in released_and_removed(run / name, progress):
                # A micro-batch may also remove rows that it brought itself; an operator above another gets such rows from that.
                if any(map(gt, released, removed)) or (not with_rows and released[-1] != removed[-1]):
                    wrong[f"{name} before micro-batch {batch}"] = released, removed
    assert len(logged.queries) == len(list(run.glob("*.jsonl"))) >= 7
    assert wrong == {}


def released_and_removed(checkpoint: Path, progress: Path) -> Iterator[tuple[int, bool, list[int], list[int]]]:
    """For each micro-batch but the first: whether it has rows, how many rows of each operator it releases as the state before it says,
    and how many it removed."""
    ran = [each for each in map(json.loads, progress.read_text().splitlines()) if "addBatch" in each["durationMs"]]
    for after in ran[:0:-1]:
        batch = after["batchId"]
        for path in (path for log in ("offsets", "commits") for path in (checkpoint / log).glob(f"*{batch}*")):
            path.unlink()
        operators = waiting_state(open_files(str(checkpoint))).operators
        released = [sum(store.released or 0 for store in operator.stores) for operator in operators]
        with_rows = any(source["numInputRows"] for source in after["sources"])
        yield batch, with_rows, released, [operator["numRowsRemoved"] for operator in after["stateOperators"]]


QUERIES = ("window_aggregation", "deduplication", "within_watermark", "outer_join", "session_window")


@pytest.mark.parametrize("version", ["4.3.0", "3.5.9"] if FULL else ["3.5.9"])
def test_state_in_rocksdb_is_as_that_of_the_same_query_in_files(version: str, tmp_path: Path) -> None:
    newest, writer = (Targets.load().select([name])[0] for name in ("4.3.0", version))
    write_checkpoints(writer, [f"{query}-rocksdb" for query in QUERIES], tmp_path / "rocksdb")
    seen, expected = {}, {}
    with spark_reader(newest, EngineUse(), lambda _: None) as reader:
        for query in QUERIES:
            seen[query] = unchanged(tmp_path / "rocksdb" / f"{query}-rocksdb" / "checkpoint", reader)
            expected[query] = waiting_state(open_files(str(written_by(version, f"{query}-hdfs", tmp_path)))).operators
    assert all(operator.rows for (operator,) in expected.values())
    if version < "4":
        # Without the metadata that 4.0 writes, Spark does not know how the keys of sessions are encoded.
        (sessions,), _ = seen.pop("session_window"), expected.pop("session_window")
        assert sessions.rows is None
        assert "[STATE_STORE_KEY_ROW_FORMAT_VALIDATION_FAILURE]" in sessions.unread
    assert seen == expected
    root = tmp_path / "rocksdb" / "outer_join-rocksdb" / "checkpoint"
    for path in root.rglob("*.sst"):
        path.write_bytes(bytes(path.stat().st_size))
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    with spark_reader(newest, EngineUse(), lambda _: None) as reader:
        (damaged,) = unchanged(root, reader)
    assert damaged.rows is None
    assert "Spark 4.3.0 does not read it: " in damaged.unread


@pytest.mark.parametrize("version", ["4.3.0", "4.0.5"] if FULL else ["4.3.0"])
def test_variables_and_timers_are_those_that_a_processor_set(version: str, tmp_path: Path) -> None:
    newest, writer = (Targets.load().select([name])[0] for name in ("4.3.0", version))
    environment = prepare(writer)
    command = [environment.python, Path(__file__).with_name("variables_here.py"), tmp_path]
    done = subprocess.run(command, cwd=tmp_path, env=environment.environ(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    with spark_reader(newest, EngineUse(), lambda _: None) as reader:
        (operator,) = unchanged(tmp_path / "checkpoint", reader)
    assert operator.unread == ""
    assert {(store.name, store.rows, store.keys) for store in operator.stores[:-1]} == {
        ("number", 3, 3),
        ("times", 4, 3),
        ("texts", 4, 3),
    }
    noon = 1_704_110_400_000
    first, last = (noon + minutes * 60_000 for minutes in (10, 31))
    assert operator.stores[-1] == TimesInState("timers", 4, "timer", None, first, last, released=1, keys=3)


def unchanged(checkpoint: Path, reader: SparkReader) -> tuple[OperatorRows, ...]:
    """What Spark's own reader says of a checkpoint, which it must not change."""
    before, operators = content(checkpoint), waiting_state(open_files(str(checkpoint)), spark=reader).operators
    assert content(checkpoint) == before
    return operators


def content(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
