"""Rows on their way into an engine elsewhere, where no file can be renamed: a job of its own writes them beside those that are there."""

from __future__ import annotations

import functools
import time
from typing import Any, List, Tuple

from .arrivals import ANOTHER_SECOND_S, Batches, files_of, stream_at
from .spark_files import SparkFiles, one_file

Staged = List[List[Tuple[str, List[str]]]]


class Appended:
    """As ``Arrivals``, through the session of an engine.

    The files of one micro-batch are written in one job. Its last act shows them, one after another within milliseconds: that the engine
    plans no micro-batch in between is to be proved by whoever looks at the answer.
    """

    def __init__(self, root: str, streams: dict[str, Any], session: Any) -> None:
        """``root``: a URL; ``streams``: stream name → {"ddl": …, "files": files per micro-batch}."""
        self._root = root
        self._streams = streams
        self._session = session
        files = SparkFiles(session)
        for name in streams:
            # What begins with a _ no source reads: this makes the directory that it is in.
            files.write_lines(self.directory(name) + "/_made", [])

    def directory(self, stream: str) -> str:
        return "{}/stream={}".format(self._root, stream)

    def stream_of(self, description: str) -> str | None:
        """The stream that a progress entry's source description names."""
        return stream_at(description, self.directory, self._streams)

    def stage(self, batches: Batches) -> Staged:
        """The lines of each file, by micro-batch; nothing is written before ``place``."""
        return [list(files_of(batch, self._streams)) for batch in batches]

    def place(self, staged: Staged) -> None:
        """Write them, a micro-batch after the other: their order is that of their times."""
        for number, files in enumerate(staged):
            if number:
                time.sleep(ANOTHER_SECOND_S)
            frames = [
                one_file(self._session, content).selectExpr("value", "'{}' AS stream".format(stream))
                for stream, content in files
            ]
            # A partition of the union is a file.
            union = functools.reduce(lambda one, other: one.union(other), frames)
            union.write.mode("append").partitionBy("stream").text(self._root)
