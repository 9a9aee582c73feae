"""Rows on their way into an engine elsewhere, where no file can be renamed: a job writes them into the sources' directories."""

from __future__ import annotations

import functools
import time
from typing import Any

from .arrivals import NEXT_SECOND_S, DirectoryArrivals, files_of
from .request import Batch, Stream
from .spark_files import SparkFiles, one_file


class JobArrivals(DirectoryArrivals):
    """``Arrivals`` through the session of an engine.

    One job writes the files of one micro-batch. Its commit shows them one after another within milliseconds; the host has to check that
    no micro-batch was planned in between.
    """

    def __init__(self, root: str, streams: dict[str, Stream], session: Any) -> None:
        """``root``: a URL."""
        self._root = root
        self._streams = streams
        self._session = session
        files = SparkFiles(session)
        for name in streams:
            # Sources ignore names that begin with _, so this only makes the directory.
            files.write_lines(self.directory(name) + "/_made", [])

    def directory(self, stream: str) -> str:
        return "{}/stream={}".format(self._root, stream)

    def stage(self, batches: list[Batch]) -> list[list[tuple[str, list[str]]]]:
        """The stream and lines of each file, by micro-batch; nothing is written before ``place``."""
        return [list(files_of(batch, self._streams)) for batch in batches]

    def place(self, staged: list[list[tuple[str, list[str]]]]) -> None:
        """Write one micro-batch after another: the modification times are their order."""
        for number, files in enumerate(staged):
            if number:
                time.sleep(NEXT_SECOND_S)
            frames = [
                one_file(self._session, content).selectExpr("value", "'{}' AS stream".format(stream))
                for stream, content in files
            ]
            # Each partition of the union becomes a file.
            union = functools.reduce(lambda one, other: one.union(other), frames)
            union.write.mode("append").partitionBy("stream").text(self._root)
