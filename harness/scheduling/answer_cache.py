"""A cache of the answers that engines gave earlier on this machine.

It is one SQLite file: several runs may use it at once, and a run that is killed at any moment loses none of its answers.
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

from pydantic import BaseModel, ConfigDict, ValidationError

from conformance.core.observation import Identity, Observation
from harness.engine.engine import EngineLocation

_EXPIRE_AFTER_S = 60 * 24 * 3600
"""Since the last use."""
_LOCK_TIMEOUT_S = 30.0
_FASTEST_COMPRESSION = 1


class CachedAnswer(BaseModel):
    """An observation, and the engines that showed it."""

    model_config = ConfigDict(frozen=True)

    observation: Observation
    engines: tuple[tuple[Identity, EngineLocation], ...]
    """Each engine that took part, in order."""
    seconds: float
    """How long it took."""

    def for_case(self, case: str) -> CachedAnswer:
        """The same answer for another case that asks the same."""
        return self.model_copy(update={"observation": self.observation.model_copy(update={"case": case})})


class AnswerCache:
    """The file of answers, created if missing and replaced if unreadable. Threads may share it.

    Args:
        fresh: whether to ignore cached answers; new ones are stored all the same.

    Raises:
        OSError: it can be neither created nor removed.
    """

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        self._fresh = fresh
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        try:
            self._file = _opened(path)
        except sqlite3.DatabaseError:
            # Nothing is lost for good: engines can answer again.
            for part in (path, *path.parent.glob(f"{path.name}-*")):
                part.unlink(missing_ok=True)
            self._file = _opened(path)

    def lookup(self, keys: Sequence[str]) -> Iterator[tuple[str, CachedAnswer]]:
        """The cached answers under these keys, with their keys; unreadable answers are skipped."""
        for key in () if self._fresh else keys:
            with self._lock:
                row = self._file.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
            if row is None:
                continue
            with contextlib.suppress(zlib.error, ValidationError):
                yield key, CachedAnswer.model_validate_json(zlib.decompress(row[0]))

    def store(self, key: str, answer: CachedAnswer) -> None:
        """Store an answer, replacing the one under the key."""
        packed = zlib.compress(answer.model_dump_json().encode(), _FASTEST_COMPRESSION)
        with self._lock, self._file:
            self._file.execute("REPLACE INTO answers VALUES (?, ?, ?)", (key, packed, time.time()))

    def touch(self, keys: Sequence[str]) -> None:
        """Mark answers as used now, which postpones their expiry."""
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
    file = sqlite3.connect(path, timeout=_LOCK_TIMEOUT_S, check_same_thread=False)
    try:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = NORMAL")
        with file:
            file.execute(
                "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer BLOB NOT NULL, used REAL NOT NULL)"
            )
            file.execute("DELETE FROM answers WHERE used < ?", (time.time() - _EXPIRE_AFTER_S,))
    except BaseException:
        file.close()
        raise
    return file
