"""A runtime whose engines are miniatures: real processes, no JVM."""

import subprocess
import sys
import tempfile
from pathlib import Path

from harness.pipe import PipeEngine

PROGRAM = Path(__file__).with_name("engine.py")


class MiniatureRuntime:
    name = "miniature"

    def __init__(self, root: Path, mode: str = "right", *, only_first: bool = False) -> None:
        self._root = root
        self._mode = mode
        self._only_first = only_first
        self.started = 0

    def start(self, target, *, say):
        self.started += 1
        mode = "right" if self._only_first and self.started > 1 else self._mode
        say(f"{target.name}: starting")
        process = subprocess.Popen(
            [sys.executable, str(PROGRAM), mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return PipeEngine(process, Path(tempfile.mkdtemp(dir=self._root)), start_timeout=10)
