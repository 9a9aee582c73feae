"""Files of the machine the driver runs on."""

from __future__ import annotations

import glob
import os
import shutil


class LocalFiles:
    """``Files`` on a local disk, or one mounted like it."""

    keeps_times = True

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def names(self, path: str) -> list[str]:
        return os.listdir(path)

    def files_below(self, path: str) -> list[str]:
        found = glob.glob(os.path.join(glob.escape(path), "**", "*"), recursive=True)
        return [path for path in found if not os.path.isdir(path)]

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def modified(self, path: str) -> int:
        return int(os.stat(path).st_mtime)

    def set_modified(self, path: str, seconds: int) -> None:
        os.utime(path, (seconds, seconds))

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def write(self, path: str, content: bytes) -> None:
        with open(path, "wb") as file:
            file.write(content)

    def rename(self, path: str, to: str) -> None:
        os.rename(path, to)

    def remove(self, path: str) -> None:
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        elif os.path.exists(path):
            os.remove(path)

    def discard(self, path: str) -> None:
        shutil.rmtree(path, ignore_errors=True)
