"""Rows on their way into the engine: one JSON file per partition, placed by an atomic rename.

A micro-batch of a stream is always the same number of files (empty partitions are files with a blank line), so that
``maxFilesPerTrigger`` cuts a backlog exactly between its entries. A blank line, not an empty file: Spark ignores empty files,
and then the offset would not move.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Tuple

Batch = Dict[str, List[List[Dict[str, Any]]]]
Batches = List[Batch]
Staged = List[Tuple[int, str, str]]

ANOTHER_SECOND_S = 1.1
"""So long, and a file is another second old."""


class Arrivals:
    """The directories the query's file sources read; what is in them already is what arrived before."""

    def __init__(self, root: str, streams: dict[str, Any], files: Any) -> None:
        """
        ``root``: where they are; ``streams``: stream name → {"ddl": …, "files": files per micro-batch}; ``files``: those of the engine
        that they lie among, as ``OwnFiles``.
        """
        self._root = root
        self._streams = streams
        self._files = files
        self._staging = root + "/.staging"
        before = []
        for name in streams:
            files.make(self.directory(name))
            before += [self.directory(name) + "/" + file for file in files.names(self.directory(name))]
        self._placed = max((int(path.rpartition("/")[2].partition(".")[0]) for path in before), default=0)
        # Files are read in the order of their modification times, which must not depend on how fast we write them.
        yesterday = int(time.time()) - 86400
        self._clock = max((files.modified(path) for path in before), default=yesterday)
        files.remove(self._staging)  # what a killed process had not placed yet
        files.make(self._staging)

    def directory(self, stream: str) -> str:
        return self._root + "/" + stream

    def stream_of(self, description: str) -> str | None:
        """The stream that a progress entry's source description names."""
        return stream_at(description, self.directory, self._streams)

    def stage(self, batches: Batches) -> Staged:
        """Write the files of micro-batches out of the engine's sight; ``place`` then shows them all at once.

        ``batches``: a list of {stream: [[row, …] per partition]}; a row is an object.
        """
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
                time.sleep(ANOTHER_SECOND_S)
            before = clock
            self._files.rename(hidden, visible)

    def _write(self, stream: str, content: list[str]) -> tuple[int, str, str]:
        self._placed += 1
        name = "{:06d}.json".format(self._placed)
        hidden = self._staging + "/" + name
        self._files.write(hidden, "".join(line + "\n" for line in content).encode("utf-8"))
        self._files.date(hidden, self._clock)
        return self._clock, hidden, self.directory(stream) + "/" + name


def files_of(batch: Batch, streams: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """The files of a micro-batch: of each its stream and its lines. There are always as many of a stream; ``streams`` says how many."""
    for stream, partitions in batch.items():
        padding = streams[stream]["files"] - len(partitions)
        for rows in list(partitions) + [[]] * padding:
            yield stream, lines(rows)


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """The lines of a file; a blank one where there are no rows."""
    return [json.dumps(row) for row in rows] or [""]


def stream_at(description: str, directory: Callable[[str], str], streams: Iterable[str]) -> str | None:
    """The stream whose directory is in the description of a file source: ``FileStreamSource[hdfs://host:8020/…/streams/events]``.

    Spark writes host and slashes before the path as the file system has them, which may be otherwise than we do.
    """
    for name in streams:
        if description.rstrip("]").endswith(_path(directory(name))):
            return name
    return None


def _path(directory: str) -> str:
    return re.sub(r"^[a-z][a-z0-9+.-]*:(//[^/]*)?", "", directory)
