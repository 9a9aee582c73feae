"""The cache: where environments and answers are, what stands there and is made by one process at a time, and its removal."""

import os
import re
import shutil
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil
from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from conformance.core.errors import ended_by_stop
from harness.errors import HarnessError
from harness.progress import ProgressCallback

Made = TypeVar("Made")


def cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """The absolute cache directory: ``CONFORMANCE_CACHE`` or the user's. It may not exist yet."""
    chosen = environ.get("CONFORMANCE_CACHE")
    return Path(chosen).expanduser().resolve() if chosen else user_cache_path("watermark-conformance", appauthor=False)


def answers_file(environ: Mapping[str, str] = os.environ) -> Path:
    """The file with cached answers of engines: ``CONFORMANCE_ANSWERS`` or ``answers.sqlite`` in the cache directory."""
    chosen = environ.get("CONFORMANCE_ANSWERS")
    return Path(chosen).expanduser().resolve() if chosen else cache_dir(environ) / "answers.sqlite"


def make_once(
    path: Path, ready: Callable[[], Made | None], make: Callable[[], Made], on_progress: ProgressCallback
) -> Made:
    """Return what is at a path of the cache. If it is not ready, one process makes it; the others say that they wait for it.

    Raises:
        HarnessError: the cache cannot be read or written, besides what ``make`` raises.
    """
    if (made := ready()) is not None:
        return made
    lock = FileLock(f"{path}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            on_progress(f"waiting for another process that is making {path.name}")
            stopped = threading.Event()
            with ended_by_stop(stopped.set):
                while not lock.is_locked:
                    with suppress(Timeout):
                        lock.acquire(timeout=0.5)
                    if stopped.is_set():
                        raise HarnessError(f"stopped while another process makes {path.name}") from None
        return make() if (made := ready()) is None else made
    except OSError as error:
        why = f"{error.filename or path}: {error.strerror or error}"
        raise HarnessError(
            f"the cache cannot be used: {why}. CONFORMANCE_CACHE names another folder for it."
        ) from error
    finally:
        lock.release()


_OURS = re.compile(r"\d+\.\d+\.\d+-[0-9a-f]{12}")
_REMOVED = re.compile(r"\.removed-[0-9a-f]{8}")
"""What an interrupted removal left."""
_FILES = ("pyvenv.cfg", "environment.json")
"""An environment has one of them as soon as anything is installed in it."""


@dataclass(frozen=True)
class StoredEnvironment:
    """An environment on disk, complete or not."""

    root: Path
    size: int
    """Bytes, with those of its class archives."""
    archives: int
    """Bytes of its class archives."""


def stored_environments(cache: Path) -> Iterator[StoredEnvironment]:
    """The environments in a cache directory, by name.

    Only folders that have the name and the files of one: ``CONFORMANCE_CACHE`` may be a folder with others of the user. A link is none.
    """
    for root in sorted((cache / "environments").glob("*/")):
        made = _OURS.fullmatch(root.name) and any((root / name).is_file() for name in _FILES)
        if not root.is_symlink() and (made or _REMOVED.fullmatch(root.name)):
            yield StoredEnvironment(root, _size(root), _size(root / "class-archives"))


def remove_environment(environment: StoredEnvironment) -> str | None:
    """Remove an environment and its class archives; return why it, or a part, is kept: it is in use, or cannot be removed."""
    try:
        with FileLock(f"{environment.root}.lock", timeout=0):
            if (process := _user(environment.root)) is not None:
                return f"process {process} runs in it"
            # Renamed first: another process must not find an environment of which half is removed.
            gone = environment.root.with_name(f".removed-{uuid.uuid4().hex[:8]}")
            environment.root.rename(gone)
            shutil.rmtree(gone)
    except Timeout:
        return "another process makes it"
    except OSError as error:
        return f"{error.filename or environment.root}: {error.strerror or error}"
    return None


def _user(root: Path) -> int | None:
    """A process whose program, or whose jars, are in a directory."""
    for process in psutil.process_iter(["cmdline"]):
        if any(f"{root}/" in argument for argument in (process.info["cmdline"] or ())[:4]):
            return int(process.pid)
    return None


def _size(directory: Path) -> int:
    return sum(file.lstat().st_size for file in directory.rglob("*"))
