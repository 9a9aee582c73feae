"""Rows on their way into an engine elsewhere, where no file can be renamed: a job writes them into the sources' directories."""

from __future__ import annotations

import functools
import time
from typing import Any

from .arrivals import NEXT_SECOND_S, files_of, read_files, stream_at
from .request import Batch, Stream
from .spark_files import SparkFiles, one_file


class JobArrivals:
    """``Arrivals`` through the session of an engine.

    One job writes the files of one micro-batch. Its commit shows them one after another within milliseconds; the host has to check that
    no micro-batch was planned in between.
    """

    paced = True

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

    def stream_of(self, description: str) -> str | None:
        return stream_at(description, self.directory, self._streams)

    def read(self, reader: Any, stream: str) -> Any:
        return read_files(reader, self._streams[stream], self.directory(stream))

    def grow(self, stream: str, partitions: int) -> None:
        raise NotImplementedError("{} has no topic".format(stream))

    def age_out(self) -> None:
        raise NotImplementedError("there is no topic")

    def records(self, _source: dict[str, Any]) -> None:
        """A file is not a record."""

    def close(self) -> None:
        """The files lie in the case's directory."""

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
