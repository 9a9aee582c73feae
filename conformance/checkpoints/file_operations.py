"""What an engine does to the files of a folder, operation by operation, and the folder as it is between two of them."""

from __future__ import annotations

import hashlib
import os
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["create", "write", "rename", "remove", "make-folder"]


@dataclass(frozen=True)
class FileContent:
    """A file: its bytes and, in ns, when it was modified; file sources read files in the order of these times."""

    content: bytes
    modified: int

    def part(self, share: float) -> FileContent:
        """The file as a power failure may leave it: only the first of its bytes."""
        return FileContent(self.content[: int(len(self.content) * share)], self.modified)


@dataclass(frozen=True)
class FileOperation:
    """One operation. Paths are relative to the recorded folder, with slashes."""

    kind: Kind
    """``create``: an empty file is there; ``write``: the file has all of its bytes and is closed; ``remove``: file or folder."""
    path: str
    file: FileContent | None = None
    """Of ``write``."""
    to: str | None = None
    """Of ``rename``."""

    @property
    def result(self) -> str:
        """The path that it is about once it is done."""
        return self.to or self.path

    def __str__(self) -> str:
        return f"{self.kind} {self.path}" + (f" to {self.to}" if self.to else "")


@dataclass(frozen=True)
class FolderContent:
    """All files and folders below one folder."""

    files: Mapping[str, FileContent] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()

    @classmethod
    def read(cls, root: Path) -> FolderContent:
        """What a folder holds; nothing if there is none."""
        files, folders = {}, set()
        for path in root.rglob("*"):
            name = path.relative_to(root).as_posix()
            if path.is_dir():
                folders.add(name)
            else:
                files[name] = FileContent(path.read_bytes(), path.stat().st_mtime_ns)
        return cls(files, frozenset(folders))

    def write(self, root: Path) -> None:
        """Make the folder, which must not exist."""
        root.mkdir(parents=True)
        for name in sorted(self.folders):
            (root / name).mkdir(parents=True, exist_ok=True)
        for name, file in self.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.content)
            os.utime(path, ns=(file.modified, file.modified))

    def after(self, operation: FileOperation) -> FolderContent:
        """The content once the operation is done."""
        path, files, folders = operation.path, dict(self.files), self.folders
        match operation.kind:
            case "make-folder":
                folders = folders | {path}
            case "create":
                files[path] = FileContent(b"", 0)
            case "write":
                assert operation.file is not None
                files[path] = operation.file
            case "remove":
                files = {name: file for name, file in files.items() if not _within(name, path)}
                folders = frozenset(name for name in folders if not _within(name, path))
            case "rename":
                assert operation.to is not None
                files = _moved(files, path, operation.to)
                folders = frozenset(_renamed(name, path, operation.to) for name in folders)
        return FolderContent(files, folders)

    def with_file(self, path: str, file: FileContent | None) -> FolderContent:
        """The same with another content of one file; None removes it."""
        others = {name: content for name, content in self.files.items() if name != path}
        return FolderContent(others if file is None else {**others, path: file}, self.folders)

    @property
    def digest(self) -> str:
        """Equal for equal names and bytes: what a restarted query can see."""
        seen = hashlib.sha256()
        for name, file in sorted(self.files.items()):
            seen.update(f"{name}\0{len(file.content)}\0".encode())
            seen.update(file.content)
        seen.update("\0".join(sorted(self.folders)).encode())
        return seen.hexdigest()


def checksum_of(path: str) -> str:
    """Where Hadoop keeps the checksum of a file."""
    folder, name = posixpath.split(path)
    return posixpath.join(folder, f".{name}.crc")


def _within(name: str, path: str) -> bool:
    return name == path or name.startswith(f"{path}/")


def _renamed(name: str, path: str, to: str) -> str:
    return to + name[len(path) :] if _within(name, path) else name


def _moved(files: Mapping[str, FileContent], path: str, to: str) -> dict[str, FileContent]:
    kept = {name: file for name, file in files.items() if not _within(name, path)}
    return {**kept, **{_renamed(name, path, to): file for name, file in files.items() if _within(name, path)}}
