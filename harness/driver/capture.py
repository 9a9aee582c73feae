"""What each micro-batch emitted, keyed by batch id."""

from __future__ import annotations

import threading
from typing import Any, Callable

from .encoding import encode_row


class Hold:
    """Stops a micro-batch where the process is to be killed.

    ``point``: ``planned`` (its offsets are logged, nothing of it has run), ``running`` (one partition of it has run), ``emitted``
    (its rows are out, it is not committed) or ``committed`` (it waits until it may ``go_on``). ``nth``: which micro-batch, from 1.
    """

    def __init__(self, point: str, nth: int) -> None:
        self._point = point
        self._left = nth
        self.reached = threading.Event()
        self.go_on = threading.Event()
        self.batch: int | None = None
        """The micro-batch, once it has come."""

    def comes(self, batch: int) -> str | None:
        """The point at which this micro-batch is to be stopped, None where it is another."""
        self._left -= 1
        if self._left:
            return None
        self.batch = batch
        return self._point

    def stay(self) -> None:
        """Never returns: whoever waits for ``reached`` has this process killed."""
        self.reached.set()
        while True:
            threading.Event().wait()


class Capture:
    """What ``foreachBatch`` is given, in this process. It also runs for no-data batches.

    ``emitted``: told each micro-batch and its rows before the engine can commit it; None where nobody wants to know.
    """

    def __init__(self, emitted: Callable[[int, list[list[Any]]], None] | None = None) -> None:
        self._rows: dict[int, list[list[Any]]] = {}
        self._emitted = emitted
        self.hold: Hold | None = None
        self.error: Exception | None = None
        """What went wrong in here: Spark hands it on as text only, so it is kept."""

    def function(self, frame: Any, batch_id: int) -> None:
        """What ``foreachBatch`` calls."""
        try:
            point = self.hold.comes(batch_id) if self.hold else None
            if self.hold and point == "planned":
                self.hold.stay()
            if self.hold and point == "running":
                _run_one_partition(frame)
                self.hold.stay()
            schema = frame.schema
            # Everything is collected, empty or not: a stateful query whose output nobody reads commits no state (4.1+ says so).
            self._rows[batch_id] = [encode_row(row, schema) for row in frame.collect()]
            if self._emitted is not None:
                self._emitted(batch_id, self._rows[batch_id])
            if self.hold and point == "emitted":
                self.hold.stay()
            if self.hold and point == "committed":
                self.hold.reached.set()
                self.hold.go_on.wait()
        except Exception as error:
            self.error = error
            raise

    def rows(self, batch_id: int) -> list[list[Any]]:
        """The rows of a batch as lists of JSON values."""
        return self._rows.get(batch_id, [])


def _run_one_partition(frame: Any) -> None:
    """Let the first partition of the micro-batch run and write its state, and no other."""
    rows = frame.rdd
    rows.context.runJob(rows, lambda partition: [sum(1 for _ in partition)], [0])
