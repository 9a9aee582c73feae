"""Which releases of Spark may have run a query last: a checkpoint does not say, but what it pins does."""

from __future__ import annotations

from conformance.checkpoints.checkpoint import Checkpoint
from conformance.core.data import read_data
from conformance.core.versions import SparkVersion, VersionRange, releases


def lines_of_writer(checkpoint: Checkpoint) -> tuple[str, ...]:
    """The lines of Spark that may have planned the newest micro-batch, oldest first; empty if none was planned."""
    if checkpoint.planned is None:
        return ()
    marks = {
        key: VersionRange.parse(text) for key, text in read_data("conformance.checkpoints", "writers.yaml").items()
    }

    def may_have(version: SparkVersion) -> bool:
        return all((key in checkpoint.settings) is (version in pinned) for key, pinned in marks.items())

    return tuple(dict.fromkeys(version.line for version in releases() if may_have(version)))
