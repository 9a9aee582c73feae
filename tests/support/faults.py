"""Operations on files that fail, one after the other, as in SQLite's tests of I/O errors: the n-th fails, for every n."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_WRITING = ("mkdir", "open", "fchmod", "fsync", "replace", "rename")
"""Functions of `os`; the first argument says where: a path or a descriptor."""


class Faults:
    """Counts the operations that write below a folder, and fails one of them: the disk is full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.folder = folder.resolve()
        self.done: list[str] = []
        self.failing: int | None = None
        for name in _WRITING:
            monkeypatch.setattr(os, name, self._counted(name, getattr(os, name)))
        fdopen = os.fdopen
        monkeypatch.setattr(os, "fdopen", lambda *args, **kwargs: _Faulty(fdopen(*args, **kwargs), self))

    @contextmanager
    def injected(self, failing: int | None) -> Iterator[None]:
        """Count the operations, and fail one of them, from 0."""
        self.done, self.failing = [], failing
        yield
        self.failing = None

    def step(self, what: str) -> None:
        self.done.append(what)
        if len(self.done) - 1 == self.failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(place: Any, *args: Any, **kwargs: Any) -> Any:
            where = Path(f"/proc/self/fd/{place}") if isinstance(place, int) else Path.cwd() / place
            reads = name == "open" and not args[0] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            writes = not reads and not (name == "mkdir" and where.exists())
            if writes and where.resolve().is_relative_to(self.folder):
                self.step(f"{name} {where.resolve().name}")
            return function(place, *args, **kwargs)

        return counted


class _Faulty:
    """A file that is written; where it fails, half of what is to be written is there."""

    def __init__(self, file: Any, faults: Faults) -> None:
        self._file, self._faults = file, faults

    def write(self, content: Any) -> int:
        try:
            self._faults.step("write")
        except OSError:
            self._file.write(content[: len(content) // 2])
            self._file.flush()
            raise
        return int(self._file.write(content))

    def flush(self) -> None:
        self._faults.step("flush")
        self._file.flush()

    @property
    def buffer(self) -> _Faulty:
        return _Faulty(self._file.buffer, self._faults)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
