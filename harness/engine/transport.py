"""The connection to a driver in a process (lines in, lines out, a log, an exit status), and one to a child process."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TextIO, cast

from conformance.core.child_process import OUTSIDE, start
from conformance.core.errors import ended_by_stop

LONGEST_LINE = 64 << 20
"""Characters. The largest message of the suite has 2 MB; a driver that sends more does not speak the protocol."""


def how_it_ended(code: int, *, as_shell: bool = False) -> str:
    """Return ``signal SIGKILL`` or ``exit code 3``; ``as_shell``: whether the code of that signal is 137, as a shell has it, not -9."""
    number = code - 128 if as_shell else -code
    return f"signal {signal.Signals(number).name}" if number in set(signal.Signals) else f"exit code {code}"


class TransportClosed(Exception):
    """The driver no longer reads."""


class Transport(Protocol):
    """The standard input, output and error of a driver, wherever it runs."""

    def write(self, line: str) -> None:
        """Send one line, without its newline. Raises ``TransportClosed`` if the driver no longer reads."""

    def answers(self) -> Iterator[str]:
        """The lines of standard output as they come, until it ends; read by one thread."""

    def log(self) -> Iterator[str]:
        """The lines of standard error as they come, until it ends; read by another thread."""

    def ending(self) -> str:
        """How the driver ended, once its standard output has: ``signal SIGKILL``, ``exit code 3``."""

    def kill(self) -> None:
        """End the driver and everything it started at once, by SIGKILL."""

    def close(self) -> None:
        """End the driver and everything it started, so that both readers reach their ends; may be called twice."""


def bounded_lines(stream: TextIO, longest: int = LONGEST_LINE) -> Iterator[str]:
    """The lines of a stream. One that is longer than this is cut there and is the last: it is not a message."""
    while line := stream.readline(longest):
        yield line
        if len(line) == longest and not line.endswith("\n"):
            return


_CLOSING_SECONDS = 10.0
"""A driver has this long after SIGTERM before it gets SIGKILL."""
_ENDING_SECONDS = 60.0
"""A busy system takes its time to end a process of a gigabyte that was killed or has closed its output."""
_LONGEST_LOG_LINE = 1 << 16
"""Characters; a longer one is several lines."""


class SubprocessTransport:
    """Starts a child process with a process group of its own, connected through pipes, by default with the variables of this process."""

    def __init__(self, command: Sequence[str], *, cwd: Path = OUTSIDE, env: Mapping[str, str] = os.environ) -> None:
        self._process = start(command, cwd=cwd, environ=env, encoding="utf-8", new_session=True)
        self._silent = threading.Event()
        self._killed = False
        self._unreadable: str | None = None
        """Why its answers cannot be read, if the system says so."""
        self.pid = self._process.pid

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
            try:
                yield from bounded_lines(cast(TextIO, stream))
            except OSError as error:
                self._unreadable = error.strerror
                self.kill()

    def log(self) -> Iterator[str]:
        assert self._process.stderr is not None
        with self._process.stderr as stream, contextlib.suppress(OSError):
            while part := stream.readline(_LONGEST_LOG_LINE):
                yield part
        self._silent.set()

    def ending(self) -> str:
        try:
            code = self._process.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            return "its output closed although it still runs"
        if self._unreadable is not None:
            return f"a read of its answers that failed ({self._unreadable})"
        return how_it_ended(code)

    def kill(self) -> None:
        self._killed = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait(_ENDING_SECONDS)

    def finish(self, timeout: float) -> bool:
        """Close the input, and wait, while another thread reads the log; return whether all processes that could write to it ended so."""
        self._end_input()
        with ended_by_stop(self.kill):
            return self._silent.wait(timeout) and not self._killed

    def close(self) -> None:
        """End the whole process group: the driver and the JVM it started."""
        self._end_input()
        with contextlib.suppress(ProcessLookupError):  # no process of the group is left
            for how in (signal.SIGTERM, signal.SIGKILL):
                os.killpg(self.pid, how)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_CLOSING_SECONDS)
        self._process.wait(_ENDING_SECONDS)

    def _end_input(self) -> None:
        if self._process.stdin and not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError, ValueError):  # another thread may close it too, as in write
                self._process.stdin.close()
