"""A driver in a child process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO, cast

from conformance.core.child_process import OUTSIDE, start
from harness.engine.transport import TransportClosed, bounded_lines

_CLOSING_SECONDS = 10.0
"""From SIGTERM to SIGKILL."""
_ENDING_SECONDS = 60.0
"""For the system to end a process that was killed or closed its output: on a busy machine that of a gigabyte takes its time."""
_LONGEST_LOG_LINE = 1 << 16
"""Characters; a longer one is several lines."""


class SubprocessTransport:
    """Starts a child process with a process group of its own, connected through pipes.

    Args:
        command: program and arguments.
        cwd: its working directory, absolute.
        env: its variables; by default this process's.
    """

    def __init__(self, command: Sequence[str], *, cwd: Path = OUTSIDE, env: Mapping[str, str] = os.environ) -> None:
        self._process = start(command, cwd=cwd, environ=env, encoding="utf-8", new_session=True)
        self._silent = threading.Event()

    @property
    def pid(self) -> int:
        """Of the process group's leader."""
        return self._process.pid

    def write(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise TransportClosed from error

    def answers(self) -> Iterator[str]:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            yield from bounded_lines(cast(TextIO, stream))

    def log(self) -> Iterator[str]:
        assert self._process.stderr is not None
        with self._process.stderr as stream:
            while part := stream.readline(_LONGEST_LOG_LINE):
                yield part
        self._silent.set()

    def ending(self) -> str:
        try:
            code = self._process.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            return "its output closed although it still runs"
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(_ENDING_SECONDS)

    def finish(self, timeout: float) -> bool:
        """Close the input, and wait until the driver and the processes that it started have ended.

        Args:
            timeout: seconds to wait, while another thread reads the log.

        Returns:
            Whether they have ended: no process is left that could write to the log.
        """
        self._end_input()
        return self._silent.wait(timeout)

    def close(self) -> None:
        """End the whole process group: the driver and the JVM it started."""
        self._end_input()
        for how in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, how)
            except ProcessLookupError:
                break
            try:
                self._process.wait(_CLOSING_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            if not _group_lives(self._process.pid):
                break
        self._process.wait(_ENDING_SECONDS)

    def _end_input(self) -> None:
        if self._process.stdin and not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError, ValueError):  # another thread may close it too, as in write
                self._process.stdin.close()


def _group_lives(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    return True
