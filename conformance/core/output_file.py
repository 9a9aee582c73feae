"""Files that commands write: complete or not there, and never in place of a file of another kind."""

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, ClassVar, Self, TextIO

LOOKED_AT = 1 << 20
"""The most bytes that are read of an existing file to see what it is."""
_OF_THE_MACHINE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.EFBIG})


class CannotWriteFile(Exception):
    """An output file cannot be written: exit code 2 if another path would help, 3 if the machine is at fault, as with a full disk."""

    def __init__(self, path: Path, why: OSError) -> None:
        super().__init__(f"cannot write {path}: {why.strerror or why}")
        self.exit_code = 3 if why.errno in _OF_THE_MACHINE else 2


class OtherContent(Exception):
    """The file exists and is of another kind than the command writes, so replacing it would destroy something else."""

    exit_code: ClassVar[int] = 2

    def __init__(self, path: Path, kind: str) -> None:
        super().__init__(f"{path} exists and is not {kind}; choose another name, or remove it")


class BeingWritten(Exception):
    exit_code: ClassVar[int] = 2

    def __init__(self, path: Path) -> None:
        super().__init__(f"another run is writing {path}; wait for it, or choose another name")


@dataclass(frozen=True)
class FileKind:
    """What a command writes, and may therefore replace."""

    name: str
    """The kind with its article: ``a results file``."""
    recognizes: Callable[[bytes], bool]
    """Whether a file that begins like this is of the kind. An empty file can always be replaced."""
    encode: Callable[[BinaryIO], bytes] | None = None
    """What the file holds in the end, made of what was written: its compressed form."""
    synced: bool = True
    """Whether the file is safe on the disk before it replaces another; not for pages, of which there are thousands."""


def any_content(_: bytes) -> bool:
    """Recognize every file: the user chose this one to be changed."""
    return True


class OutputFile:
    """A file that is written beside its place and takes it when it is complete: ``results.jsonl.part``, then ``results.jsonl``.

    The file beside it is locked, so two processes never write the same file. A context manager: leaving it by an exception removes
    what was written.
    """

    def __init__(self, path: Path, kind: FileKind) -> None:
        """Begin the file; raise `CannotWriteFile`, `OtherContent` or `BeingWritten`."""
        self.path = path
        self._kind = kind
        # A link stays a link.
        self._final = Path(os.path.realpath(path))
        self.part = self._final.with_name(f"{self._final.name}.part")
        try:
            self._in_place = _is_special(self._final)
            if self._in_place and kind.encode is not None:
                raise OSError(errno.ESPIPE, "only a regular file can be compressed")
            if not self._in_place:
                self._final.parent.mkdir(parents=True, exist_ok=True)
                if _is_special(self.part):
                    raise OSError(errno.EEXIST, f"{self.part} is not a regular file; remove it")
                for there in (self._final, self.part):
                    if not _replaceable(there, kind):
                        raise OtherContent(path if there is self._final else there, kind.name)
            descriptor = _opened_in_place(self._final) if self._in_place else self._locked()
            self.file: TextIO = os.fdopen(descriptor, "w", encoding="utf-8", newline="\n")
        except OSError as error:
            raise CannotWriteFile(path, error) from None

    def write(self, text: str) -> None:
        """Append text and flush it; raise `CannotWriteFile`."""
        try:
            self.file.write(text)
            self.file.flush()
        except OSError as error:
            raise CannotWriteFile(self.path, error) from None

    def complete(self) -> None:
        """Put the file in its place; raise `CannotWriteFile`."""
        try:
            self.file.flush()
            if not self._in_place:
                if self._kind.encode is not None:
                    with self.part.open("rb") as written:
                        content = self._kind.encode(written)
                    self.file.seek(0)
                    self.file.truncate()
                    self.file.buffer.write(content)
                    self.file.flush()
                with suppress(FileNotFoundError):
                    os.fchmod(self.file.fileno(), stat.S_IMODE(self._final.stat().st_mode))
                if self._kind.synced:
                    # Else the new name may outlive a power failure, and the content not.
                    os.fsync(self.file.fileno())
                self.part.replace(self._final)
        except OSError as error:
            raise CannotWriteFile(self.path, error) from None
        self.close()

    def discard(self) -> None:
        """Remove what was written."""
        if not self._in_place:
            # What cannot be removed is replaced by the next writer; the error that led here says more.
            with suppress(OSError):
                self.part.unlink()
        self.close()

    @property
    def closed(self) -> bool:
        return self.file.closed

    def close(self) -> None:
        """Leave what was written beside the place."""
        # What cannot be flushed is lost on a full disk; the error that led here says so.
        with suppress(OSError):
            self.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and not self.closed:
                self.complete()
        finally:
            if not self.closed:
                self.discard()

    def _locked(self) -> int:
        """Return a descriptor of the empty file beside the place, which no other process has."""
        while True:
            # A link planted under this name in a shared folder would lead elsewhere.
            descriptor = os.open(self.part, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
            if not _lock(descriptor):
                os.close(descriptor)
                raise BeingWritten(self.path)
            # The process that had the lock may have moved the file to its place in the meantime.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), self.part.stat()):
                    os.ftruncate(descriptor, 0)
                    return descriptor
            os.close(descriptor)


def write_file(path: Path, text: str, kind: FileKind) -> None:
    """Write a whole file; raises as `OutputFile`."""
    with OutputFile(path, kind) as file:
        file.write(text)


def _is_special(path: Path) -> bool:
    """Return whether it is a device or a pipe, ``/dev/stdout``: nothing can be put in its place; raises an `OSError` for a folder."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return not stat.S_ISREG(mode)


def _opened_in_place(path: Path) -> int:
    if not path.is_fifo():
        return os.open(path, os.O_WRONLY)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        # Without O_NONBLOCK, opening a pipe waits until a program reads it.
        unread = OSError(error.errno, "nobody reads this pipe; start its reader first, or choose another name")
        raise unread if error.errno == errno.ENXIO else error from None
    os.set_blocking(descriptor, True)
    return descriptor


def _replaceable(path: Path, kind: FileKind) -> bool:
    try:
        with path.open("rb") as file:
            start = file.read(LOOKED_AT)
    except FileNotFoundError:
        return True
    return not start or kind.recognizes(start)


def _lock(descriptor: int) -> bool:
    try:
        import fcntl
    except ImportError:  # No POSIX: there is nothing to lock with.
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # A file system without locks, as some network ones.
        return True
    return True
