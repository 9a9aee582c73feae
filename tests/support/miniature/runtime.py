"""A runtime whose engines are miniatures: real processes, no JVM."""

import sys
import tempfile
from pathlib import Path

from harness.engine.driver_engine import DriverEngine
from harness.engine.engine import NOTHING_ELSE, EngineLocation
from harness.engine.transport import SubprocessTransport

PROGRAM = Path(__file__).with_name("engine.py")


class MiniatureRuntime:
    name = "miniature"

    def __init__(
        self, root: Path, mode: str = "right", *, only_first: bool = False, fingerprint: str | None = None
    ) -> None:
        self._root = root
        self._mode = mode
        self._only_first = only_first
        self._fingerprint = fingerprint
        self.started = 0

    def unsupported(self, case, target):
        return None

    def fingerprint(self, target):
        return self._fingerprint

    def start(self, target, *, on_progress, needs=NOTHING_ELSE):
        self.started += 1
        mode = "right" if self._only_first and self.started > 1 else self._mode
        on_progress(f"{target.name}: starting")
        transport = SubprocessTransport([sys.executable, str(PROGRAM), mode])
        work = tempfile.mkdtemp(dir=self._root)
        return DriverEngine(transport, work=work, place=EngineLocation(self.name), start_timeout=60)

    def close(self):
        pass
