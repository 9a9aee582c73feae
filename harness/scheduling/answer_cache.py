"""A cache of the answers that engines gave earlier on this machine.

It is one SQLite file: several runs may use it at once, and a run that is killed at any moment loses none of its answers. A run never
ends because of it: without a usable file, engines answer everything.
"""

import contextlib
import hashlib
import json
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from conformance.core.case import Case
from conformance.core.observation import Identity, Observation
from conformance.core.operations import PythonState
from harness.engine.engine import EngineLocation
from harness.engine.request import request_for, segments_of

_EXPIRE_AFTER_S = 60 * 24 * 3600
"""Since the last use."""
_LOCK_TIMEOUT_S = 120.0
_FASTEST_COMPRESSION = 1
_OURS = 0x574D4331
"""`PRAGMA application_id` of our files: "WMC1"."""
_SQLITE = b"SQLite format 3\0"
_APPLICATION_ID_AT = 68
"""Its place in the file's header. Source: https://www.sqlite.org/fileformat2.html, "The Database Header"."""


class CachedAnswer(BaseModel):
    """An observation, and the engines that showed it."""

    model_config = ConfigDict(frozen=True)

    observation: Observation
    engines: tuple[tuple[Identity, EngineLocation], ...]
    """Each engine that took part, in order."""
    seconds: float

    def for_case(self, case: str) -> Self:
        """The same answer for another case that asks the same."""
        return self.model_copy(update={"observation": self.observation.model_copy(update={"case": case})})


class AnswerCache:
    """The file of answers, created if missing, and replaced if it is ours and corrupt. Threads may share it.

    Attributes:
        problem: why the file is not used, or not any more; None if it is.

    ``fresh``: whether to ignore cached answers; new ones are stored all the same.
    """

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        self.problem: str | None = None
        self._path = path
        self._fresh = fresh
        self._lock = threading.Lock()
        self._file: sqlite3.Connection | None = None
        with self._giving_up():
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._file = _opened(path)
            except sqlite3.DatabaseError as error:
                corrupt = (error.sqlite_errorcode & 0xFF) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
                if not (corrupt and _is_ours(path)):
                    raise
                # Nothing is lost for good: engines can answer again.
                for part in (path, *path.parent.glob(f"{path.name}-*")):
                    part.unlink(missing_ok=True)
                self._file = _opened(path)

    def lookup(self, keys: Sequence[str]) -> Iterator[tuple[str, CachedAnswer]]:
        """The cached answers under these keys, with their keys; unreadable answers are skipped, and those of another key, to which the
        index of a damaged file may lead."""
        for key in () if self._fresh else keys:
            row = None
            with self._giving_up() as file:
                if file is None:
                    return
                row = file.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
            if row is None:
                continue
            with contextlib.suppress(zlib.error, ValidationError, TypeError):
                stored_under, _, answer = zlib.decompress(row[0]).partition(b"\n")
                if stored_under == key.encode():
                    yield key, CachedAnswer.model_validate_json(answer)

    def store(self, key: str, answer: CachedAnswer) -> None:
        """Store an answer, replacing the one under the key."""
        packed = zlib.compress(f"{key}\n{answer.model_dump_json()}".encode(), _FASTEST_COMPRESSION)
        with self._giving_up() as file:
            if file is not None:
                with file:
                    file.execute("REPLACE INTO answers VALUES (?, ?, ?)", (key, packed, time.time()))

    def touch(self, keys: Sequence[str]) -> None:
        """Mark answers as used now, which postpones their expiry."""
        with self._giving_up() as file:
            if file is not None:
                with file:
                    used = ((time.time(), key) for key in keys)
                    file.executemany("UPDATE answers SET used = ? WHERE key = ?", used)

    def close(self) -> None:
        with self._giving_up() as file:
            if file is not None:
                file.close()

    @contextlib.contextmanager
    def _giving_up(self) -> Iterator[sqlite3.Connection | None]:
        """The file, for one thread; an error of it ends its use, not the run."""
        with self._lock:
            try:
                yield self._file
            except (sqlite3.Error, OSError) as error:
                why = getattr(error, "strerror", None) or error
                self.problem = f"{self._path} is not used as a cache of answers: {why}"
                if self._file is not None:
                    with contextlib.suppress(sqlite3.Error):
                        self._file.close()
                self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_FOREIGN = "it belongs to another program and stays as it is; CONFORMANCE_ANSWERS names another file"


def _opened(path: Path) -> sqlite3.Connection:
    if path.exists() and path.stat().st_size and not _header(path).startswith(_SQLITE):
        raise sqlite3.Error(_FOREIGN)
    file = sqlite3.connect(path, timeout=_LOCK_TIMEOUT_S, check_same_thread=False)
    try:
        names = {name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if names - {"answers"}:
            raise sqlite3.Error(_FOREIGN)
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = NORMAL")
        with file:
            file.execute(f"PRAGMA application_id = {_OURS}")
            file.execute(
                "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer BLOB NOT NULL, used REAL NOT NULL)"
            )
            file.execute("DELETE FROM answers WHERE used < ?", (time.time() - _EXPIRE_AFTER_S,))
    except BaseException:
        file.close()
        raise
    return file


def _header(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(100)


def _is_ours(path: Path) -> bool:
    header, at = _header(path), _APPLICATION_ID_AT
    return header.startswith(_SQLITE) and int.from_bytes(header[at : at + 4], "big") == _OURS


_FORMAT = 1
"""Raised when answers change for another reason than the driver: for example, how segments are joined into one observation."""

_MEASURES = "memory.py"
"""The file of the driver that measures the engine, not the case."""


def answer_key(question: str, engines: Iterable[str]) -> str:
    """The key of the answer to a ``question_digest``. ``engines``: ``Runtime.fingerprint`` of each that takes part, in order."""
    return hashlib.sha256(json.dumps([_FORMAT, question, list(engines)]).encode()).hexdigest()


def question_digest(case: Case, conf: Mapping[str, str] | None = None, *, cut: int | None = None) -> str:
    """SHA-256 over what any engine is asked: every request, and the driver that executes it; not the case's id, title and expectations.

    ``conf``: Spark settings for every case of the run; ``cut``: the step before which the case changes engines.
    """
    segments = segments_of(case) if cut is None else (*segments_of(case, 1, cut - 1), *segments_of(case, cut))
    requests = [
        request_for(case, "", segment=segment, conf=conf).model_dump(mode="json", exclude={"case", "directory", "code"})
        for segment in segments
    ]
    state_functions = any(isinstance(operation, PythonState) for operation in case.operations())
    content = [driver_digest(state_functions), cut, expects_progress(case), requests]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@cache
def driver_digest(state_functions: bool) -> str:
    """SHA-256 over the driver's program, as another driver may observe something else; with the named functions over state, or without."""
    digest = hashlib.sha256()
    left_out = (_MEASURES,) if state_functions else (_MEASURES, "state_functions.py")
    with as_file(files("harness.driver")) as driver:
        for file in sorted(driver.rglob("*.py")):
            if file.name not in left_out:
                digest.update(file.relative_to(driver).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def expects_progress(case: Case) -> bool:
    """Whether the case expects something of the raw progress, which is cached only then."""
    expectations = [step.expect for step in case.steps]
    for entry in case.differs:
        expectations += [entry.expect, *entry.steps.values()]
    return any(
        expectation.progress is not None
        # The raw progress alone tells how many rows each operator drops.
        or isinstance(expectation.dropped, tuple)
        or any(isinstance(batch.dropped, tuple) for batch in expectation.batches or ())
        for expectation in expectations
        if expectation is not None
    )
