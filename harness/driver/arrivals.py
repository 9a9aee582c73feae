"""Rows on their way into the engine: one JSON file per partition, placed by an atomic rename.

A micro-batch of a stream is always the same number of files (empty partitions are files with a blank line), so that
``maxFilesPerTrigger`` cuts a backlog exactly between its entries. A blank line, not an empty file: Spark ignores empty files,
and then the offset would not move.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from typing import Any, Dict, List, Tuple

Batches = List[Dict[str, List[List[Dict[str, Any]]]]]
Staged = List[Tuple[str, str]]


class Arrivals:
    """The directories the query's file sources read; what is in them already is what arrived before."""

    def __init__(self, root: str, streams: dict[str, Any]) -> None:
        """``streams``: stream name → {"ddl": …, "files": files per micro-batch}."""
        self._root = root
        self._streams = streams
        self._staging = os.path.join(root, ".staging")
        for name in streams:
            os.makedirs(self.directory(name), exist_ok=True)
        before = [entry for name in streams for entry in os.scandir(self.directory(name)) if entry.is_file()]
        self._placed = max((int(entry.name.partition(".")[0]) for entry in before), default=0)
        # Files are read in the order of their modification times, which must not depend on how fast we write them.
        yesterday = int(time.time()) - 86400
        self._clock = max((int(entry.stat().st_mtime) for entry in before), default=yesterday)
        shutil.rmtree(self._staging, ignore_errors=True)  # what a killed process had not placed yet
        os.makedirs(self._staging)

    def directory(self, stream: str) -> str:
        return os.path.join(self._root, stream)

    def stream_of(self, description: str) -> str | None:
        """The stream that a progress entry's source description names, by its path."""
        for name in self._streams:
            if self.directory(name) + "]" in description or description.endswith(self.directory(name)):
                return name
        return None

    def stage(self, batches: Batches) -> Staged:
        """Write the files of micro-batches out of the engine's sight; ``place`` then shows them all at once.

        ``batches``: a list of {stream: [[row, …] per partition]}; a row is an object.
        """
        staged = []
        for batch in batches:
            self._clock += 1
            for stream, partitions in batch.items():
                padding = self._streams[stream]["files"] - len(partitions)
                for rows in list(partitions) + [[]] * padding:
                    staged.append(self._write(stream, rows))
        return staged

    def place(self, staged: Staged) -> None:
        """Rename staged files into their sources' directories."""
        for hidden, visible in staged:
            os.rename(hidden, visible)

    def _write(self, stream: str, rows: list[dict[str, Any]]) -> tuple[str, str]:
        self._placed += 1
        name = "{:06d}.json".format(self._placed)
        hidden = os.path.join(self._staging, name)
        with open(hidden, "w", encoding="utf-8") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows) or "\n")
        os.utime(hidden, (self._clock, self._clock))
        return hidden, os.path.join(self.directory(stream), name)
