"""Families of generated cases, by the subject of their query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from conformance.core.errors import WrongUsage

FAMILIES: Mapping[str, str] = {
    "windows": "windowed aggregations, tumbling and sliding, and those by event time or key alone",
    "sessions": "session windows with fixed gaps and with gaps that depend on the row",
    "deduplication": "dropDuplicates, dropDuplicatesWithinWatermark, distinct",
    "joins": "joins of two streams of every kind, by key, by time and by window",
    "chains": "stateful operators on top of stateful operators",
    "unions": "unions of streams with watermarks, and operators on top of them",
    "event-times": "stateless queries: propagation of the event time and the watermark",
    "sql": "the same in SQL: DISTINCT, GROUP BY, LIMIT, joins and unions of two views; orderBy and limit",
    "recovery": "queries of the other families with restarts, crashes, damaged checkpoints and changes",
    "kills": "the same with the engine process killed during a micro-batch",
    "state-functions": "applyInPandasWithState and transformWithState",
}

DEFAULT = tuple(name for name in FAMILIES if name not in ("kills", "state-functions"))
"""The default families; the others need one process per case, or pandas in the engine."""


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """The families with these names; the default ones if there are none.

    Raises:
        WrongUsage: one of the names is unknown.
    """
    for name in names:
        if name not in FAMILIES:
            near = get_close_matches(name, FAMILIES, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise WrongUsage(f"unknown family {name!r}.{hint} The families are {', '.join(FAMILIES)}")
    return tuple(names) or DEFAULT
