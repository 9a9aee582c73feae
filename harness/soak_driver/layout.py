"""The layout of a soak's folder."""

from __future__ import annotations

import os

INPUT, CHECKPOINT, OUTPUT, PROGRESS = "input", "checkpoint", "output", "progress"


def uri(*parts: str) -> str:
    """A path for Spark: a folder that all machines share, regardless of the cluster's default file system."""
    return "file://" + os.path.join(*parts)


def attempt_at(folder: str, batch: object, attempt: object) -> str:
    """The output of one attempt at a micro-batch, as JSON lines. Spark reads ``batch`` and ``attempt`` from the path; ``*`` is any."""
    return os.path.join(folder, OUTPUT, "batch={}".format(batch), "attempt={}".format(attempt))
