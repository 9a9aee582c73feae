"""Which releases of Spark may have run a query last: a checkpoint does not say, but what it pins does."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from conformance.checkpoints.checkpoint import Checkpoint
from conformance.core.data import read_data
from conformance.core.versions import SparkVersion, VersionRange, releases


def lines_of_writer(checkpoint: Checkpoint) -> tuple[str, ...]:
    """The lines of Spark that may have planned the newest micro-batch, oldest first; empty if none was planned."""
    if checkpoint.planned is None:
        return ()
    marks = _pinned_settings()

    def may_have(version: SparkVersion) -> bool:
        return all((key in checkpoint.settings) is (version in pinned) for key, pinned in marks.items())

    return tuple(dict.fromkeys(version.line for version in releases() if may_have(version)))


@cache
def _pinned_settings() -> Mapping[str, VersionRange]:
    """Setting → the releases that pin it."""
    return {key: VersionRange.parse(text) for key, text in read_data("conformance.checkpoints", "writers.yaml").items()}
