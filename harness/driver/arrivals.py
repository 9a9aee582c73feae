"""Rows on their way into the engine: one JSON file per partition, placed by an atomic rename.

A micro-batch of a stream is always the same number of files (an empty partition is a file with a blank line), so that
``maxFilesPerTrigger`` cuts a backlog exactly between its entries. A blank line and not an empty file, because Spark ignores empty files
and the offset would not advance.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any, Callable, Iterable, Iterator, List, Tuple

from .backend import Files
from .request import Batch, Stream

Staged = List[Tuple[int, str, str]]
"""Of each file its time, and its path before and after it is shown."""

JSON_OPTIONS = {
    "mode": "FAILFAST",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""How rows are read that the host wrote as JSON."""

NEXT_SECOND_S = 1.1
"""A wait after which a new file's modification time, in whole seconds, is later."""


class WithoutTopics:
    """What only ``Arrivals`` in topics can do; the host lets no case without them do it."""

    def renew(self, _arrived: list[Batch]) -> None:
        raise NotImplementedError("there is no topic")

    def grow(self, stream: str, _partitions: int) -> None:
        raise NotImplementedError("{} has no topic".format(stream))

    def age_out(self) -> None:
        raise NotImplementedError("there is no topic")


class DirectoryArrivals(WithoutTopics):
    """What ``Arrivals`` as files share, whoever writes them: each stream has a directory."""

    paced = True
    _streams: dict[str, Stream]

    def directory(self, stream: str) -> str:
        raise NotImplementedError

    def stream_of(self, description: str) -> str | None:
        return stream_at(description, self.directory, self._streams)

    def read(self, reader: Any, stream: str) -> Any:
        declared = self._streams[stream]
        reader = reader.format("json").schema(declared.ddl).option("maxFilesPerTrigger", declared.files)
        return reader.options(**JSON_OPTIONS).load(self.directory(stream))

    def behind(self, _entry: dict[str, Any]) -> bool:
        return False

    def records(self, _source: dict[str, Any]) -> None:
        """A file is not a record."""

    def close(self) -> None:
        """The files lie in the case's directory."""


class FileArrivals(DirectoryArrivals):
    """``Arrivals`` as files; those in the directories already arrived before."""

    def __init__(self, root: str, streams: dict[str, Stream], files: Files) -> None:
        self._root = root
        self._streams = streams
        self._files = files
        self._staging = root + "/.staging"
        before = []
        for name in streams:
            files.make_directory(self.directory(name))
            before += [self.directory(name) + "/" + file for file in files.names(self.directory(name))]
        self._placed = max((int(path.rpartition("/")[2].partition(".")[0]) for path in before), default=0)
        # Sources read files in the order of their modification times, which must not depend on how fast we write them.
        yesterday = int(time.time()) - 86400
        self._clock = max((files.modified(path) for path in before), default=yesterday)
        files.remove(self._staging)  # files that a killed process had not placed yet
        files.make_directory(self._staging)

    def directory(self, stream: str) -> str:
        return self._root + "/" + stream

    def stage(self, batches: list[Batch]) -> Staged:
        staged = []
        for batch in batches:
            self._clock += 1
            staged += [self._write(stream, content) for stream, content in files_of(batch, self._streams)]
        return staged

    def place(self, staged: Staged) -> None:
        """Rename staged files into their sources' directories."""
        before = None
        for clock, hidden, visible in staged:
            if not self._files.keeps_times and before not in (None, clock):
                time.sleep(NEXT_SECOND_S)
            before = clock
            self._files.rename(hidden, visible)

    def _write(self, stream: str, content: list[str]) -> tuple[int, str, str]:
        self._placed += 1
        name = "{:06d}.json".format(self._placed)
        hidden = self._staging + "/" + name
        self._files.write(hidden, "".join(line + "\n" for line in content).encode("utf-8"))
        self._files.set_modified(hidden, self._clock)
        return self._clock, hidden, self.directory(stream) + "/" + name


def files_of(batch: Batch, streams: dict[str, Stream]) -> Iterator[tuple[str, list[str]]]:
    """The files of a micro-batch, each as its stream and its lines; always ``Stream.files`` of a stream."""
    for stream, partitions in batch.items():
        padding = streams[stream].files - len(partitions)
        for rows in list(partitions) + [[]] * padding:
            yield stream, lines(rows)


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """The lines of a file; a blank line for no rows."""
    return [json.dumps(row) for row in rows] or [""]


def stream_at(description: str, directory: Callable[[str], str], streams: Iterable[str]) -> str | None:
    """The stream whose directory a file source's description names: ``FileStreamSource[hdfs://host:8020/…/streams/events]``.

    Spark writes host and slashes before the path as the file system does, which may differ from ours.
    """
    for name in streams:
        if description.rstrip("]").endswith(_path(directory(name))):
            return name
    return None


def _path(directory: str) -> str:
    return re.sub(r"^[a-z][a-z0-9+.-]*:(//[^/]*)?", "", directory)
