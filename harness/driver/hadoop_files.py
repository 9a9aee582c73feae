"""Files wherever Hadoop's file systems reach: ``hdfs:``, ``s3a:``, ``abfs:``, ``file:`` and what else is configured."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from typing import Any, Iterator

from py4j.protocol import Py4JJavaError

from .storage_fails import StorageFails


class HadoopFiles:
    """As ``OwnFiles``, for URLs of one file system, through the JVM of an engine.

    https://hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-common/filesystem/filesystem.html
    """

    def __init__(self, spark: Any, url: str) -> None:
        """
        ``spark``: the session whose Hadoop settings hold; ``url``: a directory of the file system, which is made; others may use it too.

        Raises:
            StorageFails: nothing can be written there.
        """
        self._root = url
        jvm = spark.sparkContext._jvm
        # Looked up once: for each part of a name the JVM looks through all jars.
        self._path = jvm.org.apache.hadoop.fs.Path
        self._streams = jvm.org.apache.commons.io.IOUtils
        try:
            self._system = self._path(url).getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
            self.make(url)
            self.keeps_times = self._tries_times("{}/.{}".format(url, uuid.uuid4().hex))
        except (Py4JJavaError, OSError) as error:
            raise StorageFails(url, _root_cause(error)) from None

    def _tries_times(self, path: str) -> bool:
        """Object stores have no times but that of writing."""
        self.write(path, b"")
        self.date(path, 86400)
        kept = self.modified(path) == 86400
        self.remove(path)
        return kept

    def make(self, path: str) -> None:
        # Twice: another engine may take away an empty directory above it meanwhile.
        if not self._system.mkdirs(self._path(path)) and not self._system.mkdirs(self._path(path)):
            raise OSError("{} cannot be made".format(path))

    def names(self, path: str) -> list[str]:
        with _absence_as_ours(path):
            return [status.getPath().getName() for status in self._system.listStatus(self._path(path))]

    def below(self, path: str) -> list[str]:
        if not self.exists(path):
            return []
        files, found = self._system.listFiles(self._path(path), True), []
        while files.hasNext():
            found.append(str(files.next().getPath().toString()))
        return found

    def exists(self, path: str) -> bool:
        return bool(self._system.exists(self._path(path)))

    def is_directory(self, path: str) -> bool:
        with _absence_as_ours(path):
            return bool(self._system.getFileStatus(self._path(path)).isDirectory())

    def modified(self, path: str) -> int:
        with _absence_as_ours(path):
            return int(self._system.getFileStatus(self._path(path)).getModificationTime()) // 1000

    def date(self, path: str, seconds: int) -> None:
        with _absence_as_ours(path):
            self._system.setTimes(self._path(path), seconds * 1000, -1)

    def read(self, path: str) -> bytes:
        with _absence_as_ours(path):
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
        with _absence_as_ours(path):
            if not self._system.rename(self._path(path), self._path(to)):
                raise OSError("{} cannot be renamed to {}".format(path, to))

    def remove(self, path: str) -> None:
        self._system.delete(self._path(path), True)

    def discard(self, path: str) -> None:
        """Also the directories it lies in, up to the first, where nothing else does."""
        self.remove(path)
        while path.startswith(self._root + "/"):
            path = path.rpartition("/")[0]
            try:
                if not self._system.listStatus(self._path(path)):
                    self._system.delete(self._path(path), False)
            except Py4JJavaError:  # another engine was faster, in either direction
                return


def _root_cause(error: Exception) -> str:
    if not isinstance(error, Py4JJavaError):
        return str(error)
    throwable = error.java_exception
    while throwable.getCause() is not None:
        throwable = throwable.getCause()
    return "{}: {}".format(throwable.getClass().getSimpleName(), (throwable.getMessage() or "").split("\n")[0])


@contextmanager
def _absence_as_ours(path: str) -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        if error.java_exception.getClass().getSimpleName() in ("FileNotFoundException", "NoSuchFileException"):
            raise FileNotFoundError(path) from error
        raise
