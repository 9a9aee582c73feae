"""Files of the machine the driver runs on, and the directory of a case: restored before its steps, saved or removed afterwards."""

from __future__ import annotations

import glob
import os
import shutil

from .backend import ReadableFiles
from .request import CaseRequest


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


def prepare(request: CaseRequest) -> None:
    """Remove directories that are no longer needed, and restore the one that the steps continue from."""
    for path in request.discard:
        shutil.rmtree(path, ignore_errors=True)
    if request.restore:
        shutil.rmtree(request.directory, ignore_errors=True)
        # With modification times, which are the order of the files.
        shutil.copytree(request.restore, request.directory)


def finish(files: ReadableFiles, request: CaseRequest) -> None:
    """Move the case's directory to where the request wants it saved, or remove it."""
    if request.save:
        shutil.rmtree(request.save, ignore_errors=True)
        os.rename(request.directory, request.save)
    else:
        files.discard(request.directory)
