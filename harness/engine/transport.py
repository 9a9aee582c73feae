"""The connection to a driver's process: lines in, lines out, a log, and an exit status."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TextIO

LONGEST_LINE = 64 << 20
"""Characters. The largest message of the suite has 2 MB; a driver that sends more does not speak the protocol."""


class TransportClosed(Exception):
    """The driver no longer reads."""


class Transport(Protocol):
    """The standard input, output and error of a driver, wherever it runs."""

    def write(self, line: str) -> None:
        """Send one line, without its newline.

        Raises:
            TransportClosed: the driver no longer reads.
        """

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
