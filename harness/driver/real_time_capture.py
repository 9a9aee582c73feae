"""What a real-time query emits: ``foreach`` writes row by row, because real-time mode has no ``foreachBatch``."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any, Callable

from .breakpoint import Breakpoint
from .capture import nothing
from .encoding import encode_row


class RowWriter:
    """Writes rows for ``foreach``, in a worker: one file for each task."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file: Any = None

    def open(self, partition: int, batch_id: int) -> bool:
        self._file = tempfile.NamedTemporaryFile(
            dir=self._folder, prefix="{}-{}-".format(batch_id, partition), delete=False
        )
        return True

    def process(self, row: Any) -> None:
        pickle.dump(tuple(row), self._file)
        self._file.flush()

    def close(self, _error: Any) -> None:
        if self._file is not None:
            self._file.close()


class RealTimeCapture:
    """What each micro-batch of one run of a query emitted. ``folder``: a directory on this machine for the rows."""

    def __init__(self, folder: str) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._folder = tempfile.mkdtemp(dir=folder)
        self._schema: Any = None
        self.breakpoint: Breakpoint | None = None
        self.sink: Callable[[Any, int], None] | None = None
        self.running: Callable[[], None] = nothing

    def attach(self, writer: Any, schema: Any) -> Any:
        """Let a ``DataStreamWriter`` write here."""
        self._schema = schema
        # So that the logs are written when the progress says that the micro-batch is over.
        return writer.foreach(RowWriter(self._folder)).option("asyncProgressTrackingEnabled", "false")

    def rows(self, batch_id: int) -> list[list[Any]]:
        files = sorted(Path(self._folder).glob("{}-*".format(batch_id)))
        return [encode_row(row, self._schema) for file in files for row in _rows(file)]

    def error(self) -> Exception | None:
        return None


def _rows(file: Path) -> list[Any]:
    found = []
    with file.open("rb") as content:
        while True:
            try:
                found.append(pickle.load(content))
            except EOFError:
                return found
