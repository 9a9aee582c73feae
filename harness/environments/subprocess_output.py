"""A program run to its end: what it writes is told line by line, and its last lines are kept for the case that it fails."""

from __future__ import annotations

import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence


def run_telling(
    command: Sequence[str], environ: Mapping[str, str], hear: Callable[[str], str | None], *, keep: int
) -> tuple[str, ...] | None:
    """Run a program without input, its errors among its output, and hear every line as it comes.

    Args:
        command: the program and its arguments.
        environ: all its environment variables.
        hear: takes a line, stripped of its end; gives what of it shall be kept, None for nothing.
        keep: how many lines are kept at the most, the last ones.

    Returns:
        None where it succeeded, else the lines that were kept.

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
            kept = hear(line.rstrip())
            if kept is not None:
                tail.append(kept)
    return tuple(tail) if process.returncode else None
