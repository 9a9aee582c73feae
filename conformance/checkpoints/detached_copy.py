"""A copy of a checkpoint without its sources: the query stands where it stood, keeps its state, and has read nothing.

The state and the watermark of a copy are those of the original. Its offsets are those of sources of files that have read no file
yet, whatever the sources were, so that a query can resume it without them. Nothing is written to the original.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from conformance.checkpoints.checkpoint import Checkpoint
from conformance.checkpoints.files import Files, NoSuchCheckpoint

NO_FILE_READ = '{"logOffset":-1}'
"""The offset of a source of files that has read none (Spark's ``FileStreamSourceOffset``)."""
_SOURCES = "sources"


class NothingCommitted(NoSuchCheckpoint):
    """No micro-batch of the checkpoint is committed, so there is no state to resume."""

    def __init__(self, where: str) -> None:
        super().__init__(where, "no micro-batch is committed: there is no state to resume")


def copy_detached(files: Files, found: Checkpoint, folder: Path) -> None:
    """Copy a checkpoint, without its sources and without a micro-batch that was planned and not committed.

    Args:
        files: its files.
        found: what they say.
        folder: of the copy; must not exist.

    Raises:
        NothingCommitted: there is nothing to resume.
        NoSuchCheckpoint: a file cannot be read.
        OSError: the copy cannot be written.
    """
    if found.committed is None:
        raise NothingCommitted(files.where)
    folder.mkdir(parents=True)
    for path in files.sizes:
        if path.parts[0] == _SOURCES or _is_beyond(path, found.committed.batch):
            continue
        content = files.read(path)
        if path.parts[:-1] == ("offsets",) and path.name.isdecimal():
            content = _without_sources(content)
        elif path.parts[:-1] == ("offsets",):
            # The checksum of an entry that is another one now.
            continue
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _is_beyond(path: PurePosixPath, committed: int) -> bool:
    return path.parts[:-1] == ("offsets",) and path.name.isdecimal() and int(path.name) > committed


def _without_sources(entry: bytes) -> bytes:
    """An entry of the offset log: the format, the metadata, and a line for each source."""
    format, metadata, *sources = entry.decode("utf-8").split("\n")
    named = format.strip() != "v1"
    return "\n".join([format, metadata, *(_detached(line, named=named) for line in sources)]).encode("utf-8")


def _detached(source: str, *, named: bool) -> str:
    name = source.partition(":")[0] + ":" if named else ""
    return f"{name}{NO_FILE_READ}" if source else source
