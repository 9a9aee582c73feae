"""Asks plain PySpark what a job does on two versions, and what becomes of its checkpoints; two JVMs at a time, for many jobs."""

from __future__ import annotations

import json
import subprocess
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any, Literal, TypeAlias

from harness.environments.environment import Environment
from harness.environments.provision import prepare
from harness.targets.targets import Targets
from tests.engine.jobs.catalogue import CUTS, REPOSITORY, Job

ARRIVALS = 5
"""Of a sample, as many rows in each."""
SETTINGS = ("spark.sql.ansi.enabled=false", "spark.sql.streaming.stateStore.stateSchemaCheck=false")
"""With which refused checkpoints are resumed again."""

Run: TypeAlias = Mapping[str, Any]
"""What `plain_spark.run` gives."""
Rows: TypeAlias = Literal["same", "less state", "metrics", "differs", "fails", "unknown"]
"""``less state``: fewer rows in state, and all else the same; ``metrics``: the rows are, the watermark, the state or the late rows are not;
``unknown``: no rows, or others in each run."""
Met: TypeAlias = Literal["resumed", "other rows", "refused", "fails later", "fails everywhere", "no answer"]
"""An outcome of the product, or that the query fails on both versions."""


@dataclass(frozen=True)
class Resumed:
    """What became of the checkpoint of the earlier version after some arrivals, on the later one."""

    arrived: int
    met: Met
    errors: tuple[str, ...] = ()
    """The conditions that its error names."""


@dataclass(frozen=True)
class Lost:
    """What became of the rows of the samples on one version."""

    untimed: int = 0
    """Rows whose event time is null, of a query that groups by windows of time or joins: other operators emit them."""
    late: Mapping[str, int] = field(default_factory=dict)
    """Operator → the rows, or groups of rows, that it dropped."""
    out: int = 0


@dataclass(frozen=True)
class Plain:
    """What plain PySpark does with a job on two versions."""

    rows: Rows
    same_columns: bool
    checkpoints: tuple[Resumed, ...]
    workarounds: Mapping[str, tuple[Resumed, ...]]
    """Setting → what becomes with it of each checkpoint that is refused or fails without it."""
    errors: tuple[str, str]
    """With which the whole job ends on the earlier and on the later version."""
    operators: frozenset[str] = frozenset()
    """The stateful operators of the earlier version, as Spark's progress names them."""
    lost: tuple[Lost, Lost] = (Lost(), Lost())
    """On the earlier and on the later version."""


class PlainSpark:
    """Runs jobs in the environments of the versions.

    Args:
        work: for inputs and checkpoints; what a version wrote stays there for the next one.
    """

    def __init__(self, work: Path) -> None:
        self._work = work
        self._done: dict[tuple[str, str, str], Run] = {}

    def compare(self, jobs: Sequence[Job], before: str, afters: Iterable[str]) -> dict[tuple[str, str], Plain]:
        """By name of the job and later version."""
        self._run(before, [task for job in jobs for task in self._tasks(job, before, before)])
        compared = {}
        for after in afters:
            self._run(after, [task for job in jobs for task in self._tasks(job, before, after)])
            again = [task for job in jobs for task in self._again(job, before, after)]
            if again:
                self._run(after, again)
            compared |= {(job.name, after): self._compared(job, before, after) for job in jobs}
        return compared

    def _folder(self, job: Job, before: str) -> Path:
        return self._work / before / job.file_name

    def _task(self, job: Job, before: str, on: str, name: str, arrived: int = 0, **more: Any) -> dict[str, Any]:
        folder = self._folder(job, before)
        return {
            "name": f"{job.name}\n{name}",
            "function": f"shop.{job.function}",
            "schemas": job.schemas,
            "arguments": job.arguments,
            "arrivals": arrivals(job),
            "arrived": arrived,
            "folder": str(folder),
            "conf": dict(job.conf),
            "mode": job.mode,
            "resume": str(folder / "checkpoints" / str(arrived)) if arrived else None,
            "keep": None,
            **more,
        }

    def _tasks(self, job: Job, before: str, on: str) -> list[dict[str, Any]]:
        """The whole job, of those of all `CUTS` twice, and from each checkpoint of the earlier version on; that one keeps them."""
        keep = {"keep": str(self._folder(job, before) / "checkpoints")} if on == before else {}
        return [
            self._task(job, before, on, "whole", **keep),
            *([self._task(job, before, on, "again")] if job.cuts == CUTS else []),
            *(self._task(job, before, on, f"resumed {arrived}", arrived) for arrived in job.cuts),
        ]

    def _again(self, job: Job, before: str, after: str) -> list[dict[str, Any]]:
        """Checkpoints that did not resume, with each setting that the job has not set itself."""
        compared = self._compared(job, before, after)
        failed = [each.arrived for each in compared.checkpoints if each.met in ("refused", "fails later")]
        return [
            self._task(job, before, after, f"resumed {arrived} {setting}", arrived, conf={**job.conf, key: value})
            for setting in SETTINGS
            for key, _, value in [setting.partition("=")]
            if key not in job.conf
            for arrived in failed
        ]

    def _run(self, version: str, tasks: Sequence[Mapping[str, Any]]) -> None:
        """In two JVMs, since one leaves half of two cores idle; each has jobs of its own, whose tasks need each other's checkpoints."""
        environment = prepare(Targets.load().select([version])[0])
        self._work.mkdir(parents=True, exist_ok=True)
        halves: tuple[list[Mapping[str, Any]], ...] = ([], [])
        for at, (_, of_job) in enumerate(groupby(tasks, lambda task: task["folder"])):
            halves[at % 2].extend(of_job)
        with ThreadPoolExecutor(len(halves)) as pool:
            for answers in pool.map(partial(self._answers, environment), ("first", "second"), halves):
                for answer in answers:
                    name, _, what = answer["name"].partition("\n")
                    self._done[name, version, what] = answer

    def _answers(self, environment: Environment, half: str, tasks: Sequence[Mapping[str, Any]]) -> list[Run]:
        name = f"{environment.target}-{half}"
        file, log_file = (self._work / f"{name}.{suffix}" for suffix in ("json", "log"))
        file.write_text(json.dumps(tasks))
        script = Path(__file__).with_name("plain_spark.py")
        environ = {**environment.environ(), "PYTHONPATH": str(REPOSITORY / "src")}
        with log_file.open("a") as log:
            done = subprocess.run(
                [str(environment.python), str(script), str(file)],
                env=environ,
                cwd=self._work,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                check=False,
            )
        if done.returncode:
            raise RuntimeError(f"plain PySpark {name} ended with {done.returncode}: see {log_file}")
        # Spark 3.3 prints warnings of its Python there, too.
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def _compared(self, job: Job, before: str, after: str) -> Plain:
        def run(version: str, what: str) -> Run | None:
            return self._done.get((job.name, version, what))

        whole, other = self._done[job.name, before, "whole"], self._done[job.name, after, "whole"]
        stable = all(
            behaviour(self._done[job.name, version, "whole"])
            == behaviour(run(version, "again") or self._done[job.name, version, "whole"])
            for version in (before, after)
        )
        restarts = {
            arrived: restart
            for arrived in job.cuts
            if "skipped" not in (restart := self._done[job.name, before, f"resumed {arrived}"])
        }
        workarounds = {
            setting: tuple(
                resumed(arrived, restarts[arrived], seen, other)
                for arrived in restarts
                if (seen := run(after, f"resumed {arrived} {setting}")) is not None
            )
            for setting in SETTINGS
        }
        return Plain(
            rows=rows(whole, other) if stable else "unknown",
            same_columns=whole["columns"] == other["columns"] or None in (whole["columns"], other["columns"]),
            checkpoints=tuple(
                resumed(arrived, restarts[arrived], self._done[job.name, after, f"resumed {arrived}"], other)
                for arrived in restarts
            )
            if stable
            else (),
            workarounds={setting: seen for setting, seen in workarounds.items() if seen},
            errors=(error_names(whole), error_names(other)),
            operators=frozenset(name for batch in whole["batches"] for name in batch["operators"]),
            lost=(lost(whole), lost(other)),
        )


def arrivals(job: Job) -> list[dict[str, list[str]]]:
    """The lines of each stream's file that arrive together, in the order of the file.

    Where there are several streams, rows of all arrive together which their producers sent at the same time: a row at the latest event
    time so far, or before the two after it if they are earlier.
    """
    lines = {stream: job.lines(stream) for stream in job.streams}
    keys: dict[str, Sequence[Any]] = {stream: range(len(each)) for stream, each in lines.items()}
    if len(lines) > 1:
        for stream, of_stream in lines.items():
            times = [*map(job.time, of_stream)]
            sent = [min(time, max(times[at + 1 : at + 3], default=time)) for at, time in enumerate(times)]
            keys[stream] = [*accumulate(sent, max)]
    known = sorted(key for each in keys.values() for key in each)
    bounds = [known[len(known) * at // ARRIVALS] for at in range(1, ARRIVALS)]
    arrived: list[dict[str, list[str]]] = [{stream: [] for stream in lines} for _ in range(ARRIVALS)]
    for stream, each in lines.items():
        for key, line in zip(keys[stream], each, strict=True):
            arrived[bisect_right(bounds, key)][stream].append(line)
    return arrived


def emitted(run: Run) -> list[Any]:
    """The rows of the micro-batches that emitted any."""
    return [batch["rows"] for batch in run["batches"] if batch["rows"]]


def batches(run: Run) -> list[Any]:
    """The micro-batches, without the names of the operators."""
    return [{key: value for key, value in batch.items() if key != "operators"} for batch in run["batches"]]


def lost(run: Run) -> Lost:
    """Sum up the micro-batches; up to 3.5, the operator of session windows has the name that those without one have."""
    late: Counter[str] = Counter()
    for batch in run["batches"]:
        for name, dropped in zip(batch["operators"], batch["dropped"], strict=True):
            late["sessionWindowStateStoreSaveExec" if name == "defaultName" else name] += dropped or 0
    windows = {"stateStoreSave", "defaultName", "sessionWindowStateStoreSaveExec", "symmetricHashJoin"}
    untimed = run["untimed"] if any(windows.intersection(batch["operators"]) for batch in run["batches"]) else 0
    return Lost(untimed, +late, sum(len(batch["rows"]) for batch in run["batches"]))


def behaviour(run: Run) -> Any:
    return batches(run), error_names(run)


def error_names(run: Run) -> str:
    """``CAST_INVALID_INPUT`` or the class of an error without a condition; empty without an error."""
    error = run["error"]
    return "" if error is None else (error["names"] or [error["type"]])[-1]


def rows(before: Run, after: Run) -> Rows:
    if before["error"] and after["error"] and batches(before) == batches(after):
        return "fails"
    if not emitted(before) and not emitted(after):
        return "unknown"
    if emitted(before) != emitted(after) or error_names(before) != error_names(after):
        return "differs"
    if batches(before) == batches(after):
        return "same"
    old, new = ([{**batch, "state": None} for batch in batches(run)] for run in (before, after))
    kept = (zip(a["state"], b["state"], strict=True) for a, b in zip(before["batches"], after["batches"], strict=False))
    return "less state" if old == new and all(a >= b for each in kept for a, b in each) else "metrics"


def resumed(arrived: int, restart: Run, seen: Run, whole: Run) -> Resumed:
    """What became of a checkpoint, compared with a restart on the version that wrote it.

    Args:
        whole: what the version that resumed it does without it: an error that comes then, too, is not about the checkpoint.
    """
    errors = tuple(seen["error"]["names"] or [seen["error"]["type"]]) if seen["error"] else ()
    if restart["error"]:
        return Resumed(arrived, "fails everywhere" if seen["error"] else "resumed", errors)
    if seen["error"]:
        anyway = whole["error"] is not None and error_names(seen) == error_names(whole)
        return Resumed(arrived, "fails later" if seen["batches"] or anyway else "refused", errors)
    if not emitted(restart) and not emitted(seen):
        return Resumed(arrived, "no answer")
    return Resumed(arrived, "resumed" if emitted(restart) == emitted(seen) else "other rows")
