"""Files that only an engine elsewhere sees, read by its own jobs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator

from .storage_fails import StorageFails


class SparkFiles:
    """As ``OwnFiles``, for URLs that the server behind a session of Spark Connect reaches; what is written or renamed is missing."""

    def __init__(self, session: Any, storage: str | None = None) -> None:
        """
        ``storage``: a directory that is made; None where that has happened.

        Raises:
            StorageFails: nothing can be written there.
        """
        self._session = session
        if storage is None:
            return
        try:
            self.write_lines(storage, [])
        except Exception as error:  # whatever class the server's error has here
            raise StorageFails(storage, str(error).split("\n")[0]) from None

    def names(self, path: str) -> list[str]:
        with _absence_as_ours(path):
            return [row[0] for row in self._texts(path).select("_metadata.file_name").collect()]

    def exists(self, path: str) -> bool:
        try:
            self.read(path)
        except FileNotFoundError:
            return False
        return True

    def read(self, path: str) -> bytes:
        """Of a file, or of the first in a directory."""
        with _absence_as_ours(path):
            return b"".join(row[0].encode("utf-8") for row in self._texts(path).head(1))

    def write_lines(self, path: str, lines: list[str]) -> None:
        """A directory with one file in it, in place of what was there."""
        one_file(self._session, lines).write.mode("overwrite").text(path)

    def discard(self, path: str) -> None:
        """Nothing of it stays but the directory and a mark that this was done: Spark cannot remove more."""
        self.write_lines(path, [])

    def _texts(self, path: str) -> Any:
        return self._session.read.text(path, wholetext=True)


def one_file(session: Any, lines: list[str]) -> Any:
    """A frame that is written as one file: a column ``value`` with a line a row."""
    if not lines:
        return session.range(0).selectExpr("'' AS value")
    return session.createDataFrame([(line,) for line in lines], "value STRING").coalesce(1)


@contextmanager
def _absence_as_ours(path: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # of whichever class this release has for it
        if "PATH_NOT_FOUND" in str(error):
            raise FileNotFoundError(path) from error
        raise
