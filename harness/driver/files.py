"""The file systems that hold the directories of cases: a local disk, Hadoop's behind the JVM, what only Spark's jobs behind Connect reach.

A case's directory is restored before its steps, and saved or removed afterwards.
"""

from __future__ import annotations

import glob
import os
import shutil
import uuid
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Union

from .errors import root_cause, unwritable
from .request import CaseRequest

_MOST_COPIED = 1 << 20
"""Bytes of rows."""


class LocalFiles:
    """A local disk, or one mounted like it. Paths are absolute, here and below; a missing one raises ``FileNotFoundError``."""

    keeps_times = True
    """Whether ``set_modified`` has an effect."""

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents, unless it exists."""
        os.makedirs(path, exist_ok=True)

    def names(self, path: str) -> list[str]:
        """The names of the entries of a directory."""
        return os.listdir(path)

    def files_below(self, path: str) -> list[str]:
        """The paths of all files in a directory, at any depth; none if it does not exist."""
        entries = glob.glob(os.path.join(glob.escape(path), "**", "*"), recursive=True)
        return [entry for entry in entries if not os.path.isdir(entry)]

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def modified(self, path: str) -> int:
        """When a file was last modified, in seconds since the epoch."""
        return int(os.stat(path).st_mtime)

    def set_modified(self, path: str, seconds: int) -> None:
        os.utime(path, (seconds, seconds))

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def write(self, path: str, content: bytes) -> None:
        """Write a file, replacing an existing one."""
        with open(path, "wb") as file:
            file.write(content)

    def rename(self, path: str, to: str) -> None:
        """Rename a file atomically."""
        os.rename(path, to)

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with everything in it; nothing happens if it does not exist."""
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        elif os.path.exists(path):
            os.remove(path)

    def discard(self, path: str) -> None:
        """Remove the directory of a case that is over."""
        shutil.rmtree(path, ignore_errors=True)


class HadoopFiles:
    """The URLs of a file system that Hadoop reaches through the JVM: ``hdfs:``, ``s3a:``, ``abfs:``, ``file:`` …

    https://hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-common/filesystem/filesystem.html
    """

    def __init__(self, spark: Any, url: str) -> None:
        """``url``: a directory, made if missing; others may use it too. Raises ``DriverFailure`` if it cannot be written."""
        self._root = url
        jvm = spark.sparkContext._jvm
        # Look them up once: py4j searches all jars for each part of a name.
        self._path = jvm.org.apache.hadoop.fs.Path
        self._streams = jvm.org.apache.commons.io.IOUtils
        try:
            self._system = self._path(url).getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
            self.make_directory(url)
            self.keeps_times = self._probe_times("{}/.{}".format(url, uuid.uuid4().hex))
        except Exception as error:
            cause = root_cause(error)
            if cause is None and not isinstance(error, OSError):
                raise
            raise unwritable(url, str(error) if cause is None else _first_line(cause)) from None

    def _probe_times(self, path: str) -> bool:
        """Whether modification times can be set; object stores only have the time of writing."""
        self.write(path, b"")
        self.set_modified(path, 86400)
        kept = self.modified(path) == 86400
        self.remove(path)
        return kept

    def make_directory(self, path: str) -> None:
        # Twice: another engine may remove an empty parent in the meantime.
        if not self._system.mkdirs(self._path(path)) and not self._system.mkdirs(self._path(path)):
            raise OSError("cannot make {}".format(path))

    def names(self, path: str) -> list[str]:
        with _not_found(path, _is_missing_file):
            return [status.getPath().getName() for status in self._system.listStatus(self._path(path))]

    def files_below(self, path: str) -> list[str]:
        if not self.exists(path):
            return []
        files, paths = self._system.listFiles(self._path(path), True), []
        while files.hasNext():
            paths.append(str(files.next().getPath().toString()))
        return paths

    def exists(self, path: str) -> bool:
        return bool(self._system.exists(self._path(path)))

    def is_directory(self, path: str) -> bool:
        return bool(self._status(path).isDirectory())

    def modified(self, path: str) -> int:
        return int(self._status(path).getModificationTime()) // 1000

    def _status(self, path: str) -> Any:
        with _not_found(path, _is_missing_file):
            return self._system.getFileStatus(self._path(path))

    def set_modified(self, path: str, seconds: int) -> None:
        with _not_found(path, _is_missing_file):
            self._system.setTimes(self._path(path), seconds * 1000, -1)

    def read(self, path: str) -> bytes:
        with _not_found(path, _is_missing_file):
            stream = self._system.open(self._path(path))
        try:
            return bytes(self._streams.toByteArray(stream))
        finally:
            stream.close()

    def write(self, path: str, content: bytes) -> None:
        stream = self._system.create(self._path(path), True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def rename(self, path: str, to: str) -> None:
        with _not_found(path, _is_missing_file):
            if not self._system.rename(self._path(path), self._path(to)):
                raise OSError("cannot rename {} to {}".format(path, to))

    def remove(self, path: str) -> None:
        self._system.delete(self._path(path), True)

    def discard(self, path: str) -> None:
        """Remove a directory, and the parents below the root that become empty."""
        self.remove(path)
        while path.startswith(self._root + "/"):
            path = path.rpartition("/")[0]
            try:
                if not self._system.listStatus(self._path(path)):
                    self._system.delete(self._path(path), False)
            except Exception as error:
                if not hasattr(error, "java_exception"):
                    raise
                return  # another engine has removed it, or put something in it


class SparkFiles:
    """URLs that only the server behind a session of Spark Connect reaches: its jobs read and write them."""

    def __init__(self, session: Any, storage: str | None = None) -> None:
        """``storage``: a directory to make; None if it exists. Raises ``DriverFailure`` if it cannot be written."""
        self._session = session
        if storage is None:
            return
        try:
            self.write_lines(storage, [])
        except Exception as error:  # the class of the server's error differs between releases
            raise unwritable(storage, str(error).split("\n")[0]) from None

    def names(self, path: str) -> list[str]:
        with _not_found(path, _is_missing_path):
            return [row[0] for row in self._texts(path).select("_metadata.file_name").collect()]

    def exists(self, path: str) -> bool:
        try:
            self.read(path)
        except FileNotFoundError:
            return False
        return True

    def read(self, path: str) -> bytes:
        """The content of a file, or of the first one in a directory."""
        with _not_found(path, _is_missing_path):
            return b"".join(row[0].encode("utf-8") for row in self._texts(path).head(1))

    def write_lines(self, path: str, lines: list[str]) -> None:
        """Replace a directory by one with one file in it."""
        one_file(self._session, lines).write.mode("overwrite").text(path)

    def discard(self, path: str) -> None:
        """Empty the directory. It stays, with a ``_SUCCESS`` marker: Spark cannot remove more."""
        self.write_lines(path, [])

    def _texts(self, path: str) -> Any:
        return self._session.read.text(path, wholetext=True)


WritableFiles = Union[LocalFiles, HadoopFiles]
"""A file system in which files can be written, renamed and removed one by one."""
ReadableFiles = Union[LocalFiles, HadoopFiles, SparkFiles]
"""The file system that holds the directories of cases."""


def prepare(request: CaseRequest) -> None:
    """Remove directories that are no longer needed, and restore the one that the steps continue from."""
    for path in request.discard:
        shutil.rmtree(path, ignore_errors=True)
    if request.restore:
        # With modification times, which are the order of the files.
        keep(request.restore, request.directory)


def keep(directory: str, to: str) -> None:
    """Copy the directory of a case as it is now; what was there is replaced."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(directory, to, copy_function=_copy)


def _copy(path: str, to: str) -> None:
    """Copy a file with its modification time; rows that have arrived never change, so they need no second file."""
    if "/streams/" in path and os.path.getsize(path) > _MOST_COPIED:
        os.link(path, to)
    else:
        shutil.copy2(path, to)


def finish(files: ReadableFiles, request: CaseRequest) -> None:
    """Move the case's directory to where the request wants it saved, or remove it."""
    if request.save:
        shutil.rmtree(request.save, ignore_errors=True)
        os.rename(request.directory, request.save)
    else:
        files.discard(request.directory)


def one_file(session: Any, lines: list[str]) -> Any:
    """Make a frame that is written as one file: a column ``value`` with a line in each row."""
    if not lines:
        return session.range(0).selectExpr("'' AS value")
    return session.createDataFrame([(line,) for line in lines], "value STRING").coalesce(1)


@contextmanager
def _not_found(path: str, is_missing: Callable[[Exception], bool]) -> Iterator[None]:
    """Raise ``FileNotFoundError`` for an error that says so in another way."""
    try:
        yield
    except Exception as error:
        if is_missing(error):
            raise FileNotFoundError(path) from error
        raise


def _is_missing_file(error: Exception) -> bool:
    throwable = getattr(error, "java_exception", None)
    return throwable is not None and throwable.getClass().getSimpleName() in (
        "FileNotFoundException",
        "NoSuchFileException",
    )


def _is_missing_path(error: Exception) -> bool:
    # The error's class differs between releases, and 3.5 has no accessor for the error condition that its text begins with.
    return "PATH_NOT_FOUND" in str(error)


def _first_line(throwable: Any) -> str:
    return "{}: {}".format(throwable.getClass().getSimpleName(), (throwable.getMessage() or "").split("\n")[0])
