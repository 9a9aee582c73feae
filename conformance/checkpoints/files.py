"""The files of a checkpoint, wherever it is: a folder of this machine, or a URL of an object store."""

from __future__ import annotations

import errno
import os
import re
import stat
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from conformance.core.errors import WrongUsage
from conformance.core.wording import redact

MOST_BYTES = 64 * 1024 * 1024
"""No log entry, schema or metadata file is larger."""
MOST_BYTES_OF_STATE = 1 << 30
"""No file of the state that is read or copied is larger."""

MOST_UNPACKED = 256 * 1024**2
"""In bytes. A zip that RocksDB writes is small: it holds lists of files and settings, and the rows are in files beside it."""
MOST_CHECKED = 1024 * 1024
"""In bytes. The content of a larger file is not compared with its checksums, only its size with their number."""


class NoSuchCheckpoint(WrongUsage):
    """There is no such folder, it cannot be read, or it is not a checkpoint."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(redact(f"{where}: {why}"))
        self.where = where


class DamagedCheckpoint(WrongUsage):
    """A file of the checkpoint does not have the format that Spark writes."""

    def __init__(self, path: PurePosixPath, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path


@dataclass(frozen=True)
class MissingFile:
    """A file or folder that a checkpoint names or needs, and that is missing or not whole."""

    path: PurePosixPath
    needed_by: str
    """What names or needs it: ``state/0/0/4.zip names it``."""
    damage: str = ""
    """``it is cut off or damaged: it has 12 bytes, not 1,024``; empty if it is missing."""

    def __str__(self) -> str:
        return f"{self.path}: {self.damage or 'it is missing'}; {self.needed_by}"


class Files(Protocol):
    """The files of a checkpoint; nothing is ever written."""

    @property
    def where(self) -> str:
        """The path or URL of the checkpoint, without credentials."""

    @property
    def sizes(self) -> Mapping[PurePosixPath, int]:
        """Path relative to the checkpoint → bytes, of every file."""

    def read(self, path: PurePosixPath) -> bytes:
        """The content of a file; raises `NoSuchCheckpoint` if it cannot be read, is a link or a pipe, or is too large."""


@dataclass(frozen=True)
class Folder:
    root: Path
    sizes: Mapping[PurePosixPath, int]

    @classmethod
    def open(cls, root: Path) -> Folder:
        """List a folder; raises `NoSuchCheckpoint` if it does not exist, or cannot be read."""
        if not root.is_dir():
            why = "this is a file, not a checkpoint folder" if root.exists() else "there is no such folder"
            raise NoSuchCheckpoint(str(root), why)
        return cls(root, dict(_listed(root)))

    @property
    def where(self) -> str:
        return str(self.root)

    def read(self, path: PurePosixPath) -> bytes:
        _check_size(self, path)
        try:
            # A link may show any file of this machine, and a pipe waits for ever.
            with open(self.root / path, "rb", opener=_without_following) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise NoSuchCheckpoint(str(self.root / path), "this is not a file")
                return file.read(_most(path))
        except OSError as error:
            link = error.errno == errno.ELOOP
            why = "this is a link, which is not followed" if link else error.strerror or str(error)
            raise NoSuchCheckpoint(str(self.root / path), why) from error


@dataclass(frozen=True)
class ObjectStore:
    """A checkpoint behind a URL that `fsspec` can read: ``s3://…``, ``gs://…``, ``abfss://…``, ``hdfs://…``."""

    where: str
    sizes: Mapping[PurePosixPath, int]
    _root: str = field(repr=False)
    _store: Any = field(repr=False)

    @classmethod
    def open(cls, url: str) -> ObjectStore:
        """List what is behind a URL; raises `NoSuchCheckpoint` if it cannot be read, or what reads it is not installed."""
        try:
            import fsspec
        except ImportError:
            install = "pip install 'watermark-conformance[storage]'"
            raise NoSuchCheckpoint(url, f"to read object stores, install fsspec: {install}") from None
        try:
            store, root = fsspec.core.url_to_fs(url)
            entries = store.find(root, detail=True)
        except Exception as error:  # each store has errors of its own
            raise NoSuchCheckpoint(url, f"{type(error).__name__}: {error}") from error
        if not entries:
            raise NoSuchCheckpoint(url, "nothing is there")
        sizes = {
            PurePosixPath(path).relative_to(PurePosixPath(root)): int(entry.get("size") or 0)
            for path, entry in entries.items()
        }
        for path in sizes:
            if ".." in path.parts:  # a copy of it would be elsewhere
                raise NoSuchCheckpoint(f"{url}/{path}", "a file of a checkpoint has no `..` in its name")
        return cls(redact(url), sizes, root, store)

    def read(self, path: PurePosixPath) -> bytes:
        _check_size(self, path)
        try:
            return bytes(self._store.cat_file(f"{self._root.rstrip('/')}/{path}"))
        except Exception as error:  # each store has errors of its own
            raise NoSuchCheckpoint(f"{self.where}/{path}", f"{type(error).__name__}: {error}") from error


def open_files(where: str) -> Files:
    """The files of a checkpoint by its path or URL; raises `NoSuchCheckpoint` if it cannot be read."""
    if where.startswith("file:"):
        where = "/" + where.removeprefix("file:").lstrip("/")
    return ObjectStore.open(where) if "://" in where else Folder.open(Path(where))


def fault(files: Files, path: PurePosixPath, needed_by: str, size: int | None = None) -> Iterator[MissingFile]:
    """Yield the file if it is missing or not whole; ``size``: its bytes as the checkpoint names them, None if it does not."""
    there = files.sizes.get(path)
    if there is None:
        yield MissingFile(path, needed_by)
    elif size not in (None, there) or (size is None and not there) or not is_whole(files, path, there):
        wanted = f", not {size:,}" if size not in (None, there) else ""
        yield MissingFile(path, needed_by, f"it is cut off or damaged: it has {there:,} bytes{wanted}")


def is_whole(files: Files, path: PurePosixPath, size: int) -> bool:
    """Tell whether a file fits the checksum files beside it.

    Spark's ``4.delta.crc`` (4.1 and newer) has its size. Hadoop's ``.4.delta.crc``, on a local file system, has a header with the
    length of a chunk, then the CRC of each chunk.
    """
    beside = (path.with_name(f"{dot}{path.name}.crc") for dot in ("", "."))
    spark, hadoop = (files.read(sums) if sums in files.sizes else b"" for sums in beside)
    known = re.search(rb'"mainFileSize":(\d+)', spark)
    chunk = int.from_bytes(hadoop[4:8], "big") if hadoop.startswith(b"crc\0") else 0
    if not chunk or size > MOST_CHECKED:
        return (known is None or int(known[1]) == size) and (not chunk or -(-size // chunk) * 4 == len(hadoop) - 8)
    content = files.read(path)
    crcs = (zlib.crc32(content[at : at + chunk]).to_bytes(4, "big") for at in range(0, size, chunk))
    return hadoop[8:] == b"".join(crcs)


def _without_following(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _listed(root: Path) -> list[tuple[PurePosixPath, int]]:
    def fail(error: OSError) -> None:
        # A running query removes folders.
        if not isinstance(error, FileNotFoundError):
            raise NoSuchCheckpoint(str(error.filename), error.strerror or str(error)) from error

    listed = []
    for folder, folders, names in os.walk(root, onerror=fail):
        folders.sort()  # the commits before the state, which a running query writes first
        for link in (path for name in folders if (path := Path(folder, name)).is_symlink()):
            raise NoSuchCheckpoint(str(link), "this is a link, which is not followed")
        for name in names:
            path = Path(folder, name)
            with suppress(FileNotFoundError):  # a running query replaces its files
                listed.append((PurePosixPath(path.relative_to(root).as_posix()), path.lstat().st_size))
    return listed


def _most(path: PurePosixPath) -> int:
    return MOST_BYTES_OF_STATE if path.suffix in (".delta", ".snapshot", ".sst") else MOST_BYTES


def _check_size(files: Files, path: PurePosixPath) -> None:
    if files.sizes.get(path, 0) > (most := _most(path)):
        raise NoSuchCheckpoint(f"{files.where}/{path}", f"this file has more than {most // 1024**2} MiB")
