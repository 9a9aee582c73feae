"""Checkpoints that a crash in a micro-batch may leave, from a recording of its file operations.

A process that is killed leaves what it has done: a prefix of the operations; these are all there, also with the next rows, which may
arrive before the restart. A power failure may lose bytes of any file that was not synced, and storage without atomic renames a rename
that the query took for done; these are one file each, and a sample of several files together.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from random import Random
from typing import Literal, TypeAlias, get_args

FileOperationKind: TypeAlias = Literal["create", "write", "rename", "remove", "make-folder"]


@dataclass(frozen=True)
class FileContent:
    """A file: its bytes and, in ns, when it was modified; file sources read files in the order of these times."""

    content: bytes
    modified: int

    def part(self, share: float) -> FileContent:
        """The file as a power failure may leave it: only this share of its bytes, the first."""
        return FileContent(self.content[: int(len(self.content) * share)], self.modified)


@dataclass(frozen=True)
class FileOperation:
    """One operation. Paths are relative to the recorded folder, with slashes."""

    kind: FileOperationKind
    """``create``: an empty file is there; ``write``: the file has all of its bytes and is closed; ``remove``: file or folder."""
    path: str
    file: FileContent | None = None
    """What ``write`` writes."""
    to: str | None = None
    """The path to which ``rename`` moves it."""

    @property
    def result(self) -> str:
        """The path that it is about once it is done."""
        return self.to or self.path

    def __str__(self) -> str:
        return f"{self.kind} {self.path}" + (f" to {self.to}" if self.to else "")


@dataclass(frozen=True)
class FolderContent:
    """All files and folders below a folder."""

    files: Mapping[str, FileContent] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()

    @classmethod
    def read(cls, root: Path) -> FolderContent:
        """The content of a folder; nothing if there is none."""
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
                moved = {
                    _renamed(name, path, operation.to): file for name, file in files.items() if _within(name, path)
                }
                files = {**{name: file for name, file in files.items() if not _within(name, path)}, **moved}
                folders = frozenset(_renamed(name, path, operation.to) for name in folders)
        return FolderContent(files, folders)

    def with_file(self, path: str, file: FileContent | None) -> FolderContent:
        """The same content, with another content of a file; None removes the file."""
        others = {name: content for name, content in self.files.items() if name != path}
        return FolderContent(others if file is None else {**others, path: file}, self.folders)

    @property
    def digest(self) -> str:
        """Equal for equal names and bytes: what a restarted query can see."""
        hashed = hashlib.sha256()
        for name, file in sorted(self.files.items()):
            hashed.update(f"{name}\0{len(file.content)}\0".encode())
            hashed.update(file.content)
        hashed.update("\0".join(sorted(self.folders)).encode())
        return hashed.hexdigest()


def checksum_of(path: str) -> str:
    """Where Hadoop keeps the checksum of a file."""
    folder, name = posixpath.split(path)
    return posixpath.join(folder, f".{name}.crc")


def _within(name: str, path: str) -> bool:
    return name == path or name.startswith(f"{path}/")


def _renamed(name: str, path: str, to: str) -> str:
    return to + name[len(path) :] if _within(name, path) else name


Fault: TypeAlias = Literal["killed", "arrived", "torn", "empty", "lost", "unsynced", "power", "failed", "late", "stale"]
FAULTS: tuple[Fault, ...] = get_args(Fault)
"""What the crash did.

``killed``: nothing else, every operation before it is done. ``arrived``: the same, and the next rows arrive before the restart.
``torn``: the last file has half of its bytes; ``empty``: it has none. ``lost``: the micro-batch is committed, but one of its files is not
there, nor is its checksum: a rename was lost. ``unsynced``: it is committed, but one of its files has half of its bytes. ``power``: after
an operation, any of the files written so far are as they were before the micro-batch, empty or cut off anywhere, any of the removed files
may be back, and an earlier file may be damaged.

The others are what Spark's own ``FailureInjectionCheckpointFileManager`` (SPARK-51714) does to files of the state, and which it tests with
RocksDB. ``failed``: a file was not created, so the micro-batch failed; other tasks finished. ``late``: a file was closed only after the
replay, so the version of the first attempt replaces that of the replay. ``stale``: the rename of the replay did not overwrite the file of
the first attempt.
"""

POWER_FAILURES = 12
"""Images of the fault ``power`` for each micro-batch: there are more than can be tried, so they are drawn, from one seed."""

_CHECKPOINT, _STREAMS, _STAGING = "checkpoint/", "streams/", "streams/.staging/"


@dataclass(frozen=True)
class CrashImage:
    """One state in which a crash leaves the directory of a query: its streams and its checkpoint."""

    fault: Fault
    number: int
    """How many operations of the micro-batch are done."""
    operation: str
    """The last of them, or the lost operation."""
    content: FolderContent
    emitted: frozenset[int]
    """Micro-batches whose rows the sink has got: the query began to commit them."""
    overlay: FolderContent | None = None
    """Of ``late`` and ``stale``: the files that are put in the place of those that the replay writes."""

    @property
    def name(self) -> str:
        """The name in results: ``killed-12``."""
        return f"{self.fault}-{self.number}"

    def with_rows(self, rows: Mapping[str, FileContent]) -> CrashImage:
        """The same crash, after which these files of rows arrive."""
        content = replace(self.content, files={**self.content.files, **rows})
        return replace(self, fault="arrived", content=content)


@dataclass(frozen=True)
class Recording:
    """The file operations of a query's directory while some of its micro-batches ran."""

    before: FolderContent
    operations: tuple[FileOperation, ...]

    def content_after(self, count: int) -> FolderContent:
        """The directory once so many operations are done."""
        return reduce(FolderContent.after, self.operations[:count], self.before)

    def window(self, first: int, last: int) -> slice:
        """The operations of some micro-batches: from the arrival of their rows to that of the next rows. If rows do not arrive as files:
        from the commit of the micro-batch before to the plan of the next one. Raises `ValueError` if a micro-batch is not there."""
        planned = self._at(f"{_CHECKPOINT}offsets/{first}", first)
        committed = self._at(f"{_CHECKPOINT}commits/{last}", last)
        arrivals = [at for at, operation in enumerate(self.operations) if operation.result.startswith(_STREAMS)]
        commit = f"{_CHECKPOINT}commits/{first - 1}"
        earlier = [at for at, operation in enumerate(self.operations) if operation.result == commit]
        later = [at for at, operation in enumerate(self.operations) if _plans(operation)]
        start = max((at + 1 for at in (*arrivals, *earlier) if at < planned), default=0)
        end = min((at for at in (*arrivals, *later) if at > committed), default=len(self.operations))
        return slice(start, end)

    def next_rows(self, window: slice) -> Mapping[str, FileContent]:
        """The files of the next rows after a window; empty if none arrive, or if they do not arrive as files."""
        planned = (at for at in range(window.stop, len(self.operations)) if _plans(self.operations[at]))
        there = self.content_after(window.stop).files
        later = self.content_after(next(planned, window.stop)).files
        return {
            path: file
            for path, file in later.items()
            if path.startswith(_STREAMS) and not path.startswith(_STAGING) and path not in there
        }

    def _at(self, path: str, batch: int) -> int:
        for at, operation in enumerate(self.operations):
            if operation.result == path and operation.kind in ("rename", "write"):
                return at
        raise ValueError(f"the recording has no micro-batch {batch}")


def crash_images(
    recording: Recording, window: slice, rows: Mapping[str, FileContent] | None = None
) -> Iterator[CrashImage]:
    """The images of the operations in a window of the recording, each once: equal directories are one image.

    ``rows``: the files of rows that may arrive before the restart.
    """
    images: dict[tuple[str, str], CrashImage] = {}
    for image in _all(recording, window):
        if rows and image.fault == "killed":
            with_rows = image.with_rows(rows)
            images.setdefault((with_rows.content.digest, ""), with_rows)
        images.setdefault((image.content.digest, image.overlay.digest if image.overlay else ""), image)
    yield from images.values()


def images_between(
    recording: Recording, window: slice, rows: Mapping[str, FileContent] | None = None
) -> Iterator[CrashImage]:
    """The images of a query that stops between two micro-batches, as it may without any crash: before the next one is planned.

    ``rows``: if given, also those after which these files of rows arrive, and then also that before the first micro-batch.
    """
    before = _committing(recording.operations[: window.start])
    if rows:
        yield _nothing_done(recording, window).with_rows(rows)
    for at in range(window.start + 1, window.stop + 1):
        done, following = recording.operations[:at], recording.operations[at : window.stop]
        begun = _committing(done)
        if begun > before and not _plans(done[-1]) and (not following or _plans(following[0])):
            image = CrashImage("killed", at - window.start, str(done[-1]), recording.content_after(at), begun)
            yield from (image, image.with_rows(rows)) if rows else (image,)


def _nothing_done(recording: Recording, window: slice) -> CrashImage:
    """The image before the first operation of a window."""
    emitted = _committing(recording.operations[: window.start])
    return CrashImage("killed", 0, "nothing of it is done", recording.content_after(window.start), emitted)


def _all(recording: Recording, window: slice) -> Iterator[CrashImage]:
    operations = recording.operations[window]
    yield (begin := _nothing_done(recording, window))
    content, emitted = begin.content, begin.emitted
    for number, operation in enumerate(operations, 1):
        content = content.after(operation)
        emitted |= _committing([operation])
        yield CrashImage("killed", number, str(operation), content, emitted)
        file = content.files.get(operation.result)
        # Not of a checksum that still has its temporary name.
        may_tear = operation.kind == "rename" or (operation.kind == "write" and not operation.path.endswith(".tmp.crc"))
        if may_tear and file is not None:
            torn, empty = (content.with_file(operation.result, file.part(share)) for share in (0.5, 0.0))
            yield CrashImage("torn", number, str(operation), torn, emitted)
            yield CrashImage("empty", number, str(operation), empty, emitted)
    for number, operation in enumerate(operations, 1):
        path = operation.result
        if _puts_in_place(operation, content):
            half = content.files[path].part(0.5)
            lost = content.with_file(path, None).with_file(checksum_of(path), None)
            yield CrashImage("lost", number, str(operation), lost, emitted)
            yield CrashImage("unsynced", number, str(operation), content.with_file(path, half), emitted)
    yield from _power_failures(recording, window)
    yield from _of_first_attempt(recording, window)


_LEFT = ("whole", "whole", "as before", "empty", "cut off")
"""What a power failure leaves of a file that was written: nothing of it may be lost, its rename, all of its bytes, the last of them."""
_LEFT_OF_REMOVED = ("whole", "as before")


def _power_failures(recording: Recording, window: slice) -> Iterator[CrashImage]:
    """Drawn from all: when the power fails, and what is left then of each file of the checkpoint that the window has written or removed,
    in one image of four also of an earlier file."""
    operations, before, draw = recording.operations[window], recording.content_after(window.start), Random(0)
    earlier = sorted(path for path in before.files if path.startswith(_CHECKPOINT))
    images = min(POWER_FAILURES * len(_committing(operations)), len(operations))
    for number in sorted(draw.sample(range(1, len(operations) + 1), images)):
        content, damage = recording.content_after(window.start + number), []
        touched = {path for path in (*content.files, *earlier) if content.files.get(path) != before.files.get(path)}
        if earlier and draw.random() < 1 / 4:
            touched.add(draw.choice(earlier))
        for path in sorted(path for path in touched if path.startswith(_CHECKPOINT)):
            file = content.files.get(path)
            how = draw.choice(_LEFT if file is not None else _LEFT_OF_REMOVED)
            left = before.files.get(path) if how == "as before" else file
            if file is not None and how in ("empty", "cut off"):
                left = file.part(draw.random() if how == "cut off" else 0.0)
            if left != file:
                content = content.with_file(path, left)
                damage.append(f"{path} {_left(left, file)}")
        emitted = _committing(recording.operations[: window.start + number])
        yield CrashImage("power", number, f"after {operations[number - 1]}: {', '.join(damage)}", content, emitted)


def _left(left: FileContent | None, file: FileContent | None) -> str:
    """What a power failure left of a file: ``gone``, ``there again``, ``3 of 7 bytes``."""
    if left is None:
        return "gone"
    return f"{len(left.content)} of {len(file.content)} bytes" if file is not None else "there again"


def _puts_in_place(operation: FileOperation, complete: FolderContent) -> bool:
    """Whether the operation gives a file of the checkpoint its place, where it still is at the end. Hadoop's checksums go with their
    files; those of Spark (4.1 and newer) are files like others."""
    path = operation.result
    return (
        operation.kind in ("rename", "write")
        and path.startswith(_CHECKPOINT)
        and not posixpath.basename(path).startswith(".")
        and path in complete.files
    )


def _of_first_attempt(recording: Recording, window: slice) -> Iterator[CrashImage]:
    """The crash comes just before a commit; then the replay writes the state files of that micro-batch again."""
    begun, first = _committing(recording.operations[: window.start]), window.start
    for at in range(window.start, window.stop):
        after = begun | _committing(recording.operations[at : at + 1])
        if after == begun:
            continue
        content = recording.content_after(at)
        for number, operation in enumerate(recording.operations[first:at], first + 1 - window.start):
            path = operation.result
            if _puts_in_place(operation, content) and path.startswith(f"{_CHECKPOINT}state/"):
                old = {name: content.files[name] for name in (path, checksum_of(path)) if name in content.files}
                without = content.with_file(path, None).with_file(checksum_of(path), None)
                yield CrashImage("failed", number, str(operation), without, begun)
                yield CrashImage("late", number, str(operation), without, begun, FolderContent(old))
                yield CrashImage("stale", number, str(operation), content, begun, FolderContent(old))
        begun, first = after, at


def _plans(operation: FileOperation) -> bool:
    """Whether the operation belongs to the planning of a micro-batch."""
    return operation.result.startswith((f"{_CHECKPOINT}offsets/", f"{_CHECKPOINT}sources/"))


def _committing(operations: Sequence[FileOperation]) -> frozenset[int]:
    """The micro-batches whose commit was begun. The sink has had the rows before."""
    paths = (operation.result for operation in operations)
    matches = (re.fullmatch(r"checkpoint/commits/(?:\.(\d+)\.[^/]*\.tmp|(\d+))", path) for path in paths)
    return frozenset(int(match[1] or match[2]) for match in matches if match)
