"""What a page shows of the explanation of one query, in the words of the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from conformance.core.data import Json
from conformance.query_progress.causes import Cause
from conformance.query_progress.over_time import OverTime


@dataclass(frozen=True)
class DelaysShown:
    """Which delay the query needs."""

    answer: str
    table: Sequence[tuple[str, ...]]
    """With a line of titles."""
    notes: tuple[str, ...]
    record: Mapping[str, Json]
    """The table, as programs get it."""


@dataclass(frozen=True)
class QueryPage:
    title: str
    """The first line of the answer, which counts the rows."""
    causes: tuple[Cause, ...]
    sound: str
    """What to say without a cause."""
    notes: tuple[str, ...]
    over_time: OverTime
    failure: str = ""
    """The error with which it ends."""
    rows: Sequence[Mapping[str, Json]] = ()
    """What became of each row, as programs get it; none if only progress is known."""
    delays: DelaysShown | None = None

    def lines(self, detail: int) -> Iterator[str]:
        """Yield what stands above the notes; ``detail`` as in `Cause.lines`."""
        yield self.title
        if self.failure:
            yield f"  ✗ {self.failure}"
        if not self.causes:
            yield f"  ● {self.sound}"
        for number, cause in enumerate(self.causes, 1):
            yield from cause.lines(number, detail)
