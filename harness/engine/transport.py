"""What an engine is spoken to through: lines in, lines out, a log, and an end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class TransportClosed(Exception):
    """The other end is gone."""


class Transport(Protocol):
    """The standard input, output and error of a driver, wherever it runs."""

    def write(self, line: str) -> None:
        """Send one line, without its newline.

        Raises:
            TransportClosed: nobody reads any more.
        """

    def answers(self) -> Iterator[str]:
        """The lines of standard output as they come, to its end; read by one thread."""

    def log(self) -> Iterator[str]:
        """The lines of standard error as they come, to its end; read by another thread."""

    def ending(self) -> str:
        """How the driver ended, once its standard output has: ``signal SIGKILL``, ``exit code 3``."""

    def kill(self) -> None:
        """End the driver and everything it started at once, by SIGKILL: nothing of it gets to do anything more."""

    def close(self) -> None:
        """End the driver and everything it started, and let both readers come to their ends; may be called twice."""
