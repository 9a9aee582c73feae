"""What each micro-batch emitted, keyed by batch id, also of real-time queries."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any, Callable

from .breakpoint import Breakpoint
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


class LocalCapture:
    """Collects the rows that ``foreachBatch`` is given in this process, in no-data batches too.

    ``emitted``: called with each micro-batch and its rows before the engine can commit it.
    """

    def __init__(self, emitted: Callable[[int, list[list[Any]]], None] | None = None) -> None:
        self._rows: dict[int, list[list[Any]]] = {}
        self._emitted = emitted
        self._error: Exception | None = None
        self.breakpoint: Breakpoint | None = None
        self.sink: Callable[[Any, int], None] | None = None
        self.running: Callable[[], None] = nothing

    def function(self, frame: Any, batch_id: int) -> None:
        """For ``foreachBatch``."""
        stop = self.breakpoint
        try:
            point = stop.point_in(batch_id) if stop else None
            if stop and point == "planned":
                stop.block_forever()
            if stop and point == "running":
                _run_one_partition(frame)
                stop.block_forever()
            self.running()
            schema = frame.schema
            # Collect even empty output: a stateful query whose output nobody reads commits no state (4.1 and newer say so).
            if self.sink is not None:
                frame = frame.persist()  # the micro-batch, and with it its state, is computed once
            self._rows[batch_id] = [encode_row(row, schema) for row in frame.collect()]
            if self._emitted is not None:
                self._emitted(batch_id, self._rows[batch_id])
            if self.sink is not None:
                self.sink(frame, batch_id)
                frame.unpersist()
            if stop and point == "emitted":
                stop.block_forever()
            if stop and point == "committed":
                stop.reached.set()
                stop.resume.wait()
        except Exception as error:
            self._error = error  # Spark passes it on as text only
            raise

    def attach(self, writer: Any, _schema: Any) -> Any:
        """Let a ``DataStreamWriter`` write here."""
        return writer.foreachBatch(self.function)

    def rows(self, batch_id: int) -> list[list[Any]]:
        return self._rows.get(batch_id, [])

    def error(self) -> Exception | None:
        return self._error


def nothing() -> None:
    """Of a micro-batch that has nothing to do beside its own rows."""


def _run_one_partition(frame: Any) -> None:
    """Run only the first partition of the micro-batch, so that it writes its state."""
    rows = frame.rdd
    rows.context.runJob(rows, lambda partition: [sum(1 for _ in partition)], [0])
