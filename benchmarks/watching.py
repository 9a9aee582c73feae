"""Who listens to a run that is measured: when its engine was ready, and what was answered."""

from __future__ import annotations

import time
from typing import Any

from harness.scheduling.cell_run import CellRun


class Watching:
    """The moments by two clocks: ``ready`` is monotonic, ``ready_at`` the epoch's, as an engine's progress has it; both in seconds."""

    def __init__(self) -> None:
        self.ready = self.ready_at = 0.0
        self.runs: list[CellRun] = []

    def engine_says(self, *_: Any) -> None: ...

    def engine_ready(self, *_: Any) -> None:
        self.ready, self.ready_at = time.monotonic(), time.time()

    def cell_started(self, *_: Any) -> None: ...

    def cell_done(self, run: CellRun) -> None:
        self.runs.append(run)
