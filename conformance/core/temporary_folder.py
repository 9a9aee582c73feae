"""Temporary folders: removed at their end, and by a later process if theirs was killed."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

_PREFIX, _LOCK = "conformance-", ".lock"
_USER = getattr(os, "getuid", int)()
"""0 on Windows, where each file says so."""
_HOLDS_NONE = (NotImplementedError,)
"""What a file system without locks raises; no folder there is removed for a process that is gone."""


@contextmanager
def temporary_folder(parent: Path | None = None) -> Iterator[Path]:
    """Hold a new folder, by default where temporary files are; raise OSError if there can be none."""
    where = parent or Path(tempfile.gettempdir())
    for _ in remove_leftovers(where):
        pass
    # `tempfile.TemporaryDirectory` recurses without end into a folder that it may not open.
    name = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=where))
    # The kernel gives the lock back when this process ends in whatever way; no program that it starts has it.
    lock = FileLock(name / _LOCK)
    try:
        with suppress(*_HOLDS_NONE):
            lock.acquire()
        yield name
    finally:
        lock.release()
        shutil.rmtree(name, ignore_errors=True)


def remove_leftovers(where: Path | None = None) -> Iterator[Path]:
    """Remove the folders of this user whose processes are gone, and yield each."""
    for lock in (where or Path(tempfile.gettempdir())).glob(f"{_PREFIX}*/{_LOCK}"):
        folder = lock.parent
        with suppress(OSError, Timeout, *_HOLDS_NONE):
            seen = folder.lstat()
            # Where all may write, a link of somebody else may have the name of a folder.
            if stat.S_ISDIR(seen.st_mode) and seen.st_uid == _USER:
                with FileLock(lock, timeout=0):
                    shutil.rmtree(folder)
                yield folder
