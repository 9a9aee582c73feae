"""Standard output and standard error of a command: safe for CI logs, and quiet when the reader is gone."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from conformance.core.wording import without_commands


@contextmanager
def safe_streams() -> Iterator[None]:
    """Let standard output and standard error survive a reader that is gone and an encoding without our characters."""
    before = sys.stdout, sys.stderr
    _take(0)
    sys.stdout = SafeStream(before[0] or _to_nowhere(1))
    sys.stderr = SafeStream(before[1] or _to_nowhere(2))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _to_nowhere(descriptor: int) -> TextIO:
    """What stands for a stream that the process was started without (``>&-``)."""
    return os.fdopen(_take(descriptor), "w", encoding="utf-8", closefd=False)


def _take(descriptor: int) -> int:
    """Open a standard stream that is closed, to nowhere; else the next file would be it, and others would write into that."""
    try:
        os.fstat(descriptor)
    except OSError:
        nowhere = os.open(os.devnull, os.O_RDWR)
        if nowhere != descriptor:
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
    return descriptor


def flush() -> None:
    """Write what is still in the buffers.

    Raises:
        OSError: it cannot be written: the disk is full.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            if isinstance(stream, SafeStream):
                stream.abandon()
            raise


class SafeStream(io.TextIOBase):
    """A stream whose lines are never workflow commands, and that goes on silently when its reader is gone (``| head -1``)."""

    def __init__(self, under: TextIO) -> None:
        self._under = under
        self._begun = ""
        """The last line so far, if it may become a workflow command; else the fact that it cannot."""
        if isinstance(under, io.TextIOWrapper):
            under.reconfigure(errors="backslashreplace")

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._under.encoding

    def isatty(self) -> bool:
        return self._under.isatty()

    def fileno(self) -> int:
        return self._under.fileno()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.write_verbatim(self._without_commands(text))
        return len(text)

    def write_verbatim(self, text: str) -> None:
        with self._reader_may_be_gone():
            self._under.write(text)

    def flush(self) -> None:
        with self._reader_may_be_gone():
            self._under.flush()

    def _without_commands(self, text: str) -> str:
        """The text without commands, also where an earlier call began the line."""
        begun = self._begun
        splits = (
            (begun.strip() == ":" and text.startswith(":"))
            or (begun.endswith("##") and text.startswith("["))
            or (begun.endswith("#") and text.startswith("#["))
        )
        line = re.split(r"[\r\n]", begun + text)[-1]
        hashes = line[-2:] if line.endswith("##") else line[-1:] if line.endswith("#") else ""
        self._begun = line if line.strip() in ("", ":") else f"…{hashes}"
        if begun.strip() not in ("", ":"):
            # From here on, the line cannot become a command.
            end = re.search(r"[\r\n]", text)
            at = end.end() if end else len(text)
            safe = without_commands("…" + text[:at])[1:] + without_commands(text[at:])
        else:
            safe = without_commands(text)
        return "\\" + safe if splits else safe

    @contextmanager
    def _reader_may_be_gone(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            self.abandon()

    def abandon(self) -> None:
        """Let what is still in the buffer go nowhere, also when the interpreter ends."""
        try:
            descriptor = self._under.fileno()
        except (OSError, ValueError):
            return
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
