"""Files on any file system that Hadoop reaches: ``hdfs:``, ``s3a:``, ``abfs:``, ``file:`` and others that are configured."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from typing import Any, Iterator

from py4j.protocol import Py4JJavaError

from .failures import StorageUnwritable


class HadoopFiles:
    """``Files`` for the URLs of one file system, through the JVM of an engine.

    https://hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-common/filesystem/filesystem.html
    """

    def __init__(self, spark: Any, url: str) -> None:
        """
        ``spark``: the session whose Hadoop settings apply; ``url``: a directory of the file system, made if missing; others may use it too.

        Raises:
            StorageUnwritable: it cannot be written.
        """
        self._root = url
        jvm = spark.sparkContext._jvm
        # Look them up once: py4j searches all jars for each part of a name.
        self._path = jvm.org.apache.hadoop.fs.Path
        self._streams = jvm.org.apache.commons.io.IOUtils
        try:
            self._system = self._path(url).getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
            self.make_directory(url)
            self.keeps_times = self._probe_times("{}/.{}".format(url, uuid.uuid4().hex))
        except (Py4JJavaError, OSError) as error:
            raise StorageUnwritable(url, _root_cause(error)) from None

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
        with _file_not_found(path):
            return [status.getPath().getName() for status in self._system.listStatus(self._path(path))]

    def files_below(self, path: str) -> list[str]:
        if not self.exists(path):
            return []
        files, found = self._system.listFiles(self._path(path), True), []
        while files.hasNext():
            found.append(str(files.next().getPath().toString()))
        return found

    def exists(self, path: str) -> bool:
        return bool(self._system.exists(self._path(path)))

    def is_directory(self, path: str) -> bool:
        with _file_not_found(path):
            return bool(self._system.getFileStatus(self._path(path)).isDirectory())

    def modified(self, path: str) -> int:
        with _file_not_found(path):
            return int(self._system.getFileStatus(self._path(path)).getModificationTime()) // 1000

    def set_modified(self, path: str, seconds: int) -> None:
        with _file_not_found(path):
            self._system.setTimes(self._path(path), seconds * 1000, -1)

    def read(self, path: str) -> bytes:
        with _file_not_found(path):
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
        with _file_not_found(path):
            if not self._system.rename(self._path(path), self._path(to)):
                raise OSError("cannot rename {} to {}".format(path, to))

    def remove(self, path: str) -> None:
        self._system.delete(self._path(path), True)

    def discard(self, path: str) -> None:
        """Also removes the parents that become empty, below the root."""
        self.remove(path)
        while path.startswith(self._root + "/"):
            path = path.rpartition("/")[0]
            try:
                if not self._system.listStatus(self._path(path)):
                    self._system.delete(self._path(path), False)
            except Py4JJavaError:  # another engine has removed it, or put something in it
                return


def _root_cause(error: Exception) -> str:
    if not isinstance(error, Py4JJavaError):
        return str(error)
    throwable = error.java_exception
    while throwable.getCause() is not None:
        throwable = throwable.getCause()
    return "{}: {}".format(throwable.getClass().getSimpleName(), (throwable.getMessage() or "").split("\n")[0])


@contextmanager
def _file_not_found(path: str) -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        if error.java_exception.getClass().getSimpleName() in ("FileNotFoundException", "NoSuchFileException"):
            raise FileNotFoundError(path) from error
        raise
