"""What waits in the state of checkpoints that an engine wrote, against Spark's own reader of the state, its progress and its event log."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from operator import gt
from pathlib import Path

import pytest

from conformance.checkpoints.files import open_files
from conformance.query_progress.answer import explain_files
from conformance.query_progress.waiting import waiting_state
from harness.environments.provision import prepare
from harness.targets.targets import Targets
from tests.support.effort import FULL

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
