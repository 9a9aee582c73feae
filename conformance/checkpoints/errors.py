"""What can be wrong with a checkpoint."""

from __future__ import annotations

from pathlib import PurePosixPath

from conformance.core.errors import WrongUsage


class DamagedCheckpoint(WrongUsage):
    """A file of the checkpoint does not have the format that Spark writes."""

    def __init__(self, path: PurePosixPath, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path
