"""Records what an engine does to the files of a folder, in order, while it runs: Linux's inotify.

Only the kernel sees every operation of every writer: Spark's logs, its state stores, the native code of RocksDB. Libraries for inotify
pair, delay and merge events for programs that want to know what changed; here each event counts, in its order.
"""

import ctypes
import os
import select
import struct
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Self

from conformance.checkpoints.crash_images import FileContent, FileOperation, FileOperationKind
from harness.errors import HarnessError

_ATTRIBUTES, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x04, 0x08, 0x40, 0x80, 0x100, 0x200
_OVERFLOW, _IGNORED, _IS_FOLDER, _ONLY_FOLDERS = 0x4000, 0x8000, 0x40000000, 0x01000000
_MASK = _ATTRIBUTES | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _ONLY_FOLDERS
_HEADER = struct.Struct("iIII")
"""Watch, mask, cookie of a rename, and length of the name that follows."""


class CannotRecord(HarnessError):
    """This operating system reports no operations on files."""

    def __init__(self, why: str) -> None:
        super().__init__(f"operations on files cannot be recorded: {why}. Linux with inotify is needed.")


class RecordingIncomplete(HarnessError):
    """Some operations were not seen: the recording must be repeated."""

    def __init__(self, what: str, folders: frozenset[str] = frozenset()) -> None:
        super().__init__(
            f"the recording of file operations is incomplete ({what}): the machine was too busy; try again"
        )
        self.folders = folders
        """New folders: what came into them before they were watched has no order. If they are there from the start, it has."""


@dataclass
class _Operation:
    kind: FileOperationKind
    path: str
    to: str | None = None
    content: FileContent | None = None
    guessed: bool = False
    """Whether it was found by looking into a new folder and not told by an event."""


class FileRecorder:
    """Records from the start of the context to its end. Raises ``CannotRecord`` if there is no inotify.

    Args:
        root: the folder to watch, with everything below it; it exists.
        keep: an empty folder on the same file system, for links to new files: many are removed or renamed soon.
        loose: a folder in which the order of operations does not matter.
    """

    def __init__(self, root: Path, keep: Path, *, loose: str | None = None) -> None:
        self._keep = keep
        self._loose = (f"{loose}/",) if loose else ()
        self._folders: dict[int, str] = {}
        self._operations: list[_Operation] = []
        self._links: dict[str, Path] = {}
        """Path of a new file → the link that keeps its content."""
        self._numbers = count()
        self._known: set[str] = set()
        """Paths that were there, or came since."""
        self._moving: dict[int, str] = {}
        """Cookie of a rename → the old path."""
        self._lost: str | None = None
        if sys.platform != "linux":
            raise CannotRecord(f"this is {sys.platform}")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._inotify: int = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._inotify < 0:
            raise CannotRecord(os.strerror(ctypes.get_errno()))
        self._stop, self._stopped = os.pipe()
        # It may be renamed while events are still being read.
        self._opened = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        self._root = Path(f"/proc/self/fd/{self._opened}")
        self._thread = threading.Thread(target=self._run, name="file-recorder", daemon=True)

    def __enter__(self) -> Self:
        self._watch("", existing=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.write(self._stopped, b".")
        self._thread.join()
        for descriptor in (self._inotify, self._stop, self._stopped, self._opened):
            os.close(descriptor)

    def operations(self) -> tuple[FileOperation, ...]:
        """Return what was recorded, once the context has ended. Raises ``RecordingIncomplete`` if events or a content were lost."""
        if self._lost is not None:
            raise RecordingIncomplete(self._lost)
        return tuple(self._finished())

    def _finished(self) -> Iterator[FileOperation]:
        if any(operation.guessed and not operation.path.startswith(self._loose) for operation in self._operations):
            made = frozenset(operation.path for operation in self._operations if operation.kind == "make-folder")
            raise RecordingIncomplete("files came into new folders before these were watched", made)
        for at, operation in enumerate(self._operations):
            if operation.kind == "write" and operation.content is None:
                if not self._removed(operation.path, self._operations[at + 1 :]):
                    raise RecordingIncomplete(f"{operation.path} was gone too soon")
                # Its bytes are unknown. It stays empty until it is removed, as if they had never reached the disk.
                continue
            yield FileOperation(operation.kind, operation.path, operation.content, operation.to)

    @staticmethod
    def _removed(path: str, later: Sequence[_Operation]) -> bool:
        """Whether a file is removed later, under its name or the one it gets."""
        for operation in later:
            if operation.path == path and operation.kind == "remove":
                return True
            if operation.path == path and operation.to is not None:
                path = operation.to
        return False

    def _run(self) -> None:
        try:
            while True:
                ready, _, _ = select.select([self._inotify, self._stop], [], [])
                if self._inotify in ready:
                    self._read()
                elif self._stop in ready:  # all events before the end have been read
                    return
        except (OSError, CannotRecord) as error:
            self._lost = str(error)

    def _read(self) -> None:
        data = os.read(self._inotify, 1 << 16)
        while data:
            watch, mask, cookie, length = _HEADER.unpack_from(data)
            name = data[_HEADER.size : _HEADER.size + length].rstrip(b"\0").decode()
            data = data[_HEADER.size + length :]
            if mask & _OVERFLOW:
                self._lost = "more events than the kernel keeps"
            elif not mask & _IGNORED and watch in self._folders:
                self._event(_join(self._folders[watch], name), mask, cookie)

    def _event(self, path: str, mask: int, cookie: int) -> None:
        if mask & _CREATE and mask & _IS_FOLDER:
            self._new_folder(path)
        elif mask & _CREATE:
            self._forget_guess(path)
            self._created(path)
        elif mask & _CLOSE_WRITE:
            if self._forget_guess(path):
                self._created(path)
            self._written(path)
        elif mask & _MOVED_FROM:
            self._moving[cookie] = path
        elif mask & _MOVED_TO:
            self._renamed(self._moving.pop(cookie, None), path)
        elif mask & _DELETE:
            self._operations.append(_Operation("remove", path))
        elif mask & _ATTRIBUTES and not mask & _IS_FOLDER:
            self._dated(path)

    def _new_folder(self, path: str) -> None:
        self._known.add(path)
        self._operations.append(_Operation("make-folder", path))
        self._watch(path)

    def _created(self, path: str, *, guessed: bool = False) -> None:
        """Note a new file, and keep its content by a link."""
        self._operations.append(_Operation("create", path, guessed=guessed))
        self._known.add(path)
        link = self._keep / str(next(self._numbers))
        try:
            os.link(self._root / path, link)
        except FileNotFoundError:
            self._links.pop(path, None)
        else:
            self._links[path] = link

    def _written(self, path: str, *, guessed: bool = False) -> None:
        content = self._content(self._links.get(path), path)
        self._operations.append(_Operation("write", path, content=content, guessed=guessed))

    def _dated(self, path: str) -> None:
        """Keep the modification time that a writer set after it had closed a file: a file source tells new files by it."""
        for operation in reversed(self._operations):
            if operation.kind == "write" and operation.path == path:
                with suppress(FileNotFoundError):
                    modified = (self._links.get(path) or self._root / path).stat().st_mtime_ns
                    operation.content = operation.content and replace(operation.content, modified=modified)
                break

    def _renamed(self, path: str | None, to: str) -> None:
        if path is None:
            self._lost = f"{to} was renamed from a folder that was not watched yet"
            return
        self._forget_guess(to)
        if path not in self._known:
            # It came before its folder was watched, and nobody has seen it under its old name.
            self._operations.append(_Operation("create", path, guessed=True))
            self._operations.append(_Operation("write", path, guessed=True))
        self._known.add(to)
        self._operations.append(_Operation("rename", path, to))
        for watch, folder in self._folders.items():
            if folder == path or folder.startswith(f"{path}/"):
                self._folders[watch] = to + folder[len(path) :]
        if path in self._links:
            self._links[to] = self._links.pop(path)
        # It was renamed before its content could be kept: here it is.
        for operation in reversed(self._operations):
            if operation.kind == "write" and operation.path == path:
                operation.content = operation.content or self._content(None, to)
                break

    def _watch(self, path: str, *, existing: bool = False) -> None:
        """Watch a folder. ``existing``: what is in it was there before; else it is new, and so is what is in it."""
        folder = self._root / path
        watch = self._libc.inotify_add_watch(self._inotify, os.fsencode(folder), _MASK)
        if watch < 0:
            if ctypes.get_errno() not in (2, 20):  # it is gone already
                raise CannotRecord(f"{folder}: {os.strerror(ctypes.get_errno())}")
            return
        self._folders[watch] = path
        for entry in _entries(folder):
            inside = _join(path, entry.name)
            if existing:
                self._known.add(inside)
            if entry.is_dir():
                if not existing and _Operation("make-folder", inside) not in self._operations:
                    self._operations.append(_Operation("make-folder", inside))
                self._watch(inside, existing=existing)
            elif not existing and inside not in self._known:
                # It may have come before the folder was watched; an event that still comes takes the place of this.
                self._created(inside, guessed=True)
                self._written(inside, guessed=True)

    def _forget_guess(self, path: str) -> bool:
        """Drop what was found by looking; returns whether there was such an operation."""
        before = len(self._operations)
        self._operations = [known for known in self._operations if not (known.guessed and known.path == path)]
        return len(self._operations) < before

    def _content(self, link: Path | None, path: str) -> FileContent | None:
        for place in filter(None, (link, self._root / path)):
            with suppress(FileNotFoundError):
                return FileContent(place.read_bytes(), place.stat().st_mtime_ns)
        return None


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What is in a folder, oldest first; without what goes away meanwhile."""
    entries = []
    with suppress(FileNotFoundError):
        for entry in os.scandir(folder):
            with suppress(FileNotFoundError):
                entries.append((entry.stat().st_ctime_ns, entry.name, entry))
    return [entry for _, _, entry in sorted(entries)]


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
