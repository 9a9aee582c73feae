"""What the checkpoint says of each micro-batch: its watermark, the one it left behind, and the files that were read in it."""

from __future__ import annotations

import json
import os
from typing import Any, List, Tuple

from harness.driver.checkpoint import Checkpoint
from harness.driver.own_files import OwnFiles

MicroBatch = Tuple[int, int, "int | None"]
"""Id, the watermark it ran with, and the one that its commit left for the next; ms. None where it is not committed."""


class LogIncomplete(Exception):
    """The offset log lacks micro-batches, so nobody can say what was read in them."""


def micro_batches(checkpoint: str) -> List[MicroBatch]:
    """All of them, in order.

    Raises:
        LogIncomplete: one that was planned is gone from the log.
    """
    ids = _planned(checkpoint)
    logs = Checkpoint(checkpoint, OwnFiles())
    return [(batch, logs.logged_watermark(batch), logs.next_watermark(batch)) for batch in ids]


def files_read(checkpoint: str) -> List[Tuple[int, str]]:
    """Micro-batch and name of a file, for each file that the source has noticed.

    An entry of the source's own log is part of the first micro-batch whose offset has come as far. A source may be ahead of the offset
    log: its engine was killed between the two, and the next micro-batch takes what it has noticed along.
    """
    reached = [(batch, _offset(os.path.join(checkpoint, "offsets", str(batch)))) for batch in _planned(checkpoint)]
    found = []
    for noticed, path in _noticed(os.path.join(checkpoint, "sources", "0")):
        batch = next((batch for batch, offset in reached if offset >= noticed), None)
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
    """The entry of the source's log up to which a micro-batch has read; -1 where it had none yet."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    return -1 if lines[2] == "-" else int(json.loads(lines[2])["logOffset"])


def _noticed(log: str) -> "set[Tuple[int, str]]":
    """Number of the entry and path, of each file in the source's log; a compacted entry repeats all before it."""
    found: "set[Tuple[int, str]]" = set()
    for name in os.listdir(log):
        if name.partition(".")[0].isdigit() and name.partition(".")[2] in ("", "compact"):
            with open(os.path.join(log, name), encoding="utf-8") as file:
                entries: List[Any] = [json.loads(line) for line in file.read().split("\n")[1:] if line]
            found.update((int(entry["batchId"]), str(entry["path"])) for entry in entries)
    return found
