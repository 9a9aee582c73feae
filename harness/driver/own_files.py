"""Files of the machine the driver runs on."""

from __future__ import annotations

import glob
import os
import shutil


class OwnFiles:
    """What a case's directory needs of a file system; ``HadoopFiles`` and ``SparkFiles`` are others.

    Paths are absolute. What is not there raises ``FileNotFoundError``, but where something is removed.
    """

    keeps_times = True
    """Whether ``date`` has an effect."""

    def make(self, path: str) -> None:
        """A directory, with those it lies in; nothing happens where it is there."""
        os.makedirs(path, exist_ok=True)

    def names(self, path: str) -> list[str]:
        """What lies in a directory."""
        return os.listdir(path)

    def below(self, path: str) -> list[str]:
        """The paths of all files in a directory and in those in it; none where it is not there."""
        return [
            found
            for found in glob.glob(os.path.join(glob.escape(path), "**", "*"), recursive=True)
            if not os.path.isdir(found)
        ]

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def modified(self, path: str) -> int:
        """When a file was written, in seconds since the epoch."""
        return int(os.stat(path).st_mtime)

    def date(self, path: str, seconds: int) -> None:
        """Set when a file was written."""
        os.utime(path, (seconds, seconds))

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def write(self, path: str, content: bytes) -> None:
        """Write a file, in place of one that is there."""
        with open(path, "wb") as file:
            file.write(content)

    def rename(self, path: str, to: str) -> None:
        """At once: nobody sees a part of it."""
        os.rename(path, to)

    def remove(self, path: str) -> None:
        """A file, or a directory with everything in it."""
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        elif os.path.exists(path):
            os.remove(path)

    def discard(self, path: str) -> None:
        """A case's directory, which nobody needs any more."""
        shutil.rmtree(path, ignore_errors=True)
