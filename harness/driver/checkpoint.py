"""The offset and commit logs of a checkpoint: a witness of the watermark that does not come through the progress."""

from __future__ import annotations

import json
import posixpath
from typing import Any


class NothingThere(Exception):
    """The checkpoint lacks what the case wants damaged."""


class Checkpoint:
    """A query's checkpoint directory. ``files``: those of the engine that it lies among, as ``OwnFiles``."""

    def __init__(self, path: str, files: Any) -> None:
        self.path = path
        self._files = files

    def logged_watermark(self, batch: int) -> int:
        """The watermark (ms) the offset log says the batch ran with; 0 where the log has none."""
        return int(self._second_line("offsets", batch).get("batchWatermarkMs", 0))

    def next_watermark(self, batch: int) -> int | None:
        """The watermark (ms) the commit log holds for the batch after this one; None where the batch is not committed."""
        try:
            return int(self._second_line("commits", batch).get("nextBatchWatermarkMs", 0))
        except FileNotFoundError:
            return None

    def watermark(self) -> int | None:
        """What the next batch would run with, in ms: from the newest commit, or what an uncommitted batch will be replayed with."""
        planned, committed = self._newest("offsets"), self._newest("commits")
        if planned is None:
            return 0
        if committed is None or planned > committed:
            return self.logged_watermark(planned)
        return self.next_watermark(committed)

    def is_planned(self, batch: int) -> bool:
        """Whether the offsets of the batch are logged."""
        return bool(self._files.exists(self._file("offsets", batch)))

    def is_committed(self, batch: int) -> bool:
        """Whether the commit of the batch is logged."""
        return bool(self._files.exists(self._file("commits", batch)))

    def make_directories(self) -> None:
        """Make what every query makes first, where nothing is there yet: Hadoop starts a process for each directory it makes."""
        if not self._files.exists(self.path):
            for name in ("commits", "offsets", "sources/0", "state"):
                self._files.make(posixpath.join(self.path, name))

    def damage(self, how: str, part: str) -> None:
        """Spoil a part of the checkpoint, as a crash on storage without atomic renames or a careless hand would have.

        ``how``: ``gone``, ``empty`` (no byte is left) or ``truncated`` (half is left). ``part``: ``metadata``; the newest entry of
        ``offsets`` or of the ``commit`` log; ``delta``, the newest version of every state store; ``state``, the whole folder of them.

        Raises:
            NothingThere: the checkpoint has no such part.
        """
        paths = self._parts(part)
        if not paths:
            raise NothingThere("the checkpoint {} has no {} to damage".format(self.path, part))
        for path in paths:
            # Whatever the checksum beside it would say, Spark is to read what is left.
            self._files.remove(posixpath.join(posixpath.dirname(path), ".{}.crc".format(posixpath.basename(path))))
            if how == "gone" or self._files.is_directory(path):
                self._files.remove(path)
            else:
                content = self._files.read(path)
                self._files.write(path, b"" if how == "empty" else content[: len(content) // 2])

    def _parts(self, part: str) -> list[str]:
        if part in ("metadata", "state"):
            found = posixpath.join(self.path, part)
            return [found] if self._files.exists(found) else []
        if part in ("offsets", "commit"):
            log = "offsets" if part == "offsets" else "commits"
            newest = self._newest(log)
            return [] if newest is None else [self._file(log, newest)]
        # state/<operator>/<partition>[/<store>]/<version>.delta (.changelog, .zip: RocksDB, flat whatever the store)
        stores: dict[str, dict[int, list[str]]] = {}
        for path in self._files.below(posixpath.join(self.path, "state")):
            number, _, kind = posixpath.basename(path).partition(".")
            if number.split("_")[0].isdigit() and kind in ("delta", "snapshot", "changelog", "zip"):
                versions = stores.setdefault(posixpath.dirname(path), {})
                versions.setdefault(int(number.split("_")[0]), []).append(path)
        return [path for versions in stores.values() for path in versions[max(versions)]]

    def uncommit_newest(self) -> None:
        """Take back the commit of the newest planned batch, as if the engine had died before making it."""
        newest = self._newest("offsets")
        if newest is None:
            return
        for name in (str(newest), ".{}.crc".format(newest)):
            self._files.remove(posixpath.join(self.path, "commits", name))

    def _file(self, log: str, batch: int) -> str:
        return posixpath.join(self.path, log, str(batch))

    def _newest(self, log: str) -> int | None:
        try:
            names = self._files.names(posixpath.join(self.path, log))
        except FileNotFoundError:
            return None
        return max((int(name) for name in names if name.isdigit()), default=None)

    def _second_line(self, log: str, batch: int) -> dict[str, Any]:
        """The metadata of a log entry: the line after the format's version."""
        lines = self._files.read(self._file(log, batch)).decode("utf-8").split("\n")
        try:
            metadata: dict[str, Any] = json.loads(lines[1]) if len(lines) > 1 and lines[1].strip() else {}
        except ValueError:  # a torn entry: what Spark makes of it is for Spark to say
            return {}
        return metadata
