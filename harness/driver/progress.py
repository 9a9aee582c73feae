"""From Spark's progress entries to executed micro-batches.

Some queries run micro-batches without end, also while nothing arrives: ``reported`` selects those that show something, and ``at_rest``
(of a real-time query) and ``is_idle`` (of one that runs by the clock) decide when to go on.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Set

from .request import milliseconds

if TYPE_CHECKING:
    from .arrivals import Arrivals
    from .capture import Capture
    from .checkpoint import CheckpointLogs

ProgressEntry = Dict[str, Any]

IDLE_MICRO_BATCHES = 3
"""After so many micro-batches in a row that do nothing, a query that runs by the clock is idle.

The first may have been planned before the last rows arrived.
"""
_BY_THE_CLOCK = re.compile(r"\bProcessingTime(Timeout)?\b")


def executed(entries: list[ProgressEntry]) -> list[ProgressEntry]:
    """Select the entries of executed micro-batches. An idle entry repeats a batch id and has no ``addBatch`` time."""
    return [entry for entry in entries if "addBatch" in entry.get("durationMs", {})]


def batch_seen(
    entry: ProgressEntry, checkpoint: CheckpointLogs, capture: Capture, arrivals: Arrivals
) -> dict[str, Any]:
    """The fields of ``BatchSeen`` for one executed batch."""
    batch = entry["batchId"]
    event_time = entry.get("eventTime", {})
    operators = entry.get("stateOperators", [])
    sources = [_source_read(source, arrivals) for source in entry.get("sources", [])]
    return {
        "id": batch,
        "kind": "data" if any(source["moved"] for source in sources) else "no-data",
        "sources": sources,
        "watermark": milliseconds(event_time["watermark"]) if "watermark" in event_time else None,
        "logged": checkpoint.logged_watermark(batch),
        "next_watermark": checkpoint.next_watermark(batch),
        "rows": capture.rows(batch),
        "dropped": _dropped(operators),
        "state": [operator.get("numRowsTotal", 0) for operator in operators],
        "event_time": {key: milliseconds(event_time[key]) for key in ("min", "max", "avg")}
        if "max" in event_time
        else None,
        "duration_ms": entry["durationMs"].get("triggerExecution", 0),
        "progress": entry,
    }


def _source_read(source: ProgressEntry, arrivals: Arrivals) -> dict[str, Any]:
    read = {"stream": arrivals.stream_of(source) or source["description"], "rows": source.get("numInputRows", 0)}
    records = arrivals.records(source)
    if records is None:
        return {**read, "moved": source.get("startOffset") != source.get("endOffset")}
    return {**read, "moved": any(records), "records": records}


def _dropped(operators: list[ProgressEntry]) -> int | None:
    name = "numRowsDroppedByWatermark"
    counts = [int(operator[name]) for operator in operators if name in operator]
    return None if operators and not counts else sum(counts)


def reported(
    entries: list[ProgressEntry], before: str | None, rows: Callable[[int], list[Any]]
) -> tuple[list[ProgressEntry], str | None]:
    """Select the micro-batches that show something, and return the watermark of the last of all.

    They read rows, are the first after a move of the watermark, remove state, which incremental cleanup does a micro-batch later, by the
    watermark for late rows, or emit rows. The others, which the engine runs for as long as nothing arrives, do nothing.

    ``before``: the watermark of the micro-batch before the first entry, None if there is none; ``rows``: what a micro-batch emitted.
    """
    selected = []
    for entry in entries:
        watermark = _watermark(entry)
        removes_state = any(operator.get("numRowsRemoved", 0) for operator in entry.get("stateOperators", []))
        moved = before is not None and watermark != before
        if _is_data(entry) or moved or removes_state or rows(entry["batchId"]):
            selected.append(entry)
        before = watermark
    return selected, before


def at_rest(entries: list[ProgressEntry], behind: Callable[[ProgressEntry], bool]) -> bool:
    """Whether another micro-batch would do nothing: all rows are read, and the last micro-batch read none and left the watermark alone."""
    if len(entries) < 2 or behind(entries[-1]) or _is_data(entries[-1]):
        return False
    return _watermark(entries[-2]) == _watermark(entries[-1])


def runs_by_the_clock(plan: str) -> bool:
    """Whether an operator of an analysed plan asks for another micro-batch after each, for the sake of processing time."""
    return _BY_THE_CLOCK.search(plan) is not None


def is_idle(entries: list[ProgressEntry], rows: Callable[[int], list[Any]]) -> bool:
    """Whether the last of these executed micro-batches read nothing and emitted nothing. ``rows``: what a micro-batch emitted."""
    last = entries[-IDLE_MICRO_BATCHES:]
    return len(last) == IDLE_MICRO_BATCHES and not any(_is_data(entry) or rows(entry["batchId"]) for entry in last)


def _is_data(entry: ProgressEntry) -> bool:
    return any(source.get("startOffset") != source.get("endOffset") for source in entry["sources"])


def _watermark(entry: ProgressEntry) -> str:
    return str(entry.get("eventTime", {}).get("watermark", ""))


def native_operators(pattern: str, queries: Iterable[Any]) -> Set[str]:
    """The operators of the micro-batches that run now which an accelerator runs. ``pattern``: finds their names in a physical plan."""
    plans = [query._jsq.explainInternal(False) for query in queries]
    return {name for plan in plans for name in re.findall(pattern, plan)}
