"""Rows that arrive as files and are answered with digests: the same for other orders, another where a row differs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conformance.suite import discovery
from harness.environments.provision import prepare
from harness.runtimes.local import LocalRuntime
from harness.scheduling.cell_run import CellTask, Limits
from harness.scheduling.scheduler import Scheduler
from harness.targets.targets import Targets
from tests.engine.remembering import Remembering

CASE = """
title: x
streams: {events: "at TIMESTAMP, who STRING, tags MAP<STRING, INT>, n DOUBLE"}
query: [{from: events}, {withWatermark: [at, 10 minutes]}, {select: [who, tags, n, n AS again]}]
steps: [{add: {events: [["12:00", a, {}, 1.5]]}}, {restart: graceful}, {add: {events: [["12:00", a, {}, 1.5]]}}]
"""
ROWS = [
    {"at": f"1970-01-01T12:{n % 60:02d}:00.000000Z", "who": f"w{n % 97}", "tags": {"n": n}, "n": n / 4}
    for n in range(20_000)
]


def test_a_digest_is_that_of_the_rows_whatever_their_order(tmp_path: Path) -> None:
    changed = [*ROWS[:-1], {**ROWS[-1], "n": -1.0}]
    seen = {
        line: _run(line, {"right": ROWS, "reversed": ROWS[::-1], "changed": changed}, tmp_path / line)
        for line in ("3.5.9", "4.3.0")
    }
    for runs in seen.values():
        (count, _), *others = runs["right"]
        assert (count, others) == ("20000 rows", [])
        assert runs["reversed"] == runs["right"] != runs["changed"]
    assert seen["3.5.9"] == seen["4.3.0"]


def _run(line: str, samples: dict[str, Sequence[dict[str, Any]]], folder: Path) -> dict[str, list[Any]]:
    """The rows of the first step, of a case with each of these samples."""
    (target,) = Targets.load().select([line])
    prepare(target)
    (folder / "engine").mkdir(parents=True)
    (folder / "x.yaml").write_text(CASE)
    loaded = discovery.load([folder / "x.yaml"])
    loaded.raise_for_problems()
    (case,) = loaded.cases
    cells = []
    for name, rows in samples.items():
        file = folder / f"{name}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        files = {1: {"events": str(file)}, 3: {"events": str(file)}}
        cells.append(CellTask(case.model_copy(update={"id": name}), (target,), files=files))
    remembering = Remembering()
    Scheduler(LocalRuntime(folder / "engine"), Limits(jobs=1, step_timeout=120), remembering).run(cells)
    for observation in remembering.seen.values():
        first, _, third = observation.steps
        assert [batch.rows for batch in third.batches] == [batch.rows for batch in first.batches]
    return {
        name: [row for batch in observation.steps[0].batches for row in batch.rows]
        for name, observation in remembering.seen.items()
    }
