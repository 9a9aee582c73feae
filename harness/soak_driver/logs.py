"""What the checkpoint says about each micro-batch: its watermark, the next one, and the files it read."""

from __future__ import annotations

import json
import os
from typing import Any, List, Tuple

from harness.driver.checkpoint import Checkpoint
from harness.driver.local_files import LocalFiles

MicroBatch = Tuple[int, int, "int | None"]
"""Id, the watermark it ran with, and the one that its commit holds for the next, in ms; None if it is not committed."""


class LogIncomplete(Exception):
    """The offset log lacks micro-batches, so the files they read are unknown."""


def micro_batches(checkpoint: str) -> List[MicroBatch]:
    """All of them, in order.

    Raises:
        LogIncomplete: a planned one is missing from the log.
    """
    ids = _planned(checkpoint)
    logs = Checkpoint(checkpoint, LocalFiles())
    return [(batch, logs.logged_watermark(batch), logs.next_watermark(batch)) for batch in ids]


def files_read(checkpoint: str) -> List[Tuple[int, str]]:
    """Micro-batch and file name, for each file in the source's log.

    An entry of the source's log belongs to the first micro-batch whose offset includes it. The source may be ahead of the offset log if
    its engine was killed between the two; the next micro-batch then includes those files.
    """
    reached = [(batch, _offset(os.path.join(checkpoint, "offsets", str(batch)))) for batch in _planned(checkpoint)]
    found = []
    for entry, path in _source_log(os.path.join(checkpoint, "sources", "0")):
        batch = next((batch for batch, offset in reached if offset >= entry), None)
        if batch is not None:
            found.append((batch, path.rpartition("/")[2]))
    return sorted(found)


def _planned(checkpoint: str) -> List[int]:
    ids = sorted(int(name) for name in os.listdir(os.path.join(checkpoint, "offsets")) if name.isdigit())
    missing = sorted(set(range(len(ids))) - set(ids))
    if missing:
        raise LogIncomplete(
            "the offset log lacks micro-batch {}: is spark.sql.streaming.minBatchesToRetain set?".format(missing[0])
        )
    return ids


def _offset(path: str) -> int:
    """The last entry of the source's log that a micro-batch has read; -1 if none."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    return -1 if lines[2] == "-" else int(json.loads(lines[2])["logOffset"])


def _source_log(log: str) -> "set[Tuple[int, str]]":
    """Entry number and path of each file in the source's log; a compacted entry repeats all earlier ones."""
    found: "set[Tuple[int, str]]" = set()
    for name in os.listdir(log):
        if name.partition(".")[0].isdigit() and name.partition(".")[2] in ("", "compact"):
            with open(os.path.join(log, name), encoding="utf-8") as file:
                entries: List[Any] = [json.loads(line) for line in file.read().split("\n")[1:] if line]
            found.update((int(entry["batchId"]), str(entry["path"])) for entry in entries)
    return found
