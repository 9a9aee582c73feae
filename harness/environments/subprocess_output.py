"""Runs a program to its end, streams its output, and keeps the last lines in case it fails."""

from __future__ import annotations

import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence


def run_streaming(
    command: Sequence[str], environ: Mapping[str, str], on_line: Callable[[str], str | None], *, keep: int
) -> tuple[str, ...] | None:
    """Run a program without input, its errors merged into its output.

    Args:
        command: the program and its arguments.
        environ: all its environment variables.
        on_line: takes each line as it comes, without trailing whitespace; returns the text to keep, None for nothing.
        keep: how many lines are kept at most, the last ones.

    Returns:
        None on success, else the lines kept.

    Raises:
        OSError: it cannot be started.
    """
    tail: deque[str] = deque(maxlen=keep)
    with subprocess.Popen(
        command,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            kept = on_line(line.rstrip())
            if kept is not None:
                tail.append(kept)
    return tuple(tail) if process.returncode else None
