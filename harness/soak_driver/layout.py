"""Where everything of a soak lies in its folder."""

from __future__ import annotations

import os

INPUT, CHECKPOINT, OUTPUT, PROGRESS = "input", "checkpoint", "output", "progress"


def uri(*parts: str) -> str:
    """A path as Spark takes it: whatever the default file system of a cluster is, this is a folder that its machines share."""
    return "file://" + os.path.join(*parts)


def attempt_at(folder: str, batch: object, attempt: object) -> str:
    """What an attempt at a micro-batch emitted: JSON lines. Spark reads ``batch`` and ``attempt`` out of the path; ``*`` is any."""
    return os.path.join(folder, OUTPUT, "batch={}".format(batch), "attempt={}".format(attempt))
