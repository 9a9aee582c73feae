"""How long-running work reports what it is doing."""

from typing import Protocol


class ProgressCallback(Protocol):
    """Takes one short line of progress, without a newline at its end."""

    def __call__(self, line: str, /) -> None: ...


def ignore_progress(line: str, /) -> None:
    """Discard the line."""
