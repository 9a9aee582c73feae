"""What each micro-batch emitted, keyed by batch id."""

from __future__ import annotations

from typing import Any

from .encoding import encode_row


class Capture:
    """The function given to ``foreachBatch``. It also runs for no-data batches."""

    def __init__(self) -> None:
        self._rows: dict[int, list[list[Any]]] = {}
        self.error: Exception | None = None
        """What went wrong in here: Spark hands it on as text only, so it is kept."""

    def __call__(self, frame: Any, batch_id: int) -> None:
        try:
            schema = frame.schema
            # Everything is collected, empty or not: a stateful query whose output nobody reads commits no state (4.1+ says so).
            self._rows[batch_id] = [encode_row(row, schema) for row in frame.collect()]
        except Exception as error:
            self.error = error
            raise

    def rows(self, batch_id: int) -> list[list[Any]]:
        """The rows of a batch as lists of JSON values."""
        return self._rows.get(batch_id, [])
