"""The offset and commit logs of a checkpoint, and the state in it: sources that are independent of the progress.

Spark reads the state as a data source since 4.0: https://spark.apache.org/docs/latest/streaming/structured-streaming-state-data-source.html
"""

from __future__ import annotations

import json
import posixpath
from typing import Any, Dict, List, Optional, cast

from .errors import describe
from .files import ReadableFiles, WritableFiles

# How the names of files of the state end.
_SNAPSHOTS = ("snapshot", "zip")
_CHANGES = ("delta", "changelog")
# What the name of the folder has more after each move.
_MOVED = "-moved"


class NothingToDamage(Exception):
    """The checkpoint lacks the part that the case damages."""


class CheckpointLogs:
    """A query's checkpoint directory. ``files``: the file system that holds it; changing it takes ``WritableFiles``."""

    def __init__(self, path: str, files: ReadableFiles) -> None:
        self.path = path
        self._files = files

    def logged_watermark(self, batch: int) -> int:
        """The watermark in ms that the batch ran with, from the offset log; 0 if the log has none."""
        return int(self._second_line("offsets", batch).get("batchWatermarkMs", 0))

    def next_watermark(self, batch: int) -> int | None:
        """The watermark in ms for the batch after this one, from the commit log; None if the batch is not committed."""
        try:
            return int(self._second_line("commits", batch).get("nextBatchWatermarkMs", 0))
        except FileNotFoundError:
            return None

    def watermark(self) -> int | None:
        """The watermark in ms of the next batch: from the newest commit, or that of an uncommitted batch, which will be replayed."""
        planned, committed = self._newest("offsets"), self._newest("commits")
        if planned is None:
            return 0
        if committed is None or planned > committed:
            return self.logged_watermark(planned)
        return self.next_watermark(committed)

    def is_planned(self, batch: int) -> bool:
        return self._files.exists(self._file("offsets", batch))

    def is_committed(self, batch: int) -> bool:
        return self._files.exists(self._file("commits", batch))

    def is_at_rest(self) -> bool:
        """Whether every micro-batch that was planned is committed."""
        return self._newest("offsets") == self._newest("commits")

    def planned(self) -> int:
        """The newest planned micro-batch; -1 if there is none."""
        newest = self._newest("offsets")
        return -1 if newest is None else newest

    def make_directories(self) -> None:
        """Make the directories that every new query makes first: Hadoop starts a process for each."""
        if not self._files.exists(self.path):
            for name in ("commits", "offsets", "sources/0", "state"):
                self._writable.make_directory(posixpath.join(self.path, name))

    def damage(self, how: str, part: str) -> None:
        """Damage a part of the checkpoint, as a crash on storage without atomic renames or a user might. Raises ``NothingToDamage``.

        ``how``: ``gone``, ``empty`` (zero bytes) or ``truncated`` (half of it). ``part``: ``metadata``; the newest entry of the
        ``offsets`` or of the ``commit`` log; ``delta``, the newest version of every state store; ``snapshot``, the newest of them that is
        whole and not a change; ``state``, the directory of all stores.
        """
        files = self._writable
        paths = self._parts(part)
        if not paths:
            raise NothingToDamage("the checkpoint {} has no {} to damage".format(self.path, part))
        for path in paths:
            # Without its checksum, Spark reads what is left.
            files.remove(posixpath.join(posixpath.dirname(path), ".{}.crc".format(posixpath.basename(path))))
            if how == "gone" or files.is_directory(path):
                files.remove(path)
            else:
                content = files.read(path)
                files.write(path, b"" if how == "empty" else content[: len(content) // 2])

    def _parts(self, part: str) -> list[str]:
        if part in ("metadata", "state"):
            where = posixpath.join(self.path, part)
            return [where] if self._files.exists(where) else []
        if part in ("offsets", "commit"):
            log = "offsets" if part == "offsets" else "commits"
            newest = self._newest(log)
            return [] if newest is None else [self._file(log, newest)]
        # state/<operator>/<partition>[/<store>]/<version>.delta (.changelog, .zip: RocksDB, flat whatever the store)
        kinds = _SNAPSHOTS if part == "snapshot" else _SNAPSHOTS + _CHANGES
        stores: dict[str, dict[int, list[str]]] = {}
        for path in self._writable.files_below(posixpath.join(self.path, "state")):
            number, _, kind = posixpath.basename(path).partition(".")
            if number.split("_")[0].isdigit() and kind in kinds:
                versions = stores.setdefault(posixpath.dirname(path), {})
                versions.setdefault(int(number.split("_")[0]), []).append(path)
        return [path for versions in stores.values() for path in versions[max(versions)]]

    def moved(self, *, copied: bool) -> CheckpointLogs:
        """Move the checkpoint to another folder, or copy it there; return the one there."""
        files, path = self._writable, self.path + _MOVED
        if copied:
            for file in files.files_below(self.path):
                to = path + file[len(self.path) :]
                files.make_directory(posixpath.dirname(to))
                files.write(to, files.read(file))
        else:
            files.rename(self.path, path)
        return CheckpointLogs(path, files)

    def set_aside(self, to: str) -> None:
        """Move the checkpoint to a path, so that a new one begins in its place."""
        self._writable.remove(to)
        self._writable.rename(self.path, to)

    def uncommit_newest(self) -> None:
        """Remove the commit of the newest planned batch, as if the engine had died before writing it."""
        newest = self._newest("offsets")
        if newest is None:
            return
        for name in (str(newest), ".{}.crc".format(newest)):
            self._writable.remove(posixpath.join(self.path, "commits", name))

    @property
    def _writable(self) -> WritableFiles:
        # The host sends no case that changes a checkpoint on a storage behind Connect.
        return cast(WritableFiles, self._files)

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
        except ValueError:  # a torn entry: only Spark decides what it means
            return {}
        return metadata


def newest_path(directory: str, files: ReadableFiles) -> str:
    """The folder of the checkpoint in the directory of a case that has run before."""
    names = [name for name in files.names(directory) if name.startswith("checkpoint")]
    return posixpath.join(directory, max(names, default="checkpoint"))


def state_as_constants(session: Any, checkpoint: str) -> Any:
    """A DataFrame of constants: what the data source reads from the state of the first operator."""
    state = session.read.format("statestore").load(checkpoint)
    return session.createDataFrame(state.collect(), state.schema)


def read_state(session: Any, message: Dict[str, Any]) -> Dict[str, Any]:
    """The fields of the host's ``StateSeen``; ``message``: its ``StateRequest``."""
    values: List[List[Any]] = []
    try:
        for key, value in message["conf"].items():
            session.conf.set(key, value)
        for asked in message["reads"]:
            state = session.read.format("statestore").options(**asked["options"]).load(message["checkpoint"])
            values.append(list(state.selectExpr(*asked["expressions"]).collect()[0]))
        return {"values": values, "error": None}
    except Exception as error:
        return {"values": [], "error": describe(error, "run")["message"].strip().splitlines()[0]}


READ_STATE = "spark.conformance.readState"
"""The setting of a case that asks for the rows of the state."""
_JOIN = "symmetricHashJoin"
_SIDES = ("left", "right")
_OF_VARIABLES = "transformWithState"
"""The operators that keep several variables; the data source reads them one by one."""


def stored_state(session: Any, checkpoint: str, batches: List[Dict[str, Any]]) -> Optional[List[Dict[str, Any]]]:
    """The rows that the data source finds in the state of each operator, by id. ``batches``: those of the step, as ``BatchSeen``.

    None if there is nothing to compare: no micro-batch of these was committed, or Spark has no such data source yet.
    """
    if int(session.version.split(".")[0]) < 4 or not batches or batches[-1]["next_watermark"] is None:
        return None
    batch = batches[-1]["id"]
    entries = session.read.format("state-metadata").option("batchId", batch).load(checkpoint).collect()
    operators = {entry.operatorId: entry.operatorName for entry in entries}
    return [
        {"operator": name, "rows": _rows(session, checkpoint, batch, id, name)}
        for id, name in sorted(operators.items())
    ]


def _rows(session: Any, checkpoint: str, batch: int, operator: int, name: str) -> Optional[int]:
    """How many rows an operator has in its state; None if it keeps variables."""
    if name.startswith(_OF_VARIABLES):
        return None
    reader = session.read.format("statestore").option("batchId", batch).option("operatorId", operator)
    if name != _JOIN:
        return int(reader.load(checkpoint).count())
    return sum(int(reader.option("joinSide", side).load(checkpoint).count()) for side in _SIDES)
