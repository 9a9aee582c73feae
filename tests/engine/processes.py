"""Processes of Spark's own that a test starts, each in a group of its own with a log."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

START_S = 600
FOR_A_SHORT_LIFE = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""For JVMs that live for a minute, as our own engines have it: optimising compilation takes more time than it saves."""


class Processes:
    """``close`` ends them all. ``folder``: for their logs; ``variables``: of their environment, and that of what they start."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self._folder = folder
        self._variables = {**variables, **FOR_A_SHORT_LIFE}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, command: Sequence[str], *, until: str, **variables: str) -> str:
        """Start one and wait until its log has a line like ``until``; the pattern's group in it."""
        log = self._folder / f"{name}.log"
        with log.open("wb") as file:
            self._running[name] = subprocess.Popen(
                command,
                cwd=self._folder,
                env={**self._variables, **variables},
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        begun = time.monotonic()
        while time.monotonic() - begun < START_S:
            if found := re.search(until, log.read_text(errors="replace")):
                return found[1]
            time.sleep(0.1)
        self.close()
        raise AssertionError(f"{name} did not come up:\n{log.read_text(errors='replace')[-2000:]}")

    def kill(self, name: str) -> None:
        """SIGKILL to it and to what it has started."""
        process = self._running.pop(name)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        for name in reversed(list(self._running)):
            self.kill(name)
