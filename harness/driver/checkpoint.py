"""The offset and commit logs of a checkpoint: a witness of the watermark that does not come through the progress."""

from __future__ import annotations

import json
import os
from typing import Any


class Checkpoint:
    """A query's checkpoint directory on the engine's file system."""

    def __init__(self, path: str) -> None:
        self.path = path

    def logged_watermark(self, batch: int) -> int:
        """The watermark (ms) the offset log says the batch ran with; 0 where the log has none."""
        return int(_second_line(self._file("offsets", batch)).get("batchWatermarkMs", 0))

    def next_watermark(self, batch: int) -> int | None:
        """The watermark (ms) the commit log holds for the batch after this one; None where the batch is not committed."""
        try:
            return int(_second_line(self._file("commits", batch)).get("nextBatchWatermarkMs", 0))
        except FileNotFoundError:
            return None

    def watermark(self) -> int | None:
        """What the next batch would run with, in ms: from the newest commit, or what an uncommitted batch will be replayed with."""
        planned, committed = self._newest("offsets"), self._newest("commits")
        if planned is None:
            return 0
        if committed is None or planned > committed:
            return self.logged_watermark(planned)
        return self.next_watermark(committed)

    def uncommit_newest(self) -> None:
        """Take back the commit of the newest planned batch, as if the engine had died before making it."""
        newest = self._newest("offsets")
        if newest is None:
            return
        for name in (str(newest), ".{}.crc".format(newest)):
            try:
                os.remove(os.path.join(self.path, "commits", name))
            except FileNotFoundError:
                pass

    def _file(self, log: str, batch: int) -> str:
        return os.path.join(self.path, log, str(batch))

    def _newest(self, log: str) -> int | None:
        try:
            names = os.listdir(os.path.join(self.path, log))
        except FileNotFoundError:
            return None
        return max((int(name) for name in names if name.isdigit()), default=None)


def _second_line(path: str) -> dict[str, Any]:
    """The metadata of a log entry: the line after the format's version."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    metadata: dict[str, Any] = json.loads(lines[1]) if len(lines) > 1 and lines[1].strip() else {}
    return metadata
