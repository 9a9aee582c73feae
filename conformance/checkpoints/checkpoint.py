"""A checkpoint: where a query stands, what it reads, what it keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from conformance.checkpoints import logs, state
from conformance.checkpoints.errors import DamagedCheckpoint
from conformance.checkpoints.files import Files, NoSuchCheckpoint
from conformance.checkpoints.logs import CommitEntry, OffsetEntry, Source
from conformance.checkpoints.state import StateOperator


@dataclass(frozen=True)
class Checkpoint:
    """What the files of a checkpoint say."""

    where: str
    """Its path or URL."""
    query_id: str | None
    """The id of the query; None if the file that holds it is missing."""
    planned: OffsetEntry | None
    """The newest micro-batch in the offset log; None if none was planned."""
    committed: CommitEntry | None
    """The newest micro-batch in the commit log; None if none was committed."""
    operators: tuple[StateOperator, ...]
    size: int
    """Bytes of all its files."""

    @property
    def watermark_ms(self) -> int:
        """The watermark of the next micro-batch, in ms since 1970; 0 if there is none.

        A planned micro-batch that was not committed runs again with the watermark it was planned with.
        """
        planned = self.planned.watermark_ms if self.planned else 0
        if self.committed is None or self.unfinished:
            return planned
        return self.committed.next_watermark_ms

    @property
    def unfinished(self) -> bool:
        """Whether the newest micro-batch was planned and not committed: it runs again at the restart."""
        if self.planned is None:
            return False
        return self.committed is None or self.committed.batch < self.planned.batch

    @property
    def sources(self) -> tuple[Source, ...]:
        return self.planned.sources if self.planned else ()

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings that the checkpoint pins."""
        return self.planned.settings if self.planned else {}


def read(files: Files) -> Checkpoint:
    """Read a checkpoint; state itself is not read.

    Raises:
        NoSuchCheckpoint: the folder is not a checkpoint, or a file cannot be read.
        DamagedCheckpoint: a file does not have the format that Spark writes.
    """
    planned, committed = logs.batches(files, "offsets"), logs.batches(files, "commits")
    if not planned and PurePosixPath("metadata") not in files.sizes:
        raise NoSuchCheckpoint(
            files.where,
            "this is not the checkpoint of a streaming query: it has neither a file `metadata` nor a folder `offsets`; "
            "pass the folder that the query has as checkpointLocation",
        )
    return Checkpoint(
        files.where,
        _query_id(files),
        logs.offsets(files, planned[-1]) if planned else None,
        logs.commit(files, committed[-1]) if committed else None,
        state.operators(files),
        sum(files.sizes.values()),
    )


def _query_id(files: Files) -> str | None:
    path = PurePosixPath("metadata")
    if path not in files.sizes:
        return None
    content = files.read(path)
    try:
        return str(json.loads(content)["id"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DamagedCheckpoint(path, "this is not the metadata of a query, or it is incomplete") from None
