"""Answers that engines have given before, kept on this machine: nothing is asked twice.

They are in one SQLite file, so that several runs at once may read and write it, and so that a run that is killed at any moment leaves
every answer it had.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from conformance.core.observation import Identity, Observation
from harness.engine.engine import EngineLocation

_DAYS = 60
_DAY_S = 24 * 3600
_PATIENCE_S = 30.0
_FAST = 1


class CachedAnswer(BaseModel):
    """What was seen, and who showed it."""

    model_config = ConfigDict(frozen=True)

    observation: Observation
    engines: tuple[tuple[Identity, EngineLocation], ...]
    """Each engine that took part, in order."""
    seconds: float
    """That it took."""

    def of(self, case: str) -> CachedAnswer:
        """The same for whichever case asks the same."""
        return self.model_copy(update={"observation": self.observation.model_copy(update={"case": case})})


_ANSWER: TypeAdapter[CachedAnswer] = TypeAdapter(CachedAnswer)


class AnswerCache:
    """The file of answers; made where there is none, made anew where it cannot be read. Threads may share it.

    Args:
        path: of the file.
        fresh: whether nothing shall be known; new answers are kept all the same.

    Raises:
        OSError: it can be neither made nor removed.
    """

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        self._fresh = fresh
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        try:
            self._file = _opened(path)
        except sqlite3.DatabaseError:
            # Every answer in it can be had again.
            for part in (path, *path.parent.glob(f"{path.name}-*")):
                part.unlink(missing_ok=True)
            self._file = _opened(path)

    def among(self, keys: Sequence[str]) -> Iterator[tuple[str, CachedAnswer]]:
        """The answers there are to some of these keys, one after the other; what cannot be read is none."""
        for key in () if self._fresh else keys:
            with self._lock:
                row = self._file.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
            if row is None:
                continue
            with contextlib.suppress(zlib.error, ValidationError):
                yield key, _ANSWER.validate_json(zlib.decompress(row[0]))

    def keep(self, key: str, answer: CachedAnswer) -> None:
        """Keep an answer, in place of what is there under the key."""
        packed = zlib.compress(_ANSWER.dump_json(answer), _FAST)
        with self._lock, self._file:
            self._file.execute("REPLACE INTO answers VALUES (?, ?, ?)", (key, packed, time.time()))

    def used(self, keys: Sequence[str]) -> None:
        """These answers were of use today: they are kept for another while."""
        with self._lock, self._file:
            self._file.executemany("UPDATE answers SET used = ? WHERE key = ?", ((time.time(), key) for key in keys))

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _opened(path: Path) -> sqlite3.Connection:
    file = sqlite3.connect(path, timeout=_PATIENCE_S, check_same_thread=False)
    try:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = NORMAL")
        with file:
            file.execute(
                "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer BLOB NOT NULL, used REAL NOT NULL)"
            )
            file.execute("DELETE FROM answers WHERE used < ?", (time.time() - _DAYS * _DAY_S,))
    except BaseException:
        file.close()
        raise
    return file
