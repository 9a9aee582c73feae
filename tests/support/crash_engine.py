"""An engine that counts rows by stream, keeps a checkpoint of files as Spark does, and may be wrong in one way."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from conformance.core.observation import BatchSeen, Observation, StepSeen, TopicRead
from harness.engine.engine import EngineDied
from harness.engine.protocol import CaseRequest
from tests.support import observations

Mode = Literal[
    "right", "commits-first", "forgets", "counts-twice", "dies", "null-pointer", "silent-after-a-stop", "replays-all"
]
"""``commits-first``: the commit is written before the state, and missing state counts as none. ``forgets``: missing state counts as none.
``counts-twice``: a replay starts from the state of the first attempt. ``dies``: on torn state. ``null-pointer``: it cannot tell what is
wrong with the state. ``silent-after-a-stop``: the first new micro-batch after a stop emits nothing, as if the watermark waited.
``replays-all``: a replay reads all that has arrived, whatever its offsets say."""


class Refused(Exception):
    """It does not go on with this checkpoint."""


class CrashEngine:
    """Emits, for each micro-batch, how many rows have come so far; one micro-batch for each file, or each arrival in a topic."""

    kafka = "localhost:9092"

    def __init__(self, mode: Mode = "right") -> None:
        self.mode = mode
        self.requests: list[CaseRequest] = []
        self.stopped = False
        """Whether it has started between two micro-batches and run none since."""
        self.topic: list[Any] | None = None
        """What has arrived in it; None where there is no topic."""

    def observe(
        self, request: CaseRequest, *, step_timeout: float, on_step: Callable[[], None] | None = None
    ) -> Observation:
        self.requests.append(request)
        root = Path(request.directory)
        for folder in ("streams/events", "checkpoint/offsets", "checkpoint/commits", "checkpoint/state/0/0"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        if request.arrived is not None:
            self.topic = [arrival["events"] for arrival in request.arrived]
        elif request.kafka is None:
            self.topic = None
        committed = _newest(root / "checkpoint/commits")
        self.stopped = committed >= 0 and committed == _newest(root / "checkpoint/offsets")
        steps: list[StepSeen] = []
        for number, step in enumerate(request.steps, request.first):
            batches: list[BatchSeen] = []
            try:
                batches += self._drain(root)
                for arrival in step.batches:
                    self._arrive(root, arrival["events"])
                batches += self._drain(root)
            except Refused as why:
                steps.append(self._failed(number, batches, why))
                break
            steps.append(observations.step(number, *batches))
        if request.save:
            shutil.rmtree(request.save, ignore_errors=True)
            root.rename(request.save)
        else:
            shutil.rmtree(root)
            self.topic = None
        return Observation.of(request.case, observations.COLUMNS, tuple(steps))

    def _failed(self, number: int, batches: list[BatchSeen], why: Refused) -> StepSeen:
        kind = "NullPointerException" if self.mode == "null-pointer" else "IllegalStateException"
        message = "null" if self.mode == "null-pointer" else str(why)
        return observations.failed(number, kind, message=message).model_copy(update={"batches": tuple(batches)})

    def _arrive(self, root: Path, partitions: Any) -> None:
        if self.topic is not None:
            self.topic.append(partitions)
            return
        number = len(list((root / "streams" / "events").iterdir())) + 1
        rows = [row for partition in partitions for row in partition]
        _put(root / "streams" / "events" / f"{number:06d}.json", json.dumps(rows))

    def _drain(self, root: Path) -> list[BatchSeen]:
        found = []
        while True:
            planned, committed = _newest(root / "checkpoint/offsets"), _newest(root / "checkpoint/commits")
            arrived = [json.loads(file.read_text()) for file in sorted((root / "streams" / "events").iterdir())]
            if self.topic is not None:
                arrived = [[row for partition in arrival for row in partition] for arrival in self.topic]
            if planned < committed:
                raise Refused(f"micro-batch {committed} is committed and has no offsets")
            if planned > committed:
                batch = planned
                if self.mode == "replays-all" and batch + 1 < len(arrived):
                    arrived[batch] += arrived[batch + 1]
            elif planned + 1 < len(arrived):
                batch = planned + 1
                _put(root / "checkpoint/offsets" / str(batch), str(batch))
            else:
                return found
            if (root / "checkpoint/offsets" / str(batch)).read_text() != str(batch):
                raise Refused(f"Incomplete log file {batch}")
            found.append(self._run(root / "checkpoint", batch, arrived[batch]))

    def _run(self, checkpoint: Path, batch: int, rows: Any) -> BatchSeen:
        state = checkpoint / "state/0/0"
        again = self.mode == "counts-twice" and (state / f"{batch + 1}.delta").exists()
        total = self._state(state, batch + 1 if again else batch) + len(rows)
        files = [(state / f"{batch + 1}.delta", f"total {total}"), (checkpoint / "commits" / str(batch), "{}")]
        for path, text in reversed(files) if self.mode == "commits-first" else files:
            _put(path, text)
        emitted = [] if self.stopped and self.mode == "silent-after-a-stop" else [("total", total)]
        self.stopped = False
        if self.topic is None:
            return observations.batch(batch, *emitted)
        read = TopicRead(stream="events", rows=len(rows), moved=True, records=(len(rows),))
        return observations.batch(batch, ("total", total), sources=(read,))

    def _state(self, folder: Path, version: int) -> int:
        if version == 0:
            return 0
        path = folder / f"{version}.delta"
        try:
            word, total = path.read_text().split(" ")
            assert word == "total"
            return int(total)
        except (OSError, ValueError, AssertionError):
            if self.mode in ("commits-first", "forgets"):
                return 0
            if self.mode == "dies":
                raise EngineDied("the engine ended with SIGSEGV") from None
            raise Refused(f"{path.name} is damaged") from None


def _put(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.1a2b.tmp")
    temporary.write_text(text)
    temporary.rename(path)


def _newest(folder: Path) -> int:
    return max((int(path.name) for path in folder.iterdir() if path.name.isdigit()), default=-1)
