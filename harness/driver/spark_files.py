"""Files that only an engine elsewhere sees, read and written by its own jobs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator

from .failures import StorageUnwritable


class SparkFiles:
    """``ReadableFiles`` for URLs that the server behind a session of Spark Connect reaches."""

    def __init__(self, session: Any, storage: str | None = None) -> None:
        """
        ``storage``: a directory to make; None if it exists.

        Raises:
            StorageUnwritable: it cannot be written.
        """
        self._session = session
        if storage is None:
            return
        try:
            self.write_lines(storage, [])
        except Exception as error:  # the class of the server's error differs between releases
            raise StorageUnwritable(storage, str(error).split("\n")[0]) from None

    def names(self, path: str) -> list[str]:
        with _file_not_found(path):
            return [row[0] for row in self._texts(path).select("_metadata.file_name").collect()]

    def exists(self, path: str) -> bool:
        try:
            self.read(path)
        except FileNotFoundError:
            return False
        return True

    def read(self, path: str) -> bytes:
        """The content of a file, or of the first one in a directory."""
        with _file_not_found(path):
            return b"".join(row[0].encode("utf-8") for row in self._texts(path).head(1))

    def write_lines(self, path: str, lines: list[str]) -> None:
        """Replace a directory by one with one file in it."""
        one_file(self._session, lines).write.mode("overwrite").text(path)

    def discard(self, path: str) -> None:
        """Leaves the directory and a ``_SUCCESS`` marker: Spark cannot remove more."""
        self.write_lines(path, [])

    def _texts(self, path: str) -> Any:
        return self._session.read.text(path, wholetext=True)


def one_file(session: Any, lines: list[str]) -> Any:
    """A frame that is written as one file: a column ``value`` with one line per row."""
    if not lines:
        return session.range(0).selectExpr("'' AS value")
    return session.createDataFrame([(line,) for line in lines], "value STRING").coalesce(1)


@contextmanager
def _file_not_found(path: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # The error's class differs between releases, and 3.5 has no accessor for the error condition that its text begins with.
        if "PATH_NOT_FOUND" in str(error):
            raise FileNotFoundError(path) from error
        raise
