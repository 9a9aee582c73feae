"""The families that generated cases come in: what their query is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import ClassVar

FAMILIES: Mapping[str, str] = {
    "windows": "windowed aggregations, tumbling and sliding, and those by event time or key alone",
    "sessions": "session windows, of fixed gaps and of gaps that rows bring",
    "deduplication": "dropDuplicates, dropDuplicatesWithinWatermark, distinct",
    "joins": "joins of two streams of every kind, by key, by time and by window",
    "chains": "stateful operators above stateful operators",
    "unions": "unions of streams that each have a watermark, and what stands above them",
    "event-times": "no state at all: what becomes of the event time and of the watermark",
    "sql": "the same in SQL: DISTINCT, GROUP BY, LIMIT",
    "recovery": "queries of the other families with restarts, crashes, damage and changes",
    "kills": "the same with the engine's process killed in the middle",
    "state-functions": "applyInPandasWithState and transformWithState; the reference model does not predict them",
}
"""Name → what it is about."""

USUAL = tuple(name for name in FAMILIES if name not in ("kills", "state-functions"))
"""Those that are drawn where none is asked for: the others cost a process a case, or cannot be predicted."""


class NoSuchFamily(ValueError):
    """A name that is none of a family."""

    exit_code: ClassVar[int] = 2

    def __init__(self, name: str) -> None:
        near = get_close_matches(name, FAMILIES, 1)
        meant = f" Did you mean {near[0]}?" if near else ""
        super().__init__(f"there is no family {name!r}.{meant} There are {', '.join(FAMILIES)}")
        self.name = name


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """The families of these names; the usual ones where there are none.

    Raises:
        NoSuchFamily: one of the names.
    """
    for name in names:
        if name not in FAMILIES:
            raise NoSuchFamily(name)
    return tuple(names) or USUAL
