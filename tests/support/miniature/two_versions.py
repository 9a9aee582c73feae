"""Miniature engines of two versions, each with its own fault."""

from __future__ import annotations

import sys
from dataclasses import replace

from conformance.core.versions import SparkVersion
from harness.engine.driver_engine import DriverEngine
from harness.engine.engine import NOTHING_ELSE, EngineLocation
from harness.engine.transport import SubprocessTransport
from tests.support.miniature.runtime import PROGRAM, MiniatureRuntime
from tests.support.miniature.target import SPARK_359

OLD = SPARK_359
NEW = replace(SPARK_359, version=SparkVersion(4, 0, 5))


class TwoVersions(MiniatureRuntime):
    """A runtime of miniature engines, each version with its own fault."""

    def __init__(self, root, modes, *, reusable=False):
        self.root, self.modes, self._reusable = root, modes, reusable
        self.started = []
        self.engines = []

    def fingerprint(self, target):
        return f"miniature {target.name}" if self._reusable else None

    def start(self, target, *, on_progress, needs=NOTHING_ELSE):
        self.started.append(target.name)
        work = self.root / f"{target.name}-{len(self.started)}"
        work.mkdir()
        transport = SubprocessTransport([sys.executable, str(PROGRAM), self.modes.get(target.name, "right")])
        self.engines.append(DriverEngine(transport, work=str(work), place=EngineLocation(self.name), start_timeout=60))
        return self.engines[-1]
