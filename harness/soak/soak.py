"""A stream run through one query to its end, by one engine after the other: each is killed, the next goes on from the checkpoint."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from harness.engine.engine import EngineDied
from harness.progress import ProgressCallback
from harness.soak.engine import SoakEngine
from harness.soak.kill_schedule import Moment, moments
from harness.soak.messages import Emitted, Generate, Progressed, Run, Stream


@dataclass(frozen=True)
class SoakRun:
    """How it went."""

    rows: int
    """Read, as the engines told."""
    seconds: float
    """From the first start of the query to its end, with all starts between."""
    kills: int
    """Engines that were killed in the middle of the query. Fewer than were asked for where it ended before."""


class Watcher(ProgressCallback, Protocol):
    """Who sees it go on."""

    def progressed(self, rows: int, a_second: float, watermark: int | None, kills: int) -> None:
        """So many rows are read, and so many a second; the watermark in ms, and how many engines were killed."""


class Soak:
    """One soak.

    Args:
        start: brings up an engine.
        folder: where its files lie: an absolute path, the same for every engine.
        stream: what is read.
        kills: how many engines are killed, at moments that follow from the stream's seed.
        watcher: sees it go on.
    """

    def __init__(
        self, start: Callable[[], SoakEngine], folder: str, stream: Stream, kills: int, watcher: Watcher
    ) -> None:
        self._start = start
        self._folder = folder
        self._stream = stream
        self._moments = list(moments(kills, stream.rows, stream.seed))
        self._watcher = watcher
        self._rows: dict[int, int] = {}
        self._killed = 0
        self._began = 0.0

    def run(self) -> SoakRun:
        """Generate the stream and read it to its end. No engine is left running.

        Raises:
            SurroundingsFailed: an engine could not be started, or went wrong without having been killed.
        """
        engine = self._start()
        try:
            self._watcher(f"generating {self._stream.rows:,} rows, seed {self._stream.seed}")
            for _ in engine.ask(Generate(folder=self._folder, stream=self._stream)):
                pass
            self._began = time.monotonic()
            attempt = 0
            while not self._to_the_end(engine, attempt):
                engine.close()
                attempt += 1
                self._watcher(f"kill {self._killed}: engine {attempt + 1} goes on")
                engine = self._start()
            return SoakRun(sum(self._rows.values()), time.monotonic() - self._began, self._killed)
        finally:
            engine.close()

    def _to_the_end(self, engine: SoakEngine, attempt: int) -> bool:
        """Let an engine read on; False where it was killed."""
        killer = _Killer(engine, self._moments[0] if self._moments else None)
        try:
            for word in engine.ask(Run(folder=self._folder, stream=self._stream, attempt=attempt)):
                if isinstance(word, Progressed):
                    self._rows[word.batch] = word.rows
                    self._tell(word)
                if isinstance(word, Progressed | Emitted):
                    killer.hears(word, sum(self._rows.values()))
        except EngineDied:
            if not killer.has_killed:
                raise
            self._killed += 1
            self._moments.pop(0)
            return False
        finally:
            killer.stop()
        return True

    def _tell(self, word: Progressed) -> None:
        rows = sum(self._rows.values())
        self._watcher.progressed(rows, rows / (time.monotonic() - self._began), word.watermark, self._killed)


class _Killer:
    """Waits for a moment, and kills an engine that has begun to work."""

    def __init__(self, engine: SoakEngine, moment: Moment | None) -> None:
        self._engine = engine
        self._moment = moment
        self._timer: threading.Timer | None = None
        self.has_killed = False

    def hears(self, word: Progressed | Emitted, rows: int) -> None:
        """The engine has told of a micro-batch; so many rows are read."""
        moment = self._moment
        if moment is None or rows < moment.rows or self._timer is not None:
            return
        if moment.when == "emitted" and isinstance(word, Emitted):
            self._kill()
        elif moment.when == "anywhere" and isinstance(word, Progressed):
            self._timer = threading.Timer(moment.wait * word.ms / 1000, self._kill)
            self._timer.start()

    def stop(self) -> None:
        """Kill nobody any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _kill(self) -> None:
        self.has_killed = True
        self._engine.kill()
